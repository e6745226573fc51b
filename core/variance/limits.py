"""Intervals of linear combinations of mean squares, by modified large samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, f

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
METHOD = "modified large sample"
FARTHEST = 1e12
"""A ratio above this is as good as infinite."""


def interval(weights: Array, squares: Array, freedom: Array, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of `sum(weights * expected squares)`, which may have weights of both signs.

    Each end errs with half of `1 - level`. Mean squares are taken as independent, each a chi-squared by its degrees
    of freedom: this holds in balanced designs with normal effects, and is an approximation elsewhere.

    Source: Ting, Burdick, Graybill, Jeyaratnam and Lu (1990); Burdick and Graybill (1992), section 3.3.

    Args:
        weights: shape (squares,).
        squares: mean squares; below 0, as sums may be where a design is unbalanced, they count as 0.
        freedom: their degrees of freedom.
        level: of the interval.
    """
    used = (weights != 0) & (freedom > 0)
    parts, own = weights[used] * np.maximum(squares[used], 0.0), freedom[used]
    value = float(weights[used] @ squares[used])
    tail = (1 - level) / 2
    low = value - np.sqrt(_reach(parts, own, tail))
    high = value + np.sqrt(_reach(-parts, own, tail))
    return float(low), float(high)


def _reach(parts: Array, freedom: Array, tail: float) -> float:
    """Return the squared distance from the value to its lower end."""
    up, down = parts > 0, parts < 0
    shrunk = 1 - freedom / chi2.isf(tail, freedom)
    grown = freedom / chi2.ppf(tail, freedom) - 1
    total = float(((shrunk * parts)[up] ** 2).sum() + ((grown * parts)[down] ** 2).sum())
    for one in np.flatnonzero(up):
        for other in np.flatnonzero(down):
            edge = f.isf(tail, freedom[one], freedom[other])
            cross = ((edge - 1) ** 2 - (shrunk[one] * edge) ** 2 - grown[other] ** 2) / edge
            total += cross * parts[one] * -parts[other]
    return max(total, 0.0)


def ratio_interval(of: Callable[[float], tuple[float, float]]) -> tuple[float, float]:
    """Return the interval of a ratio of two combinations, at least 0.

    `of` gives the interval of the first less so many times the second: the ratio lies where 0 lies within that.
    """
    return _edge(lambda ratio: of(ratio)[0] > 0), _edge(lambda ratio: of(ratio)[1] > 0)


def _edge(above: Callable[[float], bool]) -> float:
    if not above(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while above(high):
        low, high = high, high * 4
        if high > FARTHEST:
            return float("inf")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high
