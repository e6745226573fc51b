"""Shares, means and differences by the verdict of a run, corrected by the labels of a sample of its answers.

Where the answers have clusters, an interval is for other clusters like them; beside it stands the one for the answers
of this run alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from ..statistics.clusters import Array, spread, widened
from .design import Design, Drawn, Stratum
from .labelled import chances_of
from .powered import Side, least_step, within_population
from .rates import Part, Rate

LEVEL = 0.95
Inside = Callable[[Stratum], bool]


class EstimateRow(msgspec.Struct, frozen=True):
    """A share or mean of one group, or a difference of two groups, by the verdict and corrected by labels."""

    group: str
    """Empty: all answers."""
    label: str
    raw: float | None
    """None: no verdict means the label."""
    rate: Rate
    alone: Rate | None = None
    """Of the answers of this run alone; None if `rate` is that."""
    problem: str = ""
    """Why it is not corrected."""


class Outcome(NamedTuple):
    """What is averaged, by the verdict and by people."""

    name: str
    strata: Array
    """Shape (strata,), mean by the verdict."""
    known: np.ndarray
    """Shape (strata,), whether the verdict says it."""
    verdicts: Array
    """Shape (labelled,), by the verdict of each labelled answer."""
    labels: Array
    """Shape (labelled,), by people."""
    ends: tuple[float, float]
    """Least and greatest value."""
    expected: Array
    """Shape (strata,), the mean that the labels of each stratum lead to expect."""
    variances: Array
    """Shape (strata,), of the answers of each stratum."""


class Tally(msgspec.Struct, frozen=True, dict=True):
    """The labels of a sample by stratum."""

    design: Design
    labels: tuple[str, ...]
    gold: Mapping[str, str]
    """Label by item."""

    @cached_property
    def items(self) -> list[Drawn]:
        """Return the drawn answers that have a label."""
        return [drawn for drawn in self.design.items if drawn.item in self.gold]

    @cached_property
    def counts(self) -> Counter[tuple[int, str]]:
        """Return the labels by stratum."""
        return Counter((drawn.stratum, self.gold[drawn.item]) for drawn in self.items)

    @cached_property
    def sizes(self) -> Array:
        """Return the answers of each stratum."""
        return np.array([stratum.size for stratum in self.design.strata], dtype=np.float64)

    @cached_property
    def verdicts(self) -> tuple[str, ...]:
        """Return the verdicts that occur."""
        return tuple(dict.fromkeys(stratum.verdict for stratum in self.design.strata))

    @cached_property
    def _strata_of_items(self) -> np.ndarray:
        return np.array([drawn.stratum for drawn in self.items], dtype=np.int64)

    @cached_property
    def _chances(self) -> Array:
        return np.array([chance for _, chance in chances_of(self.design, self.gold)])

    def parts(self, wanted: Inside) -> list[Part]:
        """Return the strata that are wanted, with their labels."""
        return [
            Part(stratum.size, tuple(self.counts[number, label] for label in self.labels))
            for number, stratum in enumerate(self.design.strata)
            if wanted(stratum)
        ]

    def outcome(self, label: str) -> Outcome:
        """Return whether an answer has a label.

        A stratum's expected share is that of its own labels, and one more like the others of its verdict.
        """
        words = [stratum.verdict for stratum in self.design.strata]
        by_verdict = np.array([float(word == label) for word in words])
        gold = np.array([float(self.gold[drawn.item] == label) for drawn in self.items])
        hits, labelled = self._by_stratum(gold), self._by_stratum(np.ones(len(gold)))
        codes = np.array([self.verdicts.index(word) for word in words])
        pooled = np.bincount(codes, hits) / np.maximum(np.bincount(codes, labelled), 1)
        chances = (hits + pooled[codes]) / (labelled + 1)
        verdicts = by_verdict[self._strata_of_items]
        known = np.full(len(words), label in words)
        return Outcome(label, by_verdict, known, verdicts, gold, (0.0, 1.0), chances, chances * (1 - chances))

    def mean_outcome(self) -> Outcome | None:
        """Return the labels as numbers; None if they are none. A verdict that is no number predicts nothing."""
        try:
            numbers = {label: float(label) for label in self.labels}
        except ValueError:
            return None
        strata = self.design.strata
        gold = np.array([numbers[self.gold[drawn.item]] for drawn in self.items])
        values = [one.value or 0.0 if strata[one.stratum].mean is not None else 0.0 for one in self.items]
        labelled = self._by_stratum(np.ones(len(gold)))
        middle, variance = (float(gold.mean()), float(gold.var())) if len(gold) else (0.0, 0.0)
        expected = (self._by_stratum(gold) + middle) / (labelled + 1)
        squares = self._by_stratum((gold - expected[self._strata_of_items]) ** 2)
        means = np.array([stratum.mean or 0.0 for stratum in strata])
        known = np.array([stratum.mean is not None for stratum in strata])
        variances = (squares + variance) / np.maximum(labelled, 1)
        return Outcome("mean", means, known, np.array(values), gold, (-np.inf, np.inf), expected, variances)

    def _by_stratum(self, values: Array) -> Array:
        return np.bincount(self._strata_of_items, values, minlength=len(self.sizes)).astype(np.float64)

    def mask(self, inside: Inside) -> np.ndarray:
        """Return which strata are inside."""
        return np.array([inside(stratum) for stratum in self.design.strata], dtype=np.bool_)

    def side(self, outcome: Outcome, inside: Inside) -> Side:
        """Return the answers inside by verdict, and their labels."""
        mask = self.mask(inside)
        words = [stratum.verdict for stratum in self.design.strata if inside(stratum)]
        _, groups = np.unique(words, return_inverse=True)
        sizes = np.bincount(groups, self.sizes[mask]).astype(np.float64)
        means = np.bincount(groups, self.sizes[mask] * outcome.strata[mask]) / sizes
        group_of_stratum = np.full(len(mask), -1, dtype=np.int64)
        group_of_stratum[mask] = groups
        labelled = mask[self._strata_of_items]
        verdicts = outcome.verdicts[labelled]
        changes = outcome.labels[labelled] - verdicts
        group_of_item = group_of_stratum[self._strata_of_items[labelled]]
        return Side(sizes, means, group_of_item, verdicts, changes, self._chances[labelled])

    def variance(self, outcome: Outcome, insides: Sequence[Inside]) -> float | None:
        """Return the variance over clusters of a share or mean, or of the first less the second; None: unknown."""
        if not self.design.ways:
            return None
        weights, within = np.zeros(len(self.sizes)), 0.0
        for sign, inside in zip((1, -1), insides, strict=False):
            sizes = self.sizes * self.mask(inside)
            if not sizes.sum():
                return None
            middle = float(sizes @ outcome.expected) / sizes.sum()
            weights += sign * (sizes > 0) * (outcome.expected - middle) / sizes.sum()
            within += float(sizes @ outcome.variances) / sizes.sum() ** 2
        return spread(self.design.ways, self.sizes, weights, within, LEVEL)

    def row(self, outcome: Outcome, group: str, insides: Sequence[Inside]) -> EstimateRow:
        """Return a share or mean, or the first less the second of two groups."""
        sides = [self.side(outcome, inside) for inside in insides]
        raw, labels = self._raw(outcome, insides), sum(len(side.groups) for side in sides)
        step = least_step(np.concatenate([outcome.strata, outcome.labels, outcome.verdicts]))
        try:
            corrected = within_population(sides, LEVEL, step)
        except UsageError as error:
            return EstimateRow(group, outcome.name, raw, Rate(None, None, None, labels), problem=str(error))
        least, greatest = outcome.ends
        ends = outcome.ends if len(sides) == 1 else (least - greatest, greatest - least)
        alone = _rate(corrected.value, corrected.low, corrected.high, ends, labels)
        variance = self.variance(outcome, insides)
        if variance is None:
            return EstimateRow(group, outcome.name, raw, alone)
        low, high = widened(corrected.low, corrected.value, corrected.high, variance, LEVEL)
        return EstimateRow(group, outcome.name, raw, _rate(corrected.value, low, high, ends, labels), alone)

    def _raw(self, outcome: Outcome, insides: Sequence[Inside]) -> float | None:
        values = []
        for inside in insides:
            sizes = self.sizes * (self.mask(inside) & outcome.known)
            if not sizes.sum():
                return None  # missing, not 0
            values.append(float(sizes @ outcome.strata) / float(sizes.sum()))
        return values[0] if len(values) == 1 else values[0] - values[1]


def groups_of(design: Design) -> list[tuple[str, Inside]]:
    """Return the whole, and every level of every cell's column, with what is inside."""
    groups: list[tuple[str, Inside]] = [("", lambda _: True)]
    for name in design.cells:
        for word in dict.fromkeys(stratum.cell[name] for stratum in design.strata):
            groups.append((f"{name}: {word}", lambda s, n=name, w=word: s.cell[n] == w))  # type: ignore[misc]
    return groups


