"""`hf-masked`: pseudo-log-likelihood on any Transformers masked language model, local or from the hub."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ..core.adapter import Identity, Limits
from ..core.contracts import Options
from ..core.errors import ModelError, PermanentError
from ..core.records import Embed, Embedding, PseudoLikelihood, TokenScores, Usage
from ._hf_files import find_source
from ._hf_kinds import check_kind
from ._masked_embed import Vector, mean_states
from ._masked_model import MASKED, Loaded, encode, load_masked
from ._masked_scorer import MaskedScorer, Values
from ._pll import Sentence, Tokens, plan_sentence
from ._threaded import ThreadedAdapter
from ._torch import DType, release_memory, require_torch

VERSION = "1"
Positive = Annotated[int, msgspec.Meta(ge=1)]


class HFMaskedOptions(Options, frozen=True, kw_only=True):
    """Settings of `hf-masked`."""

    model: str
    """A directory, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Branch, tag or commit of a hub name; None takes its main branch. The commit it stands for is recorded."""
    dtype: DType = "float32"
    """Precision of weights and activations; log-probabilities are always taken in float32."""
    device: str = "auto"
    """`cuda`, `cuda:1`, `mps`, `cpu`; `auto` takes the first there is."""
    token_budget: Positive | None = None
    """Tokens per forward pass, padding included: bounds memory, changes no answer. None takes 8,192 on a processor
    and 65,536 on an accelerator."""
    batch_items: Positive = 256
    """Sentences per call."""
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    allow_pickle: bool = False
    """Read pickled weights where there are no safetensors; a pickle can run code when read."""
    threads: Positive | None = None
    """CPU threads of this model's forward passes; None leaves torch's own choice."""


class HFMasked(ThreadedAdapter):
    """A masked language model of Transformers, scoring one masked token at a time.

    Sources: Salazar et al. 2020 (`original`), Kauf and Ivanova 2023 (`within_word_l2r`).
    """

    options: ClassVar[type[msgspec.Struct]] = HFMaskedOptions

    def __init__(self, options: HFMaskedOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch or Transformers is not installed.
            ModelLoadError: the model is not there, incomplete, or of another kind.
        """
        require_torch("adapter 'hf-masked'")
        trusted = options.trust_remote_code
        self._options = options
        self._source = find_source(
            options.model, options.revision, allow_pickle=options.allow_pickle, trust_remote_code=trusted
        )
        check_kind(MASKED, self._source.config, self._source.name, trust_remote_code=trusted)
        self.identity = Identity(
            adapter="hf-masked",
            version=VERSION,
            model=self._source.name,
            digest=self._source.digest,
            settings={"dtype": options.dtype, "trust_remote_code": trusted},
        )
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._start("hf-masked")
        self._engine: tuple[Loaded, MaskedScorer] | None = None

    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        """Score sentences; a request that cannot be scored has a `PermanentError` in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._score, requests)

    async def embed_batch(self, requests: Sequence[Embed]) -> Sequence[Embedding | ModelError]:
        """Give the mean of the last hidden states over all tokens; a text that is too long has an error in its place.

        Raises:
            ModelLoadError: the weights cannot be loaded (first call).
        """
        return await self._run(self._embed, requests)

    def _score(self, requests: Sequence[PseudoLikelihood], stop: threading.Event) -> list[TokenScores | ModelError]:
        loaded, scorer = self._engine = self._engine or self._load()
        plans = self._plan(requests, loaded)
        sentences = [plan for plan in plans if isinstance(plan, Sentence)]
        values = iter(scorer.score(sentences, stop) if sentences else ())
        return [plan if isinstance(plan, ModelError) else self._answer(plan, next(values)) for plan in plans]

    def _embed(self, requests: Sequence[Embed], stop: threading.Event) -> list[Embedding | ModelError]:
        loaded, _ = self._engine = self._engine or self._load()
        tokens = encode(loaded.tokenizer, [request.text for request in requests])
        errors = [self._misfit(own, loaded) for own in tokens]
        fitting = [own.ids for own, error in zip(tokens, errors, strict=True) if error is None]
        vectors = iter(mean_states(loaded.model, fitting))
        return [error or self._vector(next(vectors), own) for own, error in zip(tokens, errors, strict=True)]

    def _vector(self, values: Vector, tokens: Tokens) -> Embedding | ModelError:
        if not np.isfinite(values).all():
            return PermanentError(f"{self.identity.model!r} gives a vector that is not finite. Use dtype = 'float32'.")
        return Embedding(vector=tuple(values.tolist()), usage=Usage(input_tokens=len(tokens.ids)))

    def _misfit(self, tokens: Tokens, loaded: Loaded) -> PermanentError | None:
        try:
            self._check_size(tokens, loaded)
        except PermanentError as error:
            return error
        return None

    def _plan(self, requests: Sequence[PseudoLikelihood], loaded: Loaded) -> list[Sentence | ModelError]:
        texts = list(dict.fromkeys(text for r in requests for text in (r.text, r.contrast) if text is not None))
        tokens = dict(zip(texts, encode(loaded.tokenizer, texts), strict=True))
        return [self._plan_one(request, tokens, loaded) for request in requests]

    def _plan_one(self, request: PseudoLikelihood, tokens: dict[str, Tokens], loaded: Loaded) -> Sentence | ModelError:
        own = tokens[request.text]
        try:
            self._check_size(own, loaded)
            return plan_sentence(request, own, None if request.contrast is None else tokens[request.contrast])
        except ModelError as error:
            return error

    def _check_size(self, tokens: Tokens, loaded: Loaded) -> None:
        if loaded.max_tokens is not None and len(tokens.ids) > loaded.max_tokens:
            raise PermanentError(
                f"the text has {len(tokens.ids)} tokens, {self.identity.model!r} takes at most {loaded.max_tokens}. "
                "Shorten it; cutting it here would score another text."
            )
        if max(tokens.ids, default=0) >= loaded.vocabulary:
            raise PermanentError(
                f"the tokenizer of {self.identity.model!r} gives token {max(tokens.ids)}, "
                f"the model knows {loaded.vocabulary}: they do not belong together."
            )

    def _answer(self, sentence: Sentence, values: Values | None) -> TokenScores | ModelError:
        if values is None:
            return PermanentError(
                f"one copy of a text of {len(sentence.ids)} tokens does not fit into this device's memory. "
                "Use device = 'cpu' or a smaller dtype."
            )
        if not np.isfinite(values).all():
            return PermanentError(
                f"{self.identity.model!r} gives log-probabilities that are not finite in {self._options.dtype}. "
                "Use dtype = 'float32'."
            )
        scores = tuple(values.tolist())
        return TokenScores(
            log_probability=math.fsum(scores),
            count=len(scores),
            values=scores,
            usage=Usage(input_tokens=len(sentence.ids)),
        )

    def _load(self) -> tuple[Loaded, MaskedScorer]:
        if self._options.threads is not None:
            import torch

            torch.set_num_threads(self._options.threads)
        loaded = load_masked(self._source, self._options.dtype, self._options.device)
        tokenizer = loaded.tokenizer
        scorer = MaskedScorer(loaded.model, tokenizer.mask_token_id, tokenizer.pad_token_id, self._options.token_budget)
        return loaded, scorer

    def _free(self) -> None:
        if self._engine is not None:
            device = self._engine[0].device
            self._engine = None
            release_memory(device)
