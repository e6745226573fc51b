"""Means of verdicts, and differences of two, corrected by labels of a random sample: prediction-powered inference.

Every answer has a verdict and some have a label. The estimate is that of the verdicts plus the mean difference that the
labels make (Angelopoulos and others 2023). Where the answers of one verdict have labels enough, they are corrected by
themselves, which is the best use of a verdict of levels and equals the post-stratified estimator (Sarndal, Swensson and
Wretman 1992, section 7.6); else the verdicts count with the weight of least variance (power tuning; PPI++,
Angelopoulos, Duchi and Zrnic 2023). Labels count inversely to their chance of being drawn (Horvitz and Thompson 1952,
in the ratio form of Hajek).

`powered` is for rows of answers in clusters, and speaks of the model: the variance is that of the corrected rows,
summed by cluster (Sarndal, Swensson and Wretman 1992, section 4.6). `within_population` speaks of the answers of the
population only: what varies is which of them are labelled. Errors that are rare may not be among the labels: two more
than were seen are added (Agresti and Coull 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..contracts.errors import UsageError
from ..statistics.clusters import Array, Codes
from ..statistics.multiway import shared_levels, shares_lost

FEWEST = 20
"""Labels that each side of an estimate needs, or all of its answers: with fewer, intervals are too short."""
FEWEST_OF_A_VERDICT = 5
"""Labels with which the rows of one verdict are corrected by themselves."""
MOST_VERDICTS = 20
MOST_STEPS = 20
"""Levels of a value; with more it is a number, of which a label is seldom exactly the same."""
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
        weights: Array = self.signs / np.maximum(counts, 1)
        return weights


class Labelled(NamedTuple):
    """The labels of answers behind the rows."""

    rows: Codes
    """Shape (labels,), the row of each."""
    changes: Array
    """Shape (labels,), what the label makes of the value of the row, less what the verdict made of it."""
    chances: Array
    """Shape (labels,), of being labelled."""


class Corrected(NamedTuple):
    """A corrected estimate."""

    value: float
    low: float
    high: float
    closer: bool
    """Whether its expected squared error is below that of the raw estimate."""
    powers: tuple[float, ...] = ()
    """Weight of the verdicts on each side; 1 where every verdict is corrected by itself."""


class Side(NamedTuple):
    """The answers of one side of an estimate by groups of equal verdicts, and the labels of some of them."""

    sizes: Array
    """Shape (groups,), answers."""
    means: Array
    """Shape (groups,), mean value by the verdict."""
    groups: Codes
    """Shape (labels,), the group of each labelled answer."""
    values: Array
    """Shape (labels,), of each by the verdict."""
    changes: Array
    """Shape (labels,), what the label makes of the value, less what the verdict made of it."""
    chances: Array
    """Shape (labels,), of being labelled."""


class Adjusted(NamedTuple):
    """What the labels of a side change."""

    power: float
    """Weight of the verdicts."""
    by_group: bool
    """Whether each group is corrected by itself; else all answers together."""
    shifts: Array
    """Shape (groups,), what is added to the weighted value of each answer."""
    deviations: Array
    """Shape (labels,), by how much each labelled answer differs from that, times the answers it stands for."""

    @property
    def degrees(self) -> int:
        """Return the number of means that were taken of the labels."""
        return len(self.shifts) if self.by_group else 1


def adjust(side: Side) -> Adjusted:
    """Return what the labels of a side change."""
    seen = np.bincount(side.groups, minlength=len(side.sizes))
    by_group = len(seen) <= MOST_VERDICTS and not (seen < np.minimum(side.sizes, FEWEST_OF_A_VERDICT)).any()
    groups = side.groups if by_group else np.zeros_like(side.groups)
    power = 1.0 if by_group else _power(side.values, side.changes, side.chances)
    changes, stands_for = side.changes + (1 - power) * side.values, 1 / side.chances
    means = np.bincount(groups, changes * stands_for) / np.bincount(groups, stands_for)
    freedom = np.maximum(np.bincount(groups)[groups] - 1, 1)
    deviations = (changes - means[groups]) * stands_for * np.sqrt(1 + (1 - side.chances) / freedom)
    return Adjusted(power, by_group, means if by_group else np.full(len(seen), means[0]), deviations)


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


def within_population(sides: Sequence[Side], level: float, step: float = 0.0) -> Corrected:
    """Return the mean of a side, or that of the first less that of the second, for the answers of the population.

    Args:
        sides: One or two.
        level: Of the interval.
        step: As of `powered`.

    Raises:
        UsageError: a side has too few labels.
    """
    value = variance = raw = 0.0
    unseen, groups = [], 0
    for sign, side in zip((1, -1), sides, strict=False):
        _ensure_enough(len(side.groups), int(side.sizes.sum()), len(sides) > 1)
        adjusted, answers = adjust(side), side.sizes.sum()
        raw += sign * float(side.sizes @ side.means) / answers
        value += sign * float(side.sizes @ (adjusted.power * side.means + adjusted.shifts)) / answers
        variance += float((1 - side.chances) @ adjusted.deviations**2) / answers**2
        unseen += list((step / answers / side.chances) ** 2 * (1 - side.chances))
        groups += adjusted.degrees
    variance += UNSEEN * float(np.mean(unseen))
    half = _reach(level, len(unseen) - groups) * float(np.sqrt(variance))
    return Corrected(value, value - half, value + half, variance <= max(0.0, (raw - value) ** 2 - variance))


def powered(rows: Rows, labelled: Labelled, level: float, step: float = 0.0) -> Corrected:
    """Return the corrected estimate with its interval, which is for other clusters like these.

    Args:
        rows: By the verdict.
        labelled: A random sample of the answers behind them.
        level: Of the interval.
        step: Least change that a wrong verdict makes to a row; 0 where verdicts are numbers, which are seldom right.

    Raises:
        UsageError: a side has too few labels.
    """
    for sign in np.unique(rows.signs):
        labels = int((rows.signs[labelled.rows] == sign).sum())
        _ensure_enough(labels, int((rows.signs == sign).sum()), bool((rows.signs != sign).any()))
    weights = rows.weights
    values, powers, groups = _several(rows, labelled) if rows.verdicts is None else _single(rows, labelled)
    value = float(weights @ values)
    variance = _variance(rows, values)
    unseen = (step * weights[labelled.rows] / labelled.chances) ** 2 * (1 - labelled.chances)
    variance += UNSEEN * float(unseen.mean())
    clusters = min((int(way.max()) + 1 for way in rows.ways), default=len(rows.values))
    half = _reach(level, min(clusters - 1, len(labelled.rows) - groups)) * float(np.sqrt(variance))
    raw, variance_of_shift = float(weights @ rows.values), _variance(rows, values - rows.values)
    bias = max(0.0, (raw - value) ** 2 - variance_of_shift)
    return Corrected(value, value - half, value + half, variance <= bias + _variance(rows, rows.values), powers)


def least_step(levels: Array) -> float:
    """Return the least difference between levels of a value; 0 where it has many, as a number does, or one."""
    distinct = np.unique(levels.round(12))
    return float(np.diff(distinct).min()) if 1 < len(distinct) <= MOST_STEPS else 0.0


def _ensure_enough(labels: int, answers: int, of_two: bool) -> None:
    if labels < (needed := min(FEWEST, answers)):
        where = " on one side of the difference" if of_two else ""
        raise UsageError(
            f"{labels} labels{where}, and {needed} are needed: label more, or draw the sample by cell.",
            code="annotation.few",
        )


def _reach(level: float, freedom: int) -> float:
    return float(stats.t.ppf((1 + level) / 2, max(1, freedom)))


def _several(rows: Rows, labelled: Labelled) -> tuple[Array, tuple[float, ...], int]:
    """Return corrected rows, of several answers each."""
    values = rows.values.copy()
    np.add.at(values, labelled.rows, labelled.changes / labelled.chances)
    return values, (1.0,), 1


def _single(rows: Rows, labelled: Labelled) -> tuple[Array, tuple[float, ...], int]:
    """Return corrected rows, of one answer each, whose sum over a side is that of the corrected mean."""
    assert rows.verdicts is not None
    values, powers, degrees = np.empty_like(rows.values), [], 0
    for sign in np.unique(rows.signs):
        members = np.flatnonzero(rows.signs == sign)
        index = np.full(len(rows.values), -1)
        index[members] = np.arange(len(members))
        on_side = index[labelled.rows] >= 0
        at = index[labelled.rows[on_side]]
        keys = np.stack([rows.verdicts[members], rows.values[members]])
        (_, means), groups = np.unique(keys, axis=1, return_inverse=True)
        groups = groups.ravel()
        changes, chances = labelled.changes[on_side], labelled.chances[on_side]
        sizes = np.bincount(groups).astype(np.float64)
        side = Side(sizes, means, groups[at], rows.values[members][at], changes, chances)
        adjusted = adjust(side)
        corrected = adjusted.power * rows.values[members] + adjusted.shifts[groups]
        mean = corrected.mean()
        corrected[at] += adjusted.deviations
        # Deviations are for the variance, and must not move the value.
        values[members] = corrected + (mean - corrected.mean())
        powers.append(adjusted.power)
        degrees += adjusted.degrees
    return values, tuple(powers), degrees


def _variance(rows: Rows, values: Array) -> float:
    """Return the variance of an estimate over draws of clusters; of ways that cross, by inclusion and exclusion."""
    parts = rows.weights * (values - _means(rows.signs, values))
    if not rows.ways:
        return _by_cluster(parts, np.arange(len(parts)))
    singles = [_by_cluster(parts, way) for way in rows.ways]
    codes = np.stack(rows.ways, axis=-1)
    shared = [sign * _by_cluster(parts, labels) for sign, labels, _ in shared_levels(codes)]
    sides = rows.signs[:, None, None] == np.unique(rows.signs[rows.signs != 0])
    lost = [share.item() * single for share, single in zip(shares_lost(codes, sides), singles, strict=True)]
    return float(max(sum(singles) + sum(shared) + sum(lost), *singles))


def covariance_over(parts: Array, ways: Sequence[Codes]) -> Array:
    """Return the covariance of sums over draws of clusters, shape (sums, sums).

    Args:
        parts: Shape (rows, sums), what each row adds to each sum, less its mean.
        ways: Shape (rows,) each, clusters that cross; without, rows are independent.
    """
    every = [(1, way) for way in ways or (np.arange(len(parts)),)]
    if len(ways) > 1:
        codes = np.stack(ways, axis=-1)
        lost = shares_lost(codes, np.ones((len(codes), 1, 1), np.bool_))
        every = [(1 + share.item(), way) for share, way in zip(lost, ways, strict=True)]
        every += [(sign, labels) for sign, labels, _ in shared_levels(codes)]
    covariance = np.zeros((parts.shape[1], parts.shape[1]))
    for sign, way in every:
        totals = np.stack([np.bincount(way, column) for column in parts.T])
        clusters = totals.shape[1]
        covariance += sign * totals @ totals.T * clusters / max(clusters - 1, 1)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _means(sides: NDArray[Any], values: Array) -> Array:
    _, index = np.unique(sides, return_inverse=True)
    means: Array = (np.bincount(index, values) / np.bincount(index))[index]
    return means


def _by_cluster(parts: Array, way: Codes) -> float:
    totals = np.bincount(way, parts)
    return float((totals**2).sum()) * len(totals) / max(len(totals) - 1, 1)
