"""`hf-vlm`: answers and likelihoods of Transformers vision-language models; an image is encoded once."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from ..core.adapter import Identity, Limits
from ..core.contracts import Options
from ..core.errors import MissingExtraError, ModelError, PermanentError
from ..core.records import Generate, Generation, Likelihood, Likelihoods, Prompt, TokenScores, Usage
from ._hf_files import find_source
from ._hf_kinds import Kind, check_kind
from ._refusals import RULE_VERSION, reads_as_refusal
from ._threaded import ThreadedAdapter
from ._torch import DType, release_memory, require_torch
from ._vlm_engine import Asked, Engine
from ._vlm_images import open_image
from ._vlm_model import MORE, Encoded, Loaded, encode, find_template, images_of, load_vlm, render
from ._vlm_trial import can_share

VERSION = "1"
Positive = Annotated[int, msgspec.Meta(ge=1)]

_OTHER = ("ForMaskedLM", "ForCausalLM", "ForSequenceClassification", "ForTokenClassification", "ForImageClassification")
KIND = Kind("vision-language model", "AutoModelForImageTextToText", lambda kind: not kind.endswith(_OTHER))


class HFVLMOptions(Options, frozen=True, kw_only=True):
    """Settings of `hf-vlm`."""

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes its main branch. The commit it stands for is recorded."""
    dtype: DType = "float32"
    """Precision of weights and activations; log-probabilities are always taken in float32."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first there is."""
    token_budget: Positive | None = None
    """Tokens of questions per forward pass, beside their image: bounds memory, changes no answer. None takes 512 on a
    processor and 4,096 on an accelerator."""
    batch_items: Positive = 512
    """Requests per call: those about one image share it."""
    refusal_rule: bool = True
    """Take answers that open like a refusal as refused."""
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    allow_pickle: bool = False
    """Read pickled weights where there are no safetensors; a pickle can run code when read."""
    threads: Positive | None = None
    """CPU threads of this model's forward passes; None leaves torch's own choice."""


class _Work(NamedTuple):
    """One text to run: a prompt, or a prompt with one of its continuations."""

    request: int
    asked: Asked
    start: int
    """First token that is scored."""


