"""Pairs scored by a causal model: the likelihood of the shared words U given the modified words M.

A pseudo-log-likelihood uses both sides of a word; a causal model uses only the words before it. Three scores of a
sentence:

- `left-to-right`: the sum of log P(word | all words before it) over the shared words. Later words have no effect: if M
  is last, U is scored without it, and the difference of a pair is zero.
- `sentence`: log P(U, M), the probability of the whole sentence. It includes log P(M | ...), so it prefers the more
  frequent M.
- `joint-minus-marginal`: log P(U, M) - log P(M), with P(M) as the sum of P(U', M) over every sentence of the same
  template with M in its place: log P(U | M, the sentence is one of the template's). It is exact for this set of
  sentences; the unrestricted P(U | M) would need all possible sentences around M.

The sentences of the templates are asked in a separate stage. The stage of the pairs contains some of them too, at no
cost, because equal requests are asked once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import polars as pl

from ...core.contracts import Counting, Trial, Unreadable
from ...core.contracts.errors import DataError
from ...core.contracts.records import AnyResponse, Likelihood, Scalar
from ...core.design import Cell, Design, Rows
from ...core.design.stage import FollowingStage
from ..shared.sentence_pairs import Spans, text_scores
from .asked_pairs import AskedPairs, AskedStage
from .pairs_design import FACTORS

if TYPE_CHECKING:
    from ...core.contracts.records import Request

Scoring = Literal["pll", "joint-minus-marginal", "left-to-right", "sentence"]
FRAME = ("axis", "template", "descriptors")
"""Sentences with equal values of these and of the side are alternatives to each other."""


class AlternativesStage(FollowingStage):
    """Every sentence of the pairs' templates."""

    name: ClassVar[str] = "alternatives"
    operation: ClassVar[type[Request]] = Likelihood
    factors: ClassVar[tuple[str, ...]] = (*FRAME, "side")
    outcomes: ClassVar[tuple[str, ...]] = ("log_sentence",)
    counting: ClassVar[Counting] = Counting(by=("axis",), unit="sentence")

    def __init__(self, pairs: AskedPairs, before: str) -> None:
        self._pairs, self._before = pairs, before

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield one trial per sentence; a sentence of several pairs occurs once.

        A sentence is numbered by its place among all sentences of its template, whichever are asked.

        Raises:
            DataError: a pair's template has no other sentence to sum over.
        """
        everything = self._pairs.everything
        pairs = self._pairs.rows if self.followed is None else self.followed.rows
        asked = _frames(self._pairs.design, pairs)
        wanted = dict(zip(asked, self._pairs.design.column("pair", pairs), strict=True))
        rows = np.flatnonzero([frame in wanted for frame in _frames(everything, None)])
        sentences: dict[tuple[Scalar, ...], dict[str, bool]] = defaultdict(dict)
        keys = zip(*(everything.column(name, rows) for name in self.factors), strict=True)
        for key, cell in zip(keys, everything.cells(rows), strict=True):
            sentences[key].setdefault(self._pairs.sentence(cell).text, self._pairs.asked(cell))
        for key, texts in sentences.items():
            if sum(texts.values()) < 2:
                raise DataError(_alone(wanted[key[:-1]], key), code="data.incomplete-pair")
            name = "/".join(str(part) for part in key)
            for number, text in ((at, text) for at, (text, asked) in enumerate(texts.items()) if asked):
                factors = dict(zip(self.factors, key, strict=True))
                yield Trial(f"{name}/{number}", factors, _request(self._before, (text,)))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the log-probability of the sentence."""
        found = text_scores(response, 1)
        return found if isinstance(found, Unreadable) else {"log_sentence": found[0][0]}


class LikelihoodPairStage(AskedStage):
    """Base of the scores of pairs by likelihoods."""

    name: ClassVar[str] = "pairs"
    operation: ClassVar[type[Request]] = Likelihood
    outcomes: ClassVar[tuple[str, ...]] = ("log_probability", "tokens", "log_sentence")

    def __init__(self, pairs: AskedPairs, before: str) -> None:
        super().__init__(pairs)
        self._before = before

    def request(self, cell: Cell) -> Likelihood:
        """Return the request of a sentence."""
        return _request(self._before, (self._pairs.sentence(cell).text,))


