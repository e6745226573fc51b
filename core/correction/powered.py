"""The mean of rows, or the difference of two, corrected by labels of a random sample of the answers behind them.

Every answer has a verdict and some have a label. The estimate is that of the verdicts plus the mean difference that the
labels make (prediction-powered inference; Angelopoulos and others 2023). Where the rows of one verdict have labels
enough, they are corrected by themselves, which is the best use of a verdict of levels; else the verdicts count with the
weight of least variance (power tuning; PPI++, Angelopoulos, Duchi and Zrnic 2023). Labels count inversely to their
chance of being drawn (Horvitz and Thompson 1952, in the ratio form of Hajek).

The variance is that of the corrected rows, summed by cluster (Sarndal, Swensson and Wretman 1992, section 4.6): what
varies between templates or words and what varies because few answers are labelled are in it together. Errors that are
rare may not be among the labels: two more than were seen are added (Agresti and Coull 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..contracts.errors import UsageError

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
FEWEST = 20
"""Labels that each side of an estimate needs, or all of its answers: with fewer, intervals are too short."""
FEWEST_OF_A_VERDICT = 5
"""Labels with which the rows of one verdict are corrected by themselves."""
MOST_VERDICTS = 20
UNSEEN = 2
"""Errors that are added to those seen."""


class Rows(NamedTuple):
    """The rows of an estimate."""

    values: Array
    """Shape (rows,), by the verdict."""
    signs: Array
    """Shape (rows,): 1, or -1 where the estimate subtracts."""
    ways: tuple[Codes, ...] = ()
    """Shape (rows,) each, clusters; of two that cross, both. Without, rows are independent."""
    verdicts: Codes | None = None
    """Shape (rows,), the verdict of the answer of each row; None where rows have several answers."""

    @property
    def weights(self) -> Array:
        """Return the weight of each row in the estimate."""
        counts = np.where(self.signs > 0, (self.signs > 0).sum(), (self.signs < 0).sum())
        found: Array = self.signs / np.maximum(counts, 1)
        return found


class Labelled(NamedTuple):
    """The labels of answers behind the rows."""

    rows: Codes
    """Shape (labels,), the row of each."""
    changes: Array
    """Shape (labels,), what the label makes of the value of the row, less what the verdict made of it."""
    chances: Array
    """Shape (labels,), of being labelled."""


class Powered(NamedTuple):
    """A corrected estimate."""

    value: float
    low: float
    high: float
    closer: bool
    """Whether its expected squared error is below that of the raw estimate."""
    powers: tuple[float, ...]
    """Weight of the verdicts on each side; 1 where every verdict is corrected by itself."""


def powered(rows: Rows, labelled: Labelled, level: float, step: float = 0.0) -> Powered:
    """Return the corrected estimate with its interval.

    Args:
        rows: By the verdict.
        labelled: A random sample of the answers behind them.
        level: Of the interval.
        step: Least change that a wrong verdict makes to a row; 0 where verdicts are numbers, which are seldom right.

    Raises:
        UsageError: a side has too few labels.
    """
    _ensure_enough(rows, labelled)
    weights = rows.weights
    found, powers, groups = _whole(rows, labelled) if rows.verdicts is None else _single(rows, labelled)
    value = float(weights @ found)
    variance = _variance(rows, found)
    unseen = (step * weights[labelled.rows] / labelled.chances) ** 2 * (1 - labelled.chances)
    variance += UNSEEN * float(unseen.mean())
    least = min((int(way.max()) + 1 for way in rows.ways), default=len(rows.values))
    free = max(1, min(least, len(labelled.rows) - groups + 1) - 1)
    half = float(stats.t.ppf((1 + level) / 2, free)) * float(np.sqrt(variance))
    raw, apart = float(weights @ rows.values), _variance(rows, found - rows.values)
    bias = max(0.0, (raw - value) ** 2 - apart)
    return Powered(value, value - half, value + half, variance <= bias + _variance(rows, rows.values), powers)


def _ensure_enough(rows: Rows, labelled: Labelled) -> None:
    for sign in np.unique(rows.signs):
        seen = int((rows.signs[labelled.rows] == sign).sum())
        needed = min(FEWEST, int((rows.signs == sign).sum()))
        if seen < needed:
            where = "" if (rows.signs == rows.signs[0]).all() else " on one side of the difference"
            raise UsageError(
                f"{seen} labels{where}, and {needed} are needed: label more, or draw the sample by cell.",
                code="annotation.few",
            )


def _whole(rows: Rows, labelled: Labelled) -> tuple[Array, tuple[float, ...], int]:
    """Return corrected rows, of several answers each."""
    found = rows.values.copy()
    np.add.at(found, labelled.rows, labelled.changes / labelled.chances)
    return found, (1.0,), 1


def _single(rows: Rows, labelled: Labelled) -> tuple[Array, tuple[float, ...], int]:
    """Return corrected rows, of one answer each, whose sum over a side is that of the corrected mean."""
    assert rows.verdicts is not None
    found, powers, every = np.empty_like(rows.values), [], 0
    for sign in np.unique(rows.signs):
        own = np.flatnonzero(rows.signs == sign)
        places = np.full(len(rows.values), -1)
        places[own] = np.arange(len(own))
        mine = places[labelled.rows] >= 0
        at, changes, chances = places[labelled.rows[mine]], labelled.changes[mine], labelled.chances[mine]
        _, groups = np.unique(np.stack([rows.verdicts[own], rows.values[own]]), axis=1, return_inverse=True)
        groups = groups.ravel()
        sizes, seen = np.bincount(groups), np.bincount(groups[at], minlength=int(groups.max()) + 1)
        power = 1.0
        if len(sizes) > MOST_VERDICTS or (seen < np.minimum(sizes, FEWEST_OF_A_VERDICT)).any():
            groups, seen = np.zeros_like(groups), np.array([len(at)])
            power = _power(rows.values[own][at], changes, chances)
        rest = changes + (1 - power) * rows.values[own][at]
        share = 1 / chances
        means = np.bincount(groups[at], rest * share) / np.bincount(groups[at], share)
        corrected = power * rows.values[own] + means[groups]
        free = np.maximum(seen[groups[at]] - 1, 1)
        corrected[at] += (rest - means[groups[at]]) * share * np.sqrt(1 + (1 - chances) / free)
        # The last factor is the variance's, and must not move the value.
        corrected += (power * rows.values[own] + means[groups]).mean() - corrected.mean()
        found[own] = corrected
        powers.append(power)
        every += len(seen)
    return found, tuple(powers), every


def _power(values: Array, changes: Array, chances: Array) -> float:
    """Return the weight of verdicts that gives the least variance, from 0 to 1."""
    weights = np.maximum(1 - chances, 1e-9) / chances**2
    labels = values + changes
    middle = (weights @ values) / weights.sum()
    spread = float(weights @ (values - middle) ** 2)
    if spread <= 0:
        return 1.0
    slope = float(weights @ ((values - middle) * (labels - (weights @ labels) / weights.sum()))) / spread
    return min(max(slope, 0.0), 1.0)


def _variance(rows: Rows, values: Array) -> float:
    """Return the variance of an estimate over draws of clusters; of ways that cross, by inclusion and exclusion."""
    parts = rows.weights * (values - _means(rows.signs, values))
    alone = _by_cluster(parts, np.arange(len(parts)))
    if not rows.ways:
        return alone
    singles = [_by_cluster(parts, way) for way in rows.ways]
    crossed = [_by_cluster(parts, _joined(pair)) for pair in combinations(rows.ways, 2)]
    return max(sum(singles) - sum(crossed), *singles)


def covariance_over(parts: Array, ways: Sequence[Codes]) -> Array:
    """Return the covariance of sums over draws of clusters, shape (sums, sums).

    Args:
        parts: Shape (rows, sums), what each row adds to each sum, less its mean.
        ways: Shape (rows,) each, clusters that cross; without, rows are independent.
    """
    every = (*ways, *(_joined(pair) for pair in combinations(ways, 2)))
    found = np.zeros((parts.shape[1], parts.shape[1]))
    for number, way in enumerate(every or (np.arange(len(parts)),)):
        totals = np.stack([np.bincount(way, one) for one in parts.T])
        clusters = totals.shape[1]
        sign = 1.0 if number < max(len(ways), 1) else -1.0
        found += sign * totals @ totals.T * clusters / max(clusters - 1, 1)
    values, vectors = np.linalg.eigh(found)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _means(sides: NDArray[Any], values: Array) -> Array:
    _, places = np.unique(sides, return_inverse=True)
    found: Array = (np.bincount(places, values) / np.bincount(places))[places]
    return found


def _joined(ways: Sequence[Codes]) -> Codes:
    return np.asarray(np.unique(np.stack(ways), axis=1, return_inverse=True)[1], dtype=np.int64).ravel()


def _by_cluster(parts: Array, way: Codes) -> float:
    totals = np.bincount(way, parts)
    return float((totals**2).sum()) * len(totals) / max(len(totals) - 1, 1)
