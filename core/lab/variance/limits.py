"""Intervals of linear combinations of variance components."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import chi2, f, norm

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
FARTHEST = 1e12
"""A ratio above this is as good as infinite."""


class Squares(NamedTuple):
    """Components as combinations of mean squares."""

    squares: Array
    """Mean squares, in the order of the components."""
    freedom: Array
    solved: Array
    """Shape (components, squares): every variance is a combination of the mean squares."""

    @property
    def named(self) -> tuple[str, str]:
        """Return the method of the interval of one component, and of a sum of several."""
        return "modified large sample", "modified large sample"

    def interval(self, weights: Array, level: float) -> tuple[float, float]:
        """Return the interval of `weights @ variances`."""
        return interval(weights @ self.solved, self.squares, self.freedom, level)


class Likely(NamedTuple):
    """Components of the greatest likelihood."""

    variances: Array
    covariance: Array
    """Of the estimates, shape (components, components)."""

    @property
    def named(self) -> tuple[str, str]:
        """Return the method of the interval of one component, and of a sum of several."""
        return "profile likelihood", "Satterthwaite"

    def interval(self, weights: Array, level: float) -> tuple[float, float]:
        """Return the interval of `weights @ variances`.

        A sum of weights of one sign is taken as a chi-squared with as many degrees of freedom as its mean and variance
        tell (Satterthwaite 1946); a difference, and a sum that is 0, as normal.
        """
        value, tail = float(weights @ self.variances), (1 - level) / 2
        spread = float(weights @ self.covariance @ weights)
        if spread <= 0:
            return value, value
        if value > 0 and (weights >= 0).all():
            freedom = 2 * value**2 / spread
            return float(freedom * value / chi2.isf(tail, freedom)), float(freedom * value / chi2.ppf(tail, freedom))
        reach = float(norm.isf(tail)) * spread**0.5
        return value - reach, value + reach


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
    return _root(lambda ratio: of(ratio)[0]), _root(lambda ratio: of(ratio)[1])


def _root(end: Callable[[float], float]) -> float:
    """Return where an end that falls with the ratio is 0; 0 where it is so from the start."""
    if end(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while end(high) > 0:
        low, high = high, high * 4
        if high > FARTHEST:
            return float("inf")
    return float(brentq(end, low, high, xtol=1e-15, rtol=1e-14))
