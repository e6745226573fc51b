"""`lexicon`: sentiment by the word list and rules of VADER; needs no model, no download and no accelerator.

A single word that VADER's list does not have is looked up among 13,915 lemmas that people rated from unpleasant (1) to
pleasant (9).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import msgspec

from ..core.contracts import Options, harmless
from ..core.contracts.adapter import Identity, Limits, ModelAdapter, Worker
from ..core.contracts.errors import MissingExtraError, ModelError, PermanentError
from ..core.contracts.records import Classification, Classify, Scalar
from .hf.files import digest_files

VERSION = "3"
PACKAGE = "vaderSentiment"
FILES = ("vaderSentiment.py", "vader_lexicon.txt", "emoji_utf8_lexicon.txt")
NORMS: Final = ("labMTsimple", "data/WK/BRM-emot-submit.csv")
"""Package and file of the ratings of Warriner, Kuperman and Brysbaert (2013), Behavior Research Methods 45."""
MIDDLE = 5.0
"""Of their scale from 1 to 9; a mean rating that rounds to it is neutral."""
LABELS = {"negative": "neg", "neutral": "neu", "positive": "pos"}
"""Our labels, and VADER's names for them."""
UNKNOWN = "unknown"
"""The label of a single word that is in neither list: nothing is known of it, which is not the same as neutral."""


class LexiconOptions(Options, frozen=True, kw_only=True):
    """Settings of `lexicon`."""

    option_effects = harmless("batch_items")

    batch_items: Annotated[int, msgspec.Meta(ge=1)] = 256
    """Maximum number of texts per call."""


class Lexicon(ModelAdapter):
    """VADER: how much of an English text is negative, neutral and positive.

    The three proportions are returned as the probabilities of `negative`, `neutral` and `positive`. They are shares of
    the text's words, weighted by their strength, not calibrated probabilities; VADER's `compound` score is no
    probability and is left out. Source: Hutto and Gilbert 2014. A single word that is not in its list has the
    probabilities that people's mean rating of it, or of its lemma, rounds to less than the middle of the scale, to the
    middle, or to more (`Norms`); a word in neither list is `unknown`.
    """

    options: ClassVar[type[msgspec.Struct]] = LexiconOptions

    def __init__(self, options: LexiconOptions) -> None:
        """Find the package and pin its word lists; they are read at the first call.

        Raises:
            MissingExtraError: vaderSentiment is not installed.
        """
        version, folder = _installed()
        files = [folder / name for name in FILES]
        settings: dict[str, Scalar] = {PACKAGE: version}
        if (norms := _norms_file()) is not None:
            files.append(norms)
            settings |= {name: metadata.version(name) for name in (NORMS[0], "simplemma")}
        self.identity = Identity(
            adapter="lexicon",
            version=VERSION,
            model="vader" if norms is None else "vader, warriner-2013",
            digest=digest_files(files),
            settings=settings,
        )
        self._norms_file = norms
        self.limits = Limits(concurrency=1, batch_items=options.batch_items)
        self._worker: Worker | None = Worker("lexicon")
        self._analyzer: Any = None
        self._norms: Norms | None = None

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
            self._norms = None if self._norms_file is None else Norms(self._norms_file)
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
            rated = None if self._norms is None else self._norms.probabilities(request.text)
            return Classification(probabilities=rated or {UNKNOWN: 1.0})
        return Classification(probabilities={label: share / total for label, share in shares.items()})


class Norms:
    """How pleasant people find single words: mean, standard deviation and number of their ratings."""

    def __init__(self, path: Path) -> None:
        """Read the table."""
        from simplemma import lemmatize

        self._lemma = lemmatize
        with path.open(encoding="utf-8", newline="") as lines:
            columns = ("V.Mean.Sum", "V.SD.Sum", "V.Rat.Sum")
            rows = csv.DictReader(lines)
            self._ratings = {row["Word"].lower(): tuple(float(row[name]) for name in columns) for row in rows}

    def probabilities(self, text: str) -> dict[str, float] | None:
        """Return the probabilities of the labels, from the mean and its standard error; None for an unrated word."""
        word = text.strip().strip(".,;:!?\"'()").lower()
        found = self._ratings.get(word) or self._ratings.get(self._lemma(word, lang="en").lower())
        if found is None:
            return None
        mean, deviation, count = found
        scale = deviation * math.sqrt(2 / count)
        below, above = (0.5 * math.erfc(reach / scale) for reach in (mean - MIDDLE + 0.5, MIDDLE + 0.5 - mean))
        return {"negative": below, "neutral": max(0.0, 1 - below - above), "positive": above}


def _norms_file() -> Path | None:
    """Return the file of the ratings, without importing its package; None where it or the lemmas are not installed."""
    found, lemmas = (find_spec(name) for name in (NORMS[0], "simplemma"))
    if found is None or found.origin is None or lemmas is None:
        return None
    return Path(found.origin).parent / NORMS[1]


def _installed() -> tuple[str, Path]:
    """Return the version of the package and its folder, without importing it."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtraError("adapter 'lexicon'", "lexicon")
    return metadata.version(PACKAGE), Path(found.origin).parent