class JointStage(LikelihoodPairStage):
    """The log-probability of each sentence, minus that of its modified words over the template's alternatives."""

    factors: ClassVar[tuple[str, ...]] = (*FACTORS, "log_modified")

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield two trials per pair; `log_modified` is log P(M), None if a sentence of its template is missing."""
        modified = _marginals(earlier.get(AlternativesStage.name))
        for trial in super().trials(earlier):
            key = tuple(trial.factors[name] for name in AlternativesStage.factors)
            yield Trial(trial.id, {**trial.factors, "log_modified": modified.get(key)}, trial.request)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read log P(U, M) - log P(M) in nats."""
        found, modified = text_scores(response, 1), factors["log_modified"]
        if isinstance(found, Unreadable):
            return found
        if not isinstance(modified, float):
            return Unreadable("a sentence of the template is missing")
        log_sentence, tokens = found[0]
        return {"log_probability": log_sentence - modified, "tokens": tokens, "log_sentence": log_sentence}


class LeftToRightStage(LikelihoodPairStage):
    """The shared words given all words before them; or the whole sentence, from the same requests."""

    def __init__(self, pairs: AskedPairs, before: str, whole: bool = False) -> None:
        super().__init__(pairs, before)
        self._whole = whole

    def request(self, cell: Cell) -> Likelihood:
        """Return the request of the beginnings of a sentence."""
        return _request(self._before, prefixes(*self._pairs.sentence(cell)))

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the alternating sum of the beginnings; for the whole sentence, the first one."""
        found = text_scores(response)
        if isinstance(found, Unreadable):
            return found
        chosen = found[:1] if self._whole else found
        total, tokens = (sum(one[part] * (-1) ** n for n, one in enumerate(chosen)) for part in (0, 1))
        return {"log_probability": float(total), "tokens": int(tokens), "log_sentence": found[0][0]}


def prefixes(text: str, given: Spans) -> tuple[str, ...]:
    """Return beginnings of a text; the alternating sum of their log-probabilities is the score of the shared words.

    The beginnings end at the ends of shared and of modified words, the longest first. A text that ends with modified
    words occurs twice, and cancels.
    """
    ends = [len(text)]
    if given and given[-1][1] == len(text):
        ends.append(len(text))
    for start, end in reversed(_joined(text, given)):
        ends += [] if end == len(text) else [end]
        ends += [start]
    beginnings = (text[:end].rstrip() if end < len(text) else text for end in ends)
    return tuple(beginning for beginning in beginnings if beginning)


def _joined(text: str, given: Spans) -> list[tuple[int, int]]:
    """Return the modified spans; spans with only blanks between them are joined."""
    found: list[tuple[int, int]] = []
    for start, end in given:
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _frames(design: Design, rows: Rows | None) -> list[tuple[Scalar, ...]]:
    """Return the template and descriptors of trials."""
    return list(zip(*(design.column(name, rows) for name in FRAME), strict=True))


def _alone(pair: Scalar, frame: Sequence[Scalar]) -> str:
    _, template, descriptors, _ = frame
    return (
        f"pair {pair!r} is the only one of template {template!r} with {descriptors!r}; it has no alternatives. Give "
        "more sentences of one template (column 'template'), or set scoring=left-to-right."
    )


def _request(before: str, texts: tuple[str, ...]) -> Likelihood:
    return Likelihood(prompt=before, continuations=texts)


def _marginals(alternatives: pl.DataFrame | None) -> dict[tuple[Scalar, ...], float]:
    """Return log P(M) per frame and side: the logarithm of the sum over its sentences, if all have answers."""
    if alternatives is None or alternatives.is_empty():
        return {}
    score = pl.col("log_sentence")
    most = score.max()
    summed = alternatives.group_by(*AlternativesStage.factors).agg(
        log_modified=most + (score - most).exp().sum().log(),
        whole=(pl.col("status") == "ok").all() & ~score.has_nulls(),
    )
    rows = summed.filter("whole").select(*AlternativesStage.factors, "log_modified").iter_rows()
    return {row[:-1]: row[-1] for row in rows}
