"""The least Overall score that a joint confidence region of the categories allows.

A mean of distances from one half is never below 0, so resampling moves it upwards, and a percentile interval of it
never holds 0. Its low end is therefore the least score in the region sum (p_c - q_c)^2 / v_c <= chi2(level, C). That
holds the true point at the level wherever it is, one half included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize

from ...core.statistics.arrays import Array
from ...core.statistics.scipy_stats import stats

MOST = 12
"""Power of ten of a shrinkage that leaves nothing of any distance; its opposite leaves all."""


def least_distances(hits: Array, n: Array, level: float, squared: bool) -> Array:
    """Return |q_c - 1/2| at the point of the region whose sum of distances, or of their squares, is least.

    Args:
        hits: Stereotypes by category.
        n: Prompts by category, above 0.
        level: Of the region.
        squared: Whether squares are summed (as KL does, nearly) in place of distances (as the Bias Score does).
    """
    away = np.abs(hits / n - 0.5)
    near = (hits + 2) / (n + 4)  # Agresti and Coull: a share of 0 or 1 has a variance too
    variance = near * (1 - near) / n
    reach = float(stats.chi2.ppf(level, len(n)))
    if (away**2 / variance).sum() <= reach:
        return np.zeros_like(away)

    def left(pull: float) -> Array:
        if squared:
            return np.asarray(away / (1 + pull * variance))
        return np.maximum(away - pull * variance, 0.0)

    return left(_solve(lambda pull: float(((away - left(pull)) ** 2 / variance).sum()) - reach))


def _solve(excess: Callable[[float], float]) -> float:
    power = float(optimize.brentq(lambda power: excess(10.0**power), -MOST, MOST))
    return float(10.0**power)
