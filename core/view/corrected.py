"""Shares, means and differences by the verdict of a run, corrected by the labels of a sample of its answers.

Where the answers have clusters, an interval is for other clusters like them; beside it stands the one for the answers
of this run alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from ..contracts.errors import UsageError
from ..statistics.clusters import Array, spread, widened
from ..statistics.labelled import Corrected, Part, Rate, corrected_share, difference, ppi_mean
from .sampling import Design, Stratum

LEVEL = 0.95
Inside = Callable[[Stratum], bool]


class ShareRow(msgspec.Struct, frozen=True):
    """A share of one label in one group."""

    group: str
    label: str
    share: Corrected
    alone: Corrected | None = None
    """Of the answers of this run alone; None if `share` is that."""


class RateRow(msgspec.Struct, frozen=True):
    """A mean label of one group, or the difference of a share between two, by the verdict and corrected."""

    group: str
    label: str
    raw: float | None
    rate: Rate
    alone: Rate | None = None
    problem: str = ""


class Expected(NamedTuple):
    """What an answer of each stratum is expected to be, shape (strata,), and how its answers vary."""

    values: Array
    variances: Array


class Tally(msgspec.Struct, frozen=True, dict=True):
    """The labels of a sample by stratum."""

    design: Design
    labels: tuple[str, ...]
    gold: Mapping[str, str]
    """Label by item."""

    @cached_property
    def counts(self) -> Counter[tuple[int, str]]:
        """Return the labels by stratum."""
        return Counter((one.stratum, self.gold[one.item]) for one in self.design.items if one.item in self.gold)

    @cached_property
    def sizes(self) -> Array:
        """Return the answers of each stratum."""
        return np.array([stratum.size for stratum in self.design.strata], dtype=np.float64)

    @cached_property
    def verdicts(self) -> tuple[str, ...]:
        """Return the verdicts that occur."""
        return tuple(dict.fromkeys(stratum.verdict for stratum in self.design.strata))

    def parts(self, wanted: Inside) -> list[Part]:
        """Return the strata that are wanted, with their labels."""
        return [
            Part(stratum.size, tuple(self.counts[number, label] for label in self.labels))
            for number, stratum in enumerate(self.design.strata)
            if wanted(stratum)
        ]

    def mask(self, inside: Inside) -> Array:
        """Return 1 for the strata inside, 0 for the others."""
        return np.array([float(inside(stratum)) for stratum in self.design.strata])

    def expected(self, label: str) -> Expected:
        """Return how likely a label is in each stratum: its own labels, and one more like the others of its verdict."""
        own, all_of = self._seen(label)
        known = [stratum.verdict for stratum in self.design.strata]
        by = {
            v: own[[k == v for k in known]].sum() / max(all_of[[k == v for k in known]].sum(), 1) for v in self.verdicts
        }
        chances = (own + np.array([by[v] for v in known])) / (all_of + 1)
        return Expected(chances, chances * (1 - chances))

    def _seen(self, label: str) -> tuple[Array, Array]:
        strata = range(len(self.design.strata))
        own = np.array([self.counts[number, label] for number in strata], dtype=np.float64)
        return own, np.array([sum(self.counts[n, one] for one in self.labels) for n in strata], dtype=np.float64)

    def variance(self, expected: Expected, *insides: Inside) -> float | None:
        """Return the variance over clusters of a share or mean, or of the first less the second; None: unknown."""
        if not self.design.ways:
            return None
        weights, own = np.zeros(len(self.sizes)), 0.0
        for sign, inside in zip((1, -1), insides, strict=False):
            sizes = self.sizes * self.mask(inside)
            if not sizes.sum():
                return None
            middle = float(sizes @ expected.values) / sizes.sum()
            weights += sign * (sizes > 0) * (expected.values - middle) / sizes.sum()
            own += float(sizes @ expected.variances) / sizes.sum() ** 2
        return spread(self.design.ways, self.sizes, weights, own, LEVEL)


def groups_of(design: Design) -> list[tuple[str, Inside]]:
    """Return the whole, and every level of every cell's column, with what is inside."""
    found: list[tuple[str, Inside]] = [("", lambda _: True)]
    for name in design.cells:
        for word in dict.fromkeys(stratum.cell[name] for stratum in design.strata):
            found.append((f"{name}: {word}", lambda s, n=name, w=word: s.cell[n] == w))  # type: ignore[misc]
    return found