class HFVLM(ThreadedAdapter):
    """A vision-language model of Transformers (LLaVA 1.5, Liu et al. 2024, and others of its kind)."""

    options: ClassVar[type[msgspec.Struct]] = HFVLMOptions

    def __init__(self, options: HFVLMOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch, Transformers or Pillow is not installed.
            ModelLoadError: the model is not there, incomplete, of another kind, or without a chat template.
        """
        require_torch("adapter 'hf-vlm'", "vlm")
        if find_spec("PIL") is None:
            raise MissingExtraError("adapter 'hf-vlm'", "vlm")
        trusted = options.trust_remote_code
        self._options = options
        self._source = find_source(
            options.model, options.revision, allow_pickle=options.allow_pickle, trust_remote_code=trusted, more=MORE
        )
        check_kind(KIND, self._source.config, self._source.name, trust_remote_code=trusted)
        self._template = find_template(self._source)
        self.identity = Identity(
            adapter="hf-vlm",
            version=VERSION,
            model=self._source.name,
            digest=self._source.digest,
            settings={
                "dtype": options.dtype,
                "trust_remote_code": trusted,
                "refusal_rule": RULE_VERSION if options.refusal_rule else 0,
                "chat_template": hashlib.sha256(self._template.encode()).hexdigest(),
            },
        )
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("hf-vlm")
        self._held: tuple[Loaded, Engine] | None = None

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Answer messages, images among them; a request that cannot be answered has its error in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._generate, requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations; messages are followed by the model's own start of an answer.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._likelihood, requests)

    def _generate(self, requests: Sequence[Generate], stop: threading.Event) -> list[Generation | ModelError]:
        loaded, engine = self._load()
        found: dict[int, Generation | ModelError] = {}

        def answer(works: list[_Work]) -> None:
            asked = [work.asked for work in works]
            made = engine.generate(asked, [requests[work.request] for work in works], stop)
            for work, one in zip(works, made, strict=True):
                found[work.request] = self._judged(one.finish(loaded.processor.tokenizer))

        self._by_image([(request.messages, None) for request in requests], answer, found)
        return [found[number] for number in range(len(requests))]

    def _likelihood(self, requests: Sequence[Likelihood], stop: threading.Event) -> list[Likelihoods | ModelError]:
        _, engine = self._load()
        found: dict[int, Likelihoods | ModelError] = {}
        scores: dict[int, list[TokenScores]] = {}

        def answer(works: list[_Work]) -> None:
            values = engine.score([work.asked for work in works], [work.start for work in works], stop)
            for work, row in zip(works, values, strict=True):
                scores.setdefault(work.request, []).append(self._token_scores(work, row))

        self._by_image([(request.prompt, request.continuations) for request in requests], answer, found)
        for number in range(len(requests)):
            if number not in found:
                rows = tuple(scores.get(number, ()))
                found[number] = Likelihoods(
                    scores=rows, usage=Usage(input_tokens=sum(r.usage.input_tokens for r in rows))
                )
                if not all(math.isfinite(row.log_probability) for row in rows):
                    found[number] = self._not_finite()
        return [found[number] for number in range(len(requests))]

    def _by_image(
        self,
        prompts: Sequence[tuple[Prompt, Sequence[str] | None]],
        answer: Callable[[list[_Work]], None],
        found: dict[int, Any],
    ) -> None:
        """Bring prompts to `answer`, those with the same images and the same tokens before them together."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for number, (prompt, _) in enumerate(prompts):
            groups.setdefault(images_of(prompt), []).append(number)
        for images, numbers in groups.items():
            stems: dict[tuple[int, ...], list[_Work]] = {}
            try:
                opened = [open_image(sha256, self.blobs) for sha256 in images]
            except ModelError as error:
                found.update(dict.fromkeys(numbers, error))
                continue
            for number in numbers:
                try:
                    for work in self._works(number, *prompts[number], (images, opened)):
                        stems.setdefault(work.asked.prompt.ids[: work.asked.prompt.stem], []).append(work)
                except ModelError as error:
                    found[number] = error
            for works in stems.values():
                wanted = [work for work in works if work.request not in found]
                try:
                    if wanted:
                        answer(wanted)
                except ModelError as error:
                    found.update(dict.fromkeys((work.request for work in wanted), error))

    def _works(
        self,
        number: int,
        prompt: Prompt,
        continuations: Sequence[str] | None,
        images: tuple[tuple[str, ...], list[Any]],
    ) -> list[_Work]:
        loaded, _ = self._load()
        names, opened = images
        text = render(loaded, prompt)
        context = encode(loaded, text, opened)
        if continuations is None:
            return [_Work(number, Asked(names, context), len(context.ids))]
        works = []
        for continuation in continuations:
            whole = encode(loaded, text + continuation, opened)
            works.append(_Work(number, Asked(names, whole), _boundary(context, whole, continuation)))
        return works

    def _judged(self, answer: Generation) -> Generation:
        refused = self._options.refusal_rule and reads_as_refusal(answer.text)
        return msgspec.structs.replace(answer, status="refused") if refused else answer

    def _token_scores(self, work: _Work, values: Sequence[float]) -> TokenScores:
        usage = Usage(input_tokens=len(work.asked.prompt.ids))
        return TokenScores(log_probability=math.fsum(values), count=len(values), values=tuple(values), usage=usage)

    def _not_finite(self) -> PermanentError:
        return PermanentError(
            f"{self.identity.model!r} gives log-probabilities that are not finite in {self._options.dtype}. "
            "Use dtype = 'float32' or 'bfloat16'."
        )

    def _load(self) -> tuple[Loaded, Engine]:
        if self._held is None:
            if self._options.threads is not None:
                import torch

                torch.set_num_threads(self._options.threads)
            loaded = load_vlm(self._source, self._template, self._options.dtype, self._options.device)
            shares = can_share(loaded, self._source.name)
            self._held = loaded, Engine(loaded, shares, self._options.token_budget)
        return self._held

    def _free(self) -> None:
        if self._held is not None:
            device = self._held[0].device
            self._held[1].clear()
            self._held = None
            release_memory(device)


def _boundary(context: Encoded, whole: Encoded, continuation: str) -> int:
    """Return the first token of `whole` that is not the context's: there the continuation starts.

    Where a token spans both, it is the first one scored: what cannot be told apart is scored together.

    Raises:
        PermanentError: the continuation adds no token.
    """
    shared = zip(context.ids, whole.ids, strict=False)
    start = next((place for place, (one, other) in enumerate(shared) if one != other), len(context.ids))
    if start >= len(whole.ids) or start < 1:
        raise PermanentError(f"the continuation {continuation!r} adds no token of its own that could be scored.")
    return start
