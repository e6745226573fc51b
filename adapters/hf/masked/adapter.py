"""`hf-masked`: pseudo-log-likelihood on any Transformers masked language model, local or from the hub."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from ....core.contracts.errors import ModelError, PermanentError
from ....core.contracts.model_files import ModelFiles, Recognised
from ....core.contracts.records import Embed, Embedding, PseudoLikelihood, TokenScores, Usage
from ...shared.torch import require_torch
from ..base import HFAdapter, HFOptions, Naming, check_known, not_finite, open_source, too_large
from ..checkpoint import has_words_head, is_plain, lacks_mask, lacks_words_head
from ..load import Kind
from ..loading import compile_model
from .model import MASKED, Loaded, Vector, encode, load_masked, mean_states
from .pll import Sentence, Tokens, plan_sentence
from .scorer import MaskedScorer, Values

NAMING = Naming("hf-masked", "1")


class HFMaskedOptions(HFOptions, frozen=True, kw_only=True):
    """Settings of `hf-masked`."""


class _Engine(NamedTuple):
    loaded: Loaded
    scorer: MaskedScorer


class HFMasked(HFAdapter[_Engine]):
    """A masked language model of Transformers, scoring one masked token at a time.

    Sources: Salazar et al. 2020 (`original`), Kauf and Ivanova 2023 (`within_word_l2r`).
    """

    options: ClassVar[type[msgspec.Struct]] = HFMaskedOptions
    kind: ClassVar[Kind | None] = MASKED

    def __init__(self, options: HFMaskedOptions) -> None:
        """Check the model's files and pin them; weights load at the first call.

        Raises:
            MissingExtraError: torch or Transformers is not installed.
            ModelLoadError: the model is not there, incomplete, or of another kind.
        """
        require_torch("adapter 'hf-masked'")
        self._source = open_source(options, MASKED)
        self._open(NAMING, options, self._source, {})

    @classmethod
    def unsuitable(cls, files: ModelFiles, options: HFMaskedOptions) -> str:
        """Return why a folder is no masked language model: its configuration, its head or its mask token."""
        if why := super().unsuitable(files, options):
            return why
        if lacks_words_head(files):
            return (
                f"the checkpoint {options.model!r} has no weights of a head that predicts words, so every score would "
                "be random. Give one that was saved as a masked language model, head included."
            )
        if lacks_mask(files):
            return f"the tokenizer of {options.model!r} has no mask token, so nothing can be masked."
        return ""

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Take folders whose configuration names a masked language model; plain encoders if saved with its head."""
        plain = [name for name in files.architectures if is_plain(name)]
        return () if plain and not has_words_head(files) else super().recognise(files)

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
        loaded, scorer = self._ready()
        plans = self._plan(requests, loaded)
        sentences = [plan for plan in plans if isinstance(plan, Sentence)]
        values = iter(scorer.score(sentences, stop) if sentences else ())
        return [plan if isinstance(plan, ModelError) else self._answer(plan, next(values)) for plan in plans]

    def _embed(self, requests: Sequence[Embed], stop: threading.Event) -> list[Embedding | ModelError]:
        loaded, _ = self._ready()
        tokens = encode(loaded.tokenizer, [request.text for request in requests])
        errors = [self._unsuitable(own, loaded) for own in tokens]
        fitting = [own.ids for own, error in zip(tokens, errors, strict=True) if error is None]
        vectors = iter(mean_states(loaded.model, fitting))
        return [error or self._vector(next(vectors), own) for own, error in zip(tokens, errors, strict=True)]

    def _vector(self, values: Vector, tokens: Tokens) -> Embedding | ModelError:
        if not np.isfinite(values).all():
            return not_finite("a vector that is", self.identity.model, self._loading.dtype)
        return Embedding(vector=tuple(values.tolist()), usage=Usage(input_tokens=len(tokens.ids)))

    def _unsuitable(self, tokens: Tokens, loaded: Loaded) -> PermanentError | None:
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
                f"the text has {len(tokens.ids)} tokens; {self.identity.model!r} takes at most {loaded.max_tokens}. "
                "Shorten it; it is not cut here, since that would score another text.",
                code="request.too-long",
            )
        check_known(tokens.ids, loaded.vocabulary, self.identity.model)

    def _answer(self, sentence: Sentence, values: Values | None) -> TokenScores | ModelError:
        if values is None:
            return too_large(f"one copy of a text of {len(sentence.ids)} tokens")
        if not np.isfinite(values).all():
            return not_finite("log-probabilities that are", self.identity.model, self._loading.dtype)
        scores = tuple(values.tolist())
        return TokenScores(
            log_probability=math.fsum(scores),
            count=len(scores),
            values=scores,
            usage=Usage(input_tokens=len(sentence.ids)),
        )

    def _growth(self) -> int:
        return 1 if self._engine is None else self._engine.scorer.budget.growth

    def _load(self) -> _Engine:
        loaded = load_masked(self._source, self._loading)
        tokenizer, budget = loaded.tokenizer, self._options.token_budget
        scorer = MaskedScorer(loaded.model, tokenizer.mask_token_id, tokenizer.pad_token_id, budget)
        compile_model(loaded.model, self._loading)
        return _Engine(loaded, scorer)
