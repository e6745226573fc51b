"""`lexicon`: sentiment by the word list and rules of VADER; needs no model, no download and no accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from ..core.contracts import Options
from ..core.contracts.adapter import Identity, Limits, ModelAdapter, Worker
from ..core.contracts.errors import MissingExtraError, ModelError, PermanentError
from ..core.contracts.records import Classification, Classify
from .hf.files import digest_files

VERSION = "2"
PACKAGE = "vaderSentiment"
FILES = ("vaderSentiment.py", "vader_lexicon.txt", "emoji_utf8_lexicon.txt")
LABELS = {"negative": "neg", "neutral": "neu", "positive": "pos"}
"""Our labels, and VADER's names for them."""
UNKNOWN = "unknown"
"""The label of a single word that is not in the list: nothing is known of it, which is not the same as neutral."""


class LexiconOptions(Options, frozen=True, kw_only=True):
    """Settings of `lexicon`."""

    batch_items: Annotated[int, msgspec.Meta(ge=1)] = 256
    """Maximum number of texts per call."""


class Lexicon(ModelAdapter):
    """VADER: how much of an English text is negative, neutral and positive.

    The three proportions are returned as the probabilities of `negative`, `neutral` and `positive`. They are shares of
    the text's words, weighted by their strength, not calibrated probabilities; VADER's `compound` score is no
    probability and is left out. A single word that is not in the list is `unknown`. Source: Hutto and Gilbert 2014.
    """

    options: ClassVar[type[msgspec.Struct]] = LexiconOptions

    def __init__(self, options: LexiconOptions) -> None:
        """Find the package and pin its word lists; they are read at the first call.

        Raises:
            MissingExtraError: vaderSentiment is not installed.
        """
        version, folder = _installed()
        self.identity = Identity(
            adapter="lexicon",
            version=VERSION,
            model="vader",
            digest=digest_files(folder / name for name in FILES),
            settings={PACKAGE: version},
        )
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._worker: Worker | None = Worker("lexicon")
        self._analyzer: Any = None

    async def classify_batch(self, requests: Sequence[Classify]) -> Sequence[Classification | ModelError]:
        """Rate texts; a text pair, or a text without words, has a `PermanentError` in its place."""
        if self._worker is None:
            raise RuntimeError("this adapter is closed")
        return await self._worker.run(self._rate_all, requests)

    async def aclose(self) -> None:
        """End the thread, after any current call."""
        if self._worker is not None:
            worker, self._worker = self._worker, None
            worker.close()

    def _rate_all(self, requests: Sequence[Classify]) -> list[Classification | ModelError]:
        if self._analyzer is None:
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

            self._analyzer = SentimentIntensityAnalyzer()
        return [self._rate(request) for request in requests]

    def _rate(self, request: Classify) -> Classification | ModelError:
        if request.pair is not None:
            return PermanentError(
                "'lexicon' rates the sentiment of one text; use a model for pairs (hf-classifier) for a text pair.",
                code="request.text-pair",
            )
        scores = self._analyzer.polarity_scores(request.text)
        shares = {label: float(scores[name]) for label, name in LABELS.items()}
        # VADER rounds each share to three digits, so that their sum may miss 1 by a thousandth.
        total = sum(shares.values())
        if total == 0:
            return PermanentError(
                f"the text {request.text[:40]!r} has no words, so it has no sentiment.", code="request.empty"
            )
        if scores["neu"] == total and len(request.text.split()) == 1:
            return Classification(probabilities={UNKNOWN: 1.0})
        return Classification(probabilities={label: share / total for label, share in shares.items()})


def _installed() -> tuple[str, Path]:
    """Return the version of the package and its folder, without importing it."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtraError("adapter 'lexicon'", "lexicon")
    return metadata.version(PACKAGE), Path(found.origin).parent
