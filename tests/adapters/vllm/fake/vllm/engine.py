"""`LLM` and what stands behind it, of vllm 0.33.0."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from .exceptions import EngineDeadError, VLLMValidationError
from .params import SamplingParams
from .surface import ENGINE_ARGUMENTS

STARTED: list[LLM] = []
"""All engines of this process, for tests."""


class Logprob(NamedTuple):
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


class LLM:
    def __init__(self, model: str, **arguments: Any) -> None:
        if unknown := sorted(set(arguments) - ENGINE_ARGUMENTS):
            raise TypeError(f"EngineArgs.__init__() got an unexpected keyword argument {unknown[0]!r}")
        self.arguments = arguments
        STARTED.append(self)
        if arguments.get("gpu_memory_utilization", 0.9) < 0.05:
            raise ValueError("No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.")
        if arguments.get("enforce_eager") == "break":
            raise RuntimeError("Engine core initialization failed. See root cause above.\nsecond line")
        self.numbers = Numbers(Path(model), arguments)
        limit = arguments.get("max_model_len") or self.numbers.limit
        self.model_config = SimpleNamespace(max_model_len=limit, get_vocab_size=lambda: self.numbers.vocabulary)
        self.request_counter = itertools.count()
        self.llm_engine = LLMEngine(self)

    def enqueue(
        self,
        prompts: Any,
        sampling_params: Any = None,
        lora_request: Any = None,
        priority: Any = None,
        use_tqdm: bool = True,
        tokenization_kwargs: Any = None,
        mm_processor_kwargs: Any = None,
    ) -> list[str]:
        assert not use_tqdm, "a progress bar on the console"
        added = []
        for prompt, params in zip(prompts, sampling_params, strict=True):
            number = str(next(self.request_counter))
            added.append(self.llm_engine.add_request(number, prompt, params))
        return added


class LLMEngine:
    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self._waiting: dict[str, tuple[str, list[int], Any, SamplingParams]] = {}
        self._cached: set[tuple[int, ...]] = set()
        self.steps = 0
        self.dies: BaseException | None = None
        self.aborted: list[str] = []
        self.engine_core = SimpleNamespace(shutdown=self._shutdown, closed=False)

    def _shutdown(self, timeout: float | None = None) -> None:
        self.engine_core.closed = True

    def add_request(self, request_id: str, prompt: dict[str, Any], params: SamplingParams) -> str:
        assert set(prompt) <= {"prompt_token_ids", "multi_modal_data"}
        numbers = self._llm.numbers
        params.verify(numbers.vocabulary, self._llm.arguments.get("max_logprobs", 20))
        pictures = prompt.get("multi_modal_data", {}).get("image", [])
        most = self._llm.arguments.get("limit_mm_per_prompt", {}).get("image", 999)
        if len(pictures) > most:
            raise ValueError(f"At most {most} image(s) may be provided in one prompt.")
        ids = numbers.expand(prompt["prompt_token_ids"], len(pictures))
        limit = self._llm.model_config.max_model_len
        if len(ids) >= limit:
            raise VLLMValidationError(
                f"The decoder prompt (length {len(ids)}) plus the number of requested output tokens (at least 1) is "
                f"longer than the maximum model length of {limit}."
            )
        inner = f"{request_id}-{hashlib.sha256(request_id.encode()).hexdigest()[:8]}"
        self._waiting[inner] = (request_id, ids, pictures, params)
        return inner

    def has_unfinished_requests(self) -> bool:
        return bool(self._waiting)

    def abort_request(self, request_ids: list[str], internal: bool = False) -> None:
        assert internal, "these are internal names"
        self.aborted += request_ids
        for name in request_ids:
            self._waiting.pop(name, None)

    def step(self) -> list[Any]:
        """Finish up to three requests, the last ones first."""
        self.steps += 1
        if self.dies is not None:
            raise EngineDeadError(str(self.dies)) from self.dies
        names = list(self._waiting)[-3:]
        batch = [self._waiting.pop(name) for name in reversed(names)]
        unsteady = os.environ.get("VLLM_BATCH_INVARIANT", "0") != "1"
        outputs = [SimpleNamespace(request_id="-1", finished=False)]
        for place, (name, ids, pictures, params) in enumerate(batch):
            shift = 0.01 * place if unsteady else 0.0
            if self._llm.arguments.get("enable_prefix_caching") is not False and tuple(ids[:8]) in self._cached:
                shift += 0.02
            self._cached.add(tuple(ids[:8]))
            outputs.append(self._llm.numbers.answer(name, ids, pictures, params, self._llm.model_config, shift))
        return outputs


class Numbers:
    """A checkpoint of Transformers, asked one request at a time by whole passes."""

    def __init__(self, folder: Path, arguments: dict[str, Any]) -> None:
        import torch
        import transformers

        self.config = json.loads((folder / "config.json").read_text())
        self.marker = self.config.get("image_token_id", self.config.get("image_token_index"))
        kind = "AutoModelForCausalLM" if self.marker is None else "AutoModelForImageTextToText"
        dtype = getattr(torch, arguments["dtype"])
        self.model = getattr(transformers, kind).from_pretrained(folder, dtype=dtype).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.processor = None
        if self.marker is not None:
            self.processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
        self.vocabulary = self.model.get_input_embeddings().num_embeddings
        self.limit = self.model.config.get_text_config().max_position_embeddings
        self.torch = torch

    def expand(self, ids: list[int], pictures: int) -> list[int]:
        if self.marker is None:
            return ids
        assert ids.count(self.marker) == pictures, "one placeholder per image"
        vision = self.config["vision_config"]
        size = (vision["image_size"] // vision["patch_size"]) ** 2
        return [other for token in ids for other in [token] * (size if token == self.marker else 1)]

    def logits(self, ids: list[int], pictures: Any) -> Any:
        more = {}
        if pictures:
            more["pixel_values"] = self.processor.image_processor(pictures, return_tensors="pt")["pixel_values"]
        with self.torch.inference_mode():
            made = self.model(input_ids=self.torch.tensor([ids]), **more).logits[0].float()
        return made.clone()

    def answer(
        self, name: str, ids: list[int], pictures: Any, params: SamplingParams, config: Any, shift: float
    ) -> Any:
        made: list[int] = []
        logprobs: list[dict[int, Logprob]] = []
        generator = self.torch.Generator()
        if params.seed is not None:
            generator.manual_seed(params.seed)
        reason, why, text, first = "length", None, "", None
        while len(made) < params.max_tokens and len(ids) + len(made) < config.max_model_len:
            if params.structured_outputs is not None:
                made, text = self._shaped(params.structured_outputs), ""
                logprobs, reason, first = [{}], "stop", self.logits(ids, pictures)
                break
            table = self.logits([*ids, *made], pictures)
            table[:, 7] += shift
            first = table if first is None else first
            scores = table[-1].log_softmax(-1)
            token = self._draw(table[-1], params, generator)
            made.append(token)
            logprobs.append(self._told(scores, token, params))
            if token in params.stop_token_ids or (token == self.tokenizer.eos_token_id and not params.ignore_eos):
                reason, why = "stop", token if token in params.stop_token_ids else None
                break
            if params.detokenize:
                text = self.tokenizer.decode(made, skip_special_tokens=params.skip_special_tokens)
            if found := next((stop for stop in params.stop if stop in text), None):
                reason, why = "stop", found
                break
        before = None
        if params.prompt_logprobs is not None:
            scores = first.log_softmax(-1)
            rows = enumerate(ids[1:])
            before = [None, *({token: Logprob(float(scores[row, token]), 1)} for row, token in rows)]
        output = SimpleNamespace(
            index=0,
            text=text,
            token_ids=tuple(made),
            logprobs=logprobs if params.logprobs is not None or params.logprob_token_ids else None,
            finish_reason=reason,
            stop_reason=why,
        )
        return SimpleNamespace(
            request_id=name, prompt_token_ids=list(ids), prompt_logprobs=before, outputs=[output], finished=True
        )

    def _shaped(self, form: Any) -> list[int]:
        """Return an answer of a form: the last choice, or an object with the first property of the schema."""
        text = form.choice[-1] if form.choice else json.dumps({next(iter(json.loads(form.json)["properties"])): "x"})
        return self.tokenizer.encode(text, add_special_tokens=False)

    def _draw(self, logits: Any, params: SamplingParams, generator: Any) -> int:
        if params.temperature == 0:
            return int(logits.argmax())
        chances = (logits / params.temperature).softmax(-1)
        ordered, order = chances.sort(descending=True)
        cut = (ordered.cumsum(-1) - ordered >= params.top_p) & (params.top_p < 1)
        if params.top_k > 0:
            cut |= self.torch.arange(len(ordered)) >= params.top_k
        return int(order[self.torch.multinomial(ordered.masked_fill(cut, 0.0), 1, generator=generator)])

    def _told(self, scores: Any, token: int, params: SamplingParams) -> dict[int, Logprob]:
        wanted = [token]
        if params.logprob_token_ids:
            wanted += params.logprob_token_ids
        elif params.logprobs:
            wanted += scores.topk(params.logprobs).indices.tolist()
        return {one: Logprob(float(scores[one])) for one in wanted}