def share_rows(tally: Tally, random: bool) -> list[ShareRow]:
    """Return the share of every label in every group.

    Raises:
        UsageError: the labelled answers are no random sample.
    """
    rows = []
    for group, inside in groups_of(tally.design):
        for number, label in enumerate(tally.labels):
            own = [tally.parts(lambda s, v=v, i=inside: s.verdict == v and i(s)) for v in tally.verdicts]  # type: ignore[misc]
            raw, more = _raw(tally.design, label, inside), tally.variance(tally.expected(label), inside)
            alone = corrected_share(own, number, raw, LEVEL, random=random)
            wide = None if more is None else corrected_share(own, number, raw, LEVEL, random=random, spread=more)
            rows.append(ShareRow(group, label, wide or alone, alone if wide else None))
    return rows


def difference_rows(tally: Tally, rows: Sequence[ShareRow]) -> list[RateRow]:
    """Return the differences between the two levels of every column that has two."""
    by, insides = {(row.group, row.label): row.alone or row.share for row in rows}, dict(groups_of(tally.design))
    found = []
    for name in tally.design.cells:
        words = list(dict.fromkeys(stratum.cell[name] for stratum in tally.design.strata))
        if len(words) != 2:
            continue
        for label in tally.labels:
            pair = [f"{name}: {word}" for word in words]
            first, second = (by[group, label] for group in pair)
            raw = None if first.raw is None or second.raw is None else first.raw - second.raw
            alone = difference(first, second)
            # Both groups may lie in the same clusters, so their difference varies with these as one number.
            more = tally.variance(tally.expected(label), *(insides[group] for group in pair))
            wide = None if more is None else _wider(alone, more)
            found.append(
                RateRow(f"{name}: {words[0]} less {words[1]}", label, raw, wide or alone, alone if wide else None)
            )
    return found


def mean_rows(tally: Tally) -> list[RateRow]:
    """Return the mean label of every group where the labels are numbers: by PPI++, with the numbers of the verdict."""
    try:
        numbers = {label: float(label) for label in tally.labels}
    except ValueError:
        return []
    strata, items = tally.design.strata, [one for one in tally.design.items if one.item in tally.gold]
    labels = np.array([numbers[tally.gold[one.item]] for one in items])
    places = np.array([one.stratum for one in items], dtype=np.int64)
    # Where a verdict is no number it predicts nothing, alike in its whole stratum.
    verdicts = np.array([one.value if strata[one.stratum].mean is not None else 0.0 for one in items], dtype=np.float64)
    means = np.array([stratum.mean or 0.0 for stratum in strata])
    expected = _expected_means(labels, places, len(strata))
    rows = []
    for group, inside in groups_of(tally.design):
        mask = tally.mask(inside) > 0
        own, order = mask[places], np.cumsum(mask) - 1
        known = mask & np.array([stratum.mean is not None for stratum in strata])
        raw = float(tally.sizes[known] @ means[known] / tally.sizes[known].sum()) if known.any() else None
        numbered: Any = order[places[own]]
        found = partial(ppi_mean, labels[own], verdicts[own], numbered, tally.sizes[mask], means[mask], LEVEL)
        more = tally.variance(expected, inside)
        try:
            alone = found()
            wide = None if more is None else found(more)
            rows.append(RateRow(group, "mean", raw, wide or alone, alone if wide else None))
        except UsageError as error:
            rows.append(RateRow(group, "mean", raw, Rate(None, None, None, int(own.sum())), problem=str(error)))
    return rows


def _expected_means(labels: Array, places: np.ndarray, strata: int) -> Expected:
    counts = np.bincount(places, minlength=strata)
    middle, wide = (float(labels.mean()), float(labels.var())) if len(labels) else (0.0, 0.0)
    means = (np.bincount(places, labels, strata) + middle) / (counts + 1)
    squares = np.bincount(places, (labels - means[places]) ** 2, strata)
    return Expected(means, (squares + wide) / np.maximum(counts, 1))


def _raw(design: Design, label: str, inside: Inside) -> float | None:
    if all(stratum.verdict != label for stratum in design.strata):
        return None  # missing, not 0
    own = [stratum for stratum in design.strata if inside(stratum)]
    return sum(s.size for s in own if s.verdict == label) / max(sum(s.size for s in own), 1)


def _wider(one: Rate, variance: float) -> Rate:
    if one.value is None or one.low is None or one.high is None:
        return one
    low, high = widened(one.low, one.value, one.high, variance, LEVEL)
    return replace(one, low=max(low, -1.0), high=min(high, 1.0))
