"""What a pilot says of the answers that are planned: their spread, and how much those of one cluster have in common."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from .arrays import Array, Codes


class Pilot(msgspec.Struct, frozen=True):
    """What a pilot says about the spread of answers. None where it cannot say."""

    spread: float | None
    icc: float | None
    n: int
    clusters: int


def pilot(values: Array, clusters: Codes) -> Pilot:
    """Estimate spread and intra-cluster correlation by one-way analysis of variance; NaN is left out.

    A correlation below 0 is taken as 0: answers of a cluster are then no more alike than others.
    Source: Donner and Koval (1980).
    """
    there = ~np.isnan(values)
    own = np.unique(clusters[there], return_inverse=True)[1]
    y, n, k = values[there], int(there.sum()), int(own.max(initial=-1)) + 1
    if n < 2:
        return Pilot(None, None, n, k)
    spread = float(np.std(y, ddof=1))
    if k < 2 or n == k or spread == 0:
        return Pilot(spread or None, None, n, k)
    sizes, sums = np.bincount(own), np.bincount(own, weights=y)
    means = sums / sizes
    between = (sizes * (means - y.mean()) ** 2).sum() / (k - 1)
    within = ((y - means[own]) ** 2).sum() / (n - k)
    size = (n - (sizes**2).sum() / n) / (k - 1)
    return Pilot(spread, float(np.clip((between - within) / (between + (size - 1) * within), 0, 1)), n, k)


class CrossedPilot(msgspec.Struct, frozen=True):
    """What a pilot says about the spread of crossed answers. None where it cannot say."""

    spread: float | None
    row_icc: float | None
    column_icc: float | None


def crossed_pilot(values: Array, rows: Codes, columns: Codes, sides: Codes) -> CrossedPilot:
    """Estimate the spread and what rows and columns add to it; NaN is left out, and no row needs every column.

    Answers to one row and column count as their mean. Where columns are of two `sides`, each side has its own mean,
    and what a row adds to both is left out: it cancels in their difference. Shares below 0 are taken as 0.
    """
    there = ~np.isnan(values)
    y, side = values[there], np.unique(sides[there], return_inverse=True)[1]
    parts = [cell_means(y[side == s], rows[there][side == s], columns[there][side == s]) for s in np.unique(side)]
    found = [variance_components(*part) for part in parts]
    if not found or any(part is None for part in found):
        spread = float(np.sqrt(np.mean([np.var(part[0], ddof=1) for part in parts]))) if _repeated(parts) else 0.0
        return CrossedPilot(spread or None, None, None)
    weights = [len(part[0]) for part in parts]
    row, column, rest = np.average(np.array(found), axis=0, weights=weights)
    row, column, rest = (max(float(part), 0.0) for part in (row - _shared(parts), column, rest))
    total = row + column + rest
    return CrossedPilot(math.sqrt(total), row / total, column / total) if total else CrossedPilot(None, None, None)


Cells = tuple[Array, Codes, Codes]
"""One value, row and column per cell."""


def cell_means(values: Array, rows: Codes, columns: Codes) -> Cells:
    """Return the mean of each row and column that has answers."""
    cells, place = np.unique(np.stack([rows, columns]), axis=1, return_inverse=True)
    place = place.ravel()
    return np.bincount(place, weights=values) / np.bincount(place), cells[0], cells[1]


def variance_components(values: Array, rows: Codes, columns: Codes) -> Array | None:
    """Return the variances between rows, between columns and of the rest, one value a cell; None if undetermined.

    Sums of squares within rows, within columns and of all cells, set equal to what they are expected to be: unbiased
    whatever cells are missing, and the analysis of variance where none is. An estimate may be below 0.
    Source: Gao and Owen (2017), section 4.
    """
    n = len(values)
    ways = [np.unique(way, return_inverse=True)[1].ravel() for way in (rows, columns)]
    sizes = [np.bincount(way) for way in ways]
    if n < 2 or min(map(len, sizes)) < 2:
        return None
    within_rows, within_columns = (n - len(size) for size in sizes)
    pairs = [n - float((size**2).sum()) / n for size in sizes]
    expected = np.array([[0, within_rows, within_rows], [within_columns, 0, within_columns], [*pairs, n - 1]])
    if np.linalg.matrix_rank(expected) < 3:
        return None
    means = [np.bincount(way, weights=values) / size for way, size in zip(ways, sizes, strict=True)]
    seen = [((values - mean[way]) ** 2).sum() for way, mean in zip(ways, means, strict=True)]
    found: Array = np.linalg.solve(expected, np.array([*seen, ((values - values.mean()) ** 2).sum()]))
    return found


def _shared(parts: list[Cells]) -> float:
    """Return the variance that rows add to both sides alike: the covariance of the rows' means on either."""
    if len(parts) != 2:
        return 0.0
    means = [dict(zip(*_row_means(part), strict=True)) for part in parts]
    both = sorted(means[0].keys() & means[1].keys())
    if len(both) < 2:
        return 0.0
    table = np.array([[mean[row] for row in both] for mean in means])
    return float(np.cov(table)[0, 1])


def _row_means(part: Cells) -> tuple[list[int], list[float]]:
    names, own = np.unique(part[1], return_inverse=True)
    means = np.bincount(own.ravel(), weights=part[0]) / np.bincount(own.ravel())
    return names.tolist(), means.tolist()


def _repeated(parts: list[Cells]) -> bool:
    return bool(parts) and all(len(part[0]) > 1 for part in parts)
