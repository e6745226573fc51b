"""`hf-causal`: answers and likelihoods of any Transformers causal language model, local or from the hub."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from ..core.adapter import Identity, Limits
from ..core.contracts import Options
from ..core.errors import ModelError, PermanentError
from ..core.records import Generate, Generation, Likelihood, Likelihoods, Prompt, TokenScores, TopToken, Usage
from ._causal_decoder import Decoder, Task, Written
from ._causal_model import CAUSAL, Loaded, load_causal
from ._causal_prompt import Chat, Rendered, choose_style
from ._causal_sampling import choose
from ._causal_scorer import CausalScorer, Values
from ._causal_text import Encoder, Row
from ._hf_files import find_file, find_source
from ._hf_kinds import check_kind
from ._threaded import ThreadedAdapter
from ._torch import DType, release_memory, require_torch

VERSION = "1"
Positive = Annotated[int, msgspec.Meta(ge=1)]
_MORE = ("generation_config.json", "chat_template*")


class HFCausalOptions(Options, frozen=True, kw_only=True):
    """Settings of `hf-causal`."""

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes its main branch. The commit it stands for is recorded."""
    dtype: DType = "float32"
    """Precision of weights and activations; log-probabilities are always taken in float32."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first there is."""
    token_budget: Positive | None = None
    """Tokens of a forward pass and its cache: bounds memory, changes no answer. None takes 8,192 on a processor and
    65,536 on an accelerator."""
    batch_items: Positive = 256
    """Requests per call."""
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    allow_pickle: bool = False
    """Read pickled weights where there are no safetensors; a pickle can run code when read."""
    threads: Positive | None = None
    """CPU threads of this model's forward passes; None leaves torch's own choice."""
    system_prompt: str | None = None
    """Put before every prompt: as system message, or in front of the text."""
    max_new_tokens: Positive = 256
    """Tokens of an answer where the request names no limit."""
    chat: Chat = "auto"
    """How messages become text: by the model's chat template where there is one (`auto`), always by it, or `plain`."""


class _Engine(NamedTuple):
    loaded: Loaded
    encoder: Encoder
    scorer: CausalScorer
    decoder: Decoder