def share_rows(tally: Tally) -> list[EstimateRow]:
    """Return the share of every label in every group."""
    outcomes = [tally.outcome(label) for label in tally.labels]
    return [tally.row(outcome, group, [inside]) for group, inside in groups_of(tally.design) for outcome in outcomes]


def difference_rows(tally: Tally) -> list[EstimateRow]:
    """Return the differences of shares between the two levels of every column that has two."""
    insides, rows = dict(groups_of(tally.design)), []
    for name in tally.design.cells:
        words = list(dict.fromkeys(stratum.cell[name] for stratum in tally.design.strata))
        if len(words) == 2:
            pair = [insides[f"{name}: {word}"] for word in words]
            group = f"{name}: {words[0]} less {words[1]}"
            rows += [tally.row(tally.outcome(label), group, pair) for label in tally.labels]
    return rows


def mean_rows(tally: Tally) -> list[EstimateRow]:
    """Return the mean label of every group where the labels are numbers."""
    outcome = tally.mean_outcome()
    if outcome is None:
        return []
    return [tally.row(outcome, group, [inside]) for group, inside in groups_of(tally.design)]


def _rate(value: float, low: float, high: float, ends: tuple[float, float], n: int) -> Rate:
    value, low, high = (float(np.clip(end, *ends)) for end in (value, low, high))
    return Rate(value, low, high, n)
