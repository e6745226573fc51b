"""The jackknife over several facets at once: words, phrases and openings that cross, places that phrases lie in.

Answers with one word resemble each other, and so do answers in one phrase. The variance is that by each facet, less
that by each pair, plus that by each triple, and so on: what facets share is counted once (Cameron, Gelbach and Miller
2011). A facet that lies within another adds nothing to it. What is subtracted also holds a part of each facet's own
variance, which of three facets and more is given back (`shares_lost`). The sum may fall below the variance by one
facet alone, which it cannot be: the larger counts. Degrees of freedom follow Satterthwaite (1946) from those of the
facets.

`infer` takes t intervals and the t tests that go with them: an interval excludes the neutral value exactly where p is
below 1 - level.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from hashlib import blake2b
from itertools import combinations
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from .intervals import Array, Codes, Flags, Ranges, ratio, t_ends, t_test, within
from .resampling import BLOCK, Statistics, alike_columns, jackknife

F = TypeVar("F", bound=Callable[..., Any])
SPARSE = 8
"""Numbers are counted in place of sorted up to so many places per number."""
KEPT = 32
"""Results that a function of arrays keeps."""


class Cells(msgspec.Struct, frozen=True, dict=True):
    """Sums of answers by the levels of every facet. Most combinations of levels are not asked, and take no room."""

    codes: Codes
    """Shape (cells, facets): the level of each facet, from 0."""
    sums: Array
    """Shape (cells, units, sides, columns); column 0 counts the answers."""

    @classmethod
    def of_table(cls, table: Array) -> Cells:
        """Return a table with an axis per facet, then units, sides and columns; combinations not asked are left out."""
        shape = table.shape[:-3]
        sums = table.reshape(-1, *table.shape[-3:])
        asked = np.flatnonzero(sums[..., 0].any(axis=(1, 2)))
        return cls(np.stack(np.unravel_index(asked, shape), axis=-1), sums[asked])

    @property
    def facets(self) -> int:
        """Return how many facets there are."""
        return int(self.codes.shape[1])

    @property
    def totals(self) -> Array:
        """Return the sums of all cells, shape (units, sides, columns)."""
        totals: Array = self.sums.sum(axis=0)
        return totals

    @cached_property
    def by_facet(self) -> tuple[Array, ...]:
        """Return the sums by the levels of each facet, shape (levels, units, sides, columns)."""
        return tuple(summed(self.sums, levels) for levels in self.codes.T)

    @cached_property
    def levels(self) -> tuple[Codes, Codes]:
        """Return the number of levels by unit and facet: on the side that has the fewest, and on all sides together."""
        present = [sums[..., 0] > 0 for sums in self.by_facet]
        fewest = [asked.sum(axis=0).min(axis=-1) for asked in present]
        return np.stack(fewest, axis=-1), np.stack([asked.any(axis=2).sum(axis=0) for asked in present], axis=-1)

    def of(self, units: Codes) -> Cells:
        """Return the cells of some of the units, which are named once each, in their order."""
        return self if len(units) == self.sums.shape[1] else Cells(self.codes, self.sums[:, units])


def summed(sums: Array, labels: Codes) -> Array:
    """Return sums (cells, ...) by label, shape (labels, ...)."""
    count = int(labels.max(initial=-1)) + 1
    if np.array_equal(labels, np.arange(len(sums))):
        return sums
    by_label = np.zeros((count, *sums.shape[1:]))
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    if len(ordered):
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        by_label[ordered[starts]] = np.add.reduceat(sums[order], starts, axis=0)
    return by_label


def multiway_jackknife(cells: Cells, statistics: Statistics) -> tuple[Array, Array]:
    """Return the variances over all facets, and their degrees of freedom, (units, statistics).

    A facet with one level on a side of a unit is left out for that unit: nothing can be said of other levels of it.
    NaN where no facet is left, or a statistic is undefined.
    """
    levels = cells.levels[0]
    variance, freedom = np.full((2, *statistics(cells.totals).shape), np.nan)
    for units, pattern in alike_columns((levels > 1).T):
        if facets := np.flatnonzero(pattern).tolist():
            variance[units], freedom[units] = _over(cells.of(units), statistics, facets)
    return variance, freedom


class Inferred(msgspec.Struct, frozen=True):
    """Intervals and tests over several facets at once; arrays (units, statistics), NaN where undefined."""

    low: Array
    high: Array
    t: Array
    """Distance from neutral in standard errors."""
    p: Array
    """Two-sided, of the hypothesis that a statistic is neutral."""
    agree: Flags
    """Whether a statistic is the same whatever level is left out: then there is no variance to test with."""


def infer(cells: Cells, statistics: Statistics, level: float, ranges: Ranges = (), neutral: float = 0.0) -> Inferred:
    """Return jackknife intervals and tests over all facets.

    Args:
        cells: sums by the levels of every facet.
        statistics: from totals to statistics.
        level: of the intervals.
        ranges: what each statistic can be.
        neutral: what the tests compare statistics with.
    """
    observed = statistics(cells.totals)
    variance, freedom = multiway_jackknife(cells, statistics)
    low, high = t_ends(observed, variance, level, freedom)
    t, p = np.where(np.isnan(low), np.nan, t_test(observed - neutral, variance, freedom))
    return Inferred(*within(low, high, ranges), t, p, np.isfinite(variance) & np.isnan(low))


def _over(cells: Cells, statistics: Statistics, facets: Sequence[int]) -> tuple[Array, Array]:
    """Return variances and degrees of freedom over facets that all have two levels or more."""
    by_facet = [jackknife(cells.by_facet[facet], statistics) for facet in facets]
    largest = np.maximum.reduce([variance for variance, _ in by_facet])
    if len(facets) == 1:
        return by_facet[0]
    total = sum(variance for variance, _ in by_facet)
    for sign, labels, alone in shared_levels(cells.codes[:, facets]):
        total = total + sign * (_by_labels(cells, labels, statistics) if alone is None else by_facet[alone][0])
    lost = shares_lost(cells.codes[:, facets], cells.sums[..., 0] > 0)
    total = total + sum(share[:, None] * variance for share, (variance, _) in zip(lost, by_facet, strict=True))
    variance = np.maximum(total, largest)
    # A facet that does not vary adds nothing, and leaves the others their degrees of freedom.
    spread = sum(np.nan_to_num(ratio(part**2, freedom)) for part, freedom in by_facet)
    return variance, ratio(variance**2, np.asarray(spread))


def once(largest: int) -> Callable[[F], F]:
    """Let a function of arrays keep its last results, of arrays up to so many bytes: measures share their cells."""

    def keeping(function: F) -> F:
        results: dict[bytes, Any] = {}

        @wraps(function)
        def of_arrays(*arrays: NDArray[Any]) -> Any:
            if sum(array.nbytes for array in arrays) > largest:
                return function(*arrays)
            digest = blake2b()
            for array in arrays:
                digest.update(f"{array.shape}{array.dtype.str}".encode())
                digest.update(np.ascontiguousarray(array).data)
            key = digest.digest()
            if key not in results:
                if len(results) >= KEPT:
                    del results[next(iter(results))]
                results[key] = function(*arrays)
            return results[key]

        return cast(F, of_arrays)

    return keeping


@once(BLOCK // 4)
def shared_levels(codes: Codes) -> tuple[tuple[int, Codes, int | None], ...]:
    """Return what inclusion and exclusion adds to the facets themselves: how often, the levels, and whose they are.

    The levels are those of two facets or more together. They are a facet's own (its number) where it lies within the
    others; they come once each, and not at all where they are counted as often as they are left out.
    """
    facets = codes.shape[1]
    alone = {_same(codes[:, facet]).tobytes(): facet for facet in reversed(range(facets))}
    times: dict[bytes, int] = {}
    labels: dict[bytes, Codes] = {}
    for size in range(2, facets + 1):
        for chosen in combinations(range(facets), size):
            joined = joint(*(codes[:, facet] for facet in chosen))
            name = _same(joined).tobytes()
            times[name] = times.get(name, 0) + (-1) ** (size + 1)
            labels.setdefault(name, joined)
    return tuple((sign, labels[name], alone.get(name)) for name, sign in times.items() if sign)


@once(sys.maxsize)
def shares_lost(codes: Codes, present: Flags) -> Array:
    """Return what share of each facet's own variance inclusion and exclusion loses, shape (facets, units).

    Leaving out a combination of levels leaves out a part of the effects of these levels, too: what a pair subtracts
    contains some of the variance of both facets. Of n x m x l levels that cross, all asked alike, the first facet loses
    1 - (1 - 1/m)(1 - 1/l); of fewer than three facets, it loses nothing. A facet has effects of its own on each side of
    a contrast, so that each side loses what its own cells say: where words are asked on one side each, half as many
    share an opening there.

    Args:
        codes: shape (cells, facets), the level of each facet.
        present: shape (cells, units, sides), whether a unit has answers of that cell on that side.
    """
    facets, units = codes.shape[1], present.shape[1]
    if facets < 3:
        return np.zeros((facets, units))
    terms = [(1, joined, facet) for facet, joined in enumerate(codes.T)] + [*shared_levels(codes)]
    counted, sizes = np.zeros((2, facets, units, present.shape[2]))
    for columns, asked in alike_columns(present.reshape(len(codes), -1)):
        unit, side = np.divmod(columns, present.shape[2])
        rows = np.flatnonzero(asked)
        if len(rows):
            levels = [_dense(column.astype(np.int64)) for column in codes[rows].T]
            for sign, joined, alone in terms:
                factor = sign * (1.0 if alone is None else 1.0 - 1.0 / (int(levels[alone].max()) + 1))
                labels = _dense(joined[rows].astype(np.int64))
                for facet, effects in enumerate(levels):
                    counted[facet, unit, side] += factor * _brought(labels, effects)
            for facet, effects in enumerate(levels):
                sizes[facet, unit, side] = _size(effects)
    shares: Array = 1.0 - ratio(counted.sum(axis=-1), sizes.sum(axis=-1))
    return np.maximum(np.nan_to_num(shares), 0.0)


def _size(facet: Codes) -> float:
    """Return the variance of a mean by a facet whose effects have a variance of 1."""
    weights = np.bincount(facet) / len(facet)
    return float(weights @ weights)


def _brought(labels: Codes, facet: Codes) -> float:
    """Return the sum of squared changes, by leaving out each label, from effects of a facet with a variance of 1."""
    pairs = joint(labels, facet)
    first = np.full(int(pairs.max()) + 1, len(pairs))
    first[pairs[::-1]] = np.arange(len(pairs))[::-1]
    counts, weights = np.bincount(labels), np.bincount(facet) / len(facet)
    within = np.bincount(pairs) / counts[labels[first]]
    apart = np.bincount(labels[first], within**2 - 2 * within * weights[facet[first]]) + weights @ weights
    share = counts / len(labels)
    return float(np.sum((share / (1.0 - share)) ** 2 * apart))


def joint(*codes: Codes) -> Codes:
    """Return one code per combination of levels, from 0."""
    joined = codes[0]
    for other in codes[1:]:
        joined = _dense(joined.astype(np.int64) * (int(other.max(initial=0)) + 1) + other)
    return joined


def _dense(numbers: Codes) -> Codes:
    """Return the rank of each number among those that occur, from 0."""
    most = int(numbers.max(initial=-1)) + 1
    if most > SPARSE * (len(numbers) + BLOCK // 1_000):
        return np.unique(numbers, return_inverse=True)[1].ravel()
    return (np.cumsum(np.bincount(numbers, minlength=most) > 0) - 1)[numbers]


def _same(labels: Codes) -> Codes:
    """Return labels numbered by their first appearance: equal where two divide the cells alike."""
    first = np.full(int(labels.max(initial=-1)) + 1, len(labels))
    # Of several values for one place the last is kept: here that of the first appearance.
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[labels]


def _by_labels(cells: Cells, labels: Codes, statistics: Statistics) -> Array:
    """Return the variance from leaving out each combination of levels.

    There are very many, so n / (n - 1) is left out. Some at a time bound the memory.
    """
    total = cells.totals
    observed = statistics(total)
    parts = summed(cells.sums, labels)
    some = max(1, BLOCK // max(1, parts[0].size))
    variance: Array = np.zeros_like(observed)
    for start in range(0, len(parts), some):
        variance += np.nansum((statistics(total - parts[start : start + some]) - observed) ** 2, axis=0)
    return variance