class HFCausal(ThreadedAdapter):
    """A causal language model of Transformers."""

    options: ClassVar[type[msgspec.Struct]] = HFCausalOptions

    def __init__(self, options: HFCausalOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch or Transformers is not installed.
            ModelLoadError: the model is not there, incomplete, of another kind, or lacks the chat template asked for.
        """
        require_torch("adapter 'hf-causal'")
        trusted = options.trust_remote_code
        self._options = options
        self._source = find_source(
            options.model, options.revision, allow_pickle=options.allow_pickle, trust_remote_code=trusted, more=_MORE
        )
        check_kind(CAUSAL, self._source.config, self._source.name, trust_remote_code=trusted)
        self._style = choose_style(options.chat, options.system_prompt, self._source)
        own = {"dtype": options.dtype, "trust_remote_code": trusted, "max_new_tokens": options.max_new_tokens}
        self.identity = Identity(
            adapter="hf-causal",
            version=VERSION,
            model=self._source.name,
            digest=self._source.digest,
            settings={**own, **self._style.settings()},
        )
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("hf-causal")
        self._engine: _Engine | None = None
        self._defaults: dict[str, Any] = {}

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages; a request that cannot be answered has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._generate, requests)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations; a request that cannot be scored has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._score, requests)

    def _score(self, requests: Sequence[Likelihood], stop: threading.Event) -> list[Likelihoods | ModelError]:
        engine = self._engine = self._engine or self._load()
        plans = [self._plan_rows(request, engine) for request in requests]
        rows = [plan for plan in plans if not isinstance(plan, ModelError)]
        values = iter(engine.scorer.score(rows, stop) if rows else ())
        return [plan if isinstance(plan, ModelError) else self._likelihoods(plan, next(values)) for plan in plans]

    def _generate(self, requests: Sequence[Generate], stop: threading.Event) -> list[Generation | ModelError]:
        engine = self._engine = self._engine or self._load()
        plans = [self._plan_task(request, engine) for request in requests]
        tasks = [plan for plan in plans if isinstance(plan, Task)]
        written = iter(engine.decoder.write(tasks, stop) if tasks else ())
        pairs = zip(requests, plans, strict=True)
        return [
            plan if isinstance(plan, ModelError) else self._generation(request, plan, next(written))
            for request, plan in pairs
        ]

    def _plan_rows(self, request: Likelihood, engine: _Engine) -> list[Row] | ModelError:
        try:
            if not request.continuations:
                raise PermanentError("there is no continuation to score.")
            prompt = self._render(request.prompt, engine)
            rows = engine.encoder.rows(prompt.text, request.continuations, prompt.special)
            for row in rows:
                self._check_size(row.ids, 0, engine.loaded)
            return rows
        except ModelError as error:
            return error

    def _plan_task(self, request: Generate, engine: _Engine) -> Task | ModelError:
        sampling = request.sampling
        try:
            choice = choose(request, self._defaults)
            most = self._options.max_new_tokens if sampling.max_tokens is None else sampling.max_tokens
            if most < 1:
                raise PermanentError(f"max_tokens is {most}. Give 1 or more.")
            if "" in sampling.stop:
                raise PermanentError("a stop text is empty: every answer would end before it begins. Leave it out.")
            prompt = self._render(request.messages, engine)
            ids = engine.encoder.encode([prompt.text], prompt.special)[0]
            self._check_size(ids, 1, engine.loaded)
        except ModelError as error:
            return error
        if engine.loaded.max_tokens is not None:
            most = min(most, engine.loaded.max_tokens - len(ids))
        ended = self._stopper(sampling.stop, ids, engine) if sampling.stop else None
        return Task(tuple(ids), choice, most, ended, max(0, request.top_logprobs))

    def _render(self, prompt: Prompt, engine: _Engine) -> Rendered:
        return self._style.render(prompt, engine.loaded.tokenizer)

    def _stopper(self, stops: Sequence[str], ids: Sequence[int], engine: _Engine) -> Callable[[list[int]], bool]:
        return lambda answer: cut_at(engine.encoder.text(ids, answer), stops) is not None

    def _check_size(self, ids: Sequence[int], room: int, loaded: Loaded) -> None:
        name = self.identity.model
        if not ids:
            raise PermanentError("the prompt has no token, so there is nothing to continue. Give a text.")
        if loaded.max_tokens is not None and len(ids) + room > loaded.max_tokens:
            raise PermanentError(
                f"the text has {len(ids)} tokens{' and leaves no room to answer' if room else ''}: {name!r} takes at "
                f"most {loaded.max_tokens}. Shorten it; cutting it here would ask another question."
            )
        if max(ids) >= loaded.vocabulary:
            raise PermanentError(
                f"the tokenizer of {name!r} gives token {max(ids)}, the model knows {loaded.vocabulary}: "
                "they do not belong together."
            )

    def _likelihoods(self, rows: Sequence[Row], values: Sequence[Values] | None) -> Likelihoods | ModelError:
        if values is None:
            return self._too_large(max(len(row.ids) for row in rows))
        if not all(np.isfinite(part).all() for part in values):
            return self._not_finite()
        split = min(row.split for row in rows)
        return Likelihoods(
            scores=tuple(
                TokenScores(log_probability=math.fsum(part), count=len(part), values=tuple(part.tolist()))
                for part in values
            ),
            usage=Usage(input_tokens=split + sum(len(row.ids) - split for row in rows)),
        )

    def _generation(self, request: Generate, task: Task, written: Written | None) -> Generation | ModelError:
        if written is None:
            return self._too_large(len(task.ids) + task.most)
        if written.broken or self._engine is None:
            return self._not_finite()
        encoder = self._engine.encoder
        text = encoder.text(task.ids, written.ids)
        end = cut_at(text, request.sampling.stop)
        return Generation(
            text=text[:end],
            finish_reason=written.reason,
            top_logprobs=tuple(tuple(TopToken(encoder.token(i), p) for i, p in tops) for tops in written.tops),
            usage=Usage(input_tokens=len(task.ids), output_tokens=len(written.ids)),
        )

    def _too_large(self, tokens: int) -> PermanentError:
        return PermanentError(
            f"a text of {tokens} tokens does not fit into this device's memory. Use device = 'cpu' or a smaller dtype."
        )

    def _not_finite(self) -> PermanentError:
        return PermanentError(
            f"{self.identity.model!r} gives log-probabilities that are not finite in {self._options.dtype}. "
            "Use dtype = 'float32'."
        )

    def _load(self) -> _Engine:
        if self._options.threads is not None:
            import torch

            torch.set_num_threads(self._options.threads)
        loaded = load_causal(self._source, self._options.dtype, self._options.device)
        if path := find_file(self._source, "generation_config.json"):
            self._defaults = json.loads(path.read_text(encoding="utf-8"))
        scorer = CausalScorer(loaded.head, self._options.token_budget)
        decoder = Decoder(loaded.head, end_tokens(loaded), self._options.token_budget, caches=scorer.shares)
        return _Engine(loaded, Encoder(loaded.tokenizer), scorer, decoder)

    def _free(self) -> None:
        if self._engine is not None:
            device = self._engine.loaded.device
            self._engine = None
            release_memory(device)


def end_tokens(loaded: Loaded) -> frozenset[int]:
    """Return the tokens that end an answer: those of generation_config.json, and the tokenizer's own."""
    own = getattr(loaded.head.model, "generation_config", None)
    named = getattr(own, "eos_token_id", None)
    found = list(named) if isinstance(named, list | tuple) else [named]
    return frozenset(token for token in [*found, loaded.tokenizer.eos_token_id] if token is not None)


def cut_at(text: str, stops: Sequence[str]) -> int | None:
    """Return where the first of the stop strings begins in `text`; None if there is none."""
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)
