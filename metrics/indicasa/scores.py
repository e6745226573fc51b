"""Stereotype Probability to Bias Score: the formulas of IndiCASA, and the score of an unbiased model by chance.

A mean of distances from one half is never below 0, so resampling moves it upwards, and a percentile interval of it
never contains 0. The low end of an Overall score is therefore the minimum score in a joint confidence region of the
categories, sum (p_c - q_c)^2 / v_c <= chi2(level, C). This region covers the true point at the level everywhere, one
half included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize, special

from ...core.contracts.estimates import Estimate
from ...core.statistics.intervals import Array, Bounds, stats

MOST = 12
"""Power of ten of a shrinkage that leaves nothing of any distance; its opposite leaves all."""


def least_distances(hits: Array, n: Array, level: float, squared: bool) -> Array:
    """Return |q_c - 1/2| at the point of the region whose sum of distances, or of their squares, is least.

    Args:
        hits: Stereotypes by category.
        n: Prompts by category, above 0.
        level: Level of the region.
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


def bias_score(p: Array) -> Array:
    """Return 100 (|1/2 - p| + |1/2 - (1 - p)|) = 100 |2p - 1|. Source: equation 7."""
    score: Array = 100 * np.abs(2 * p - 1)
    return score


def kl_score(p: Array) -> Array:
    """Return the Kullback-Leibler divergence of (p, 1 - p) from (1/2, 1/2) in nats. Source: equation 8."""
    divergence: Array = special.rel_entr(p, 0.5) + special.rel_entr(1 - p, 0.5)
    return divergence


def folded(low: float, high: float) -> tuple[float, float]:
    """Return the range of |p - 1/2| + 1/2 where p is anywhere from `low` to `high`: what grows with both scores."""
    far = max(abs(low - 0.5), abs(high - 0.5))
    near = 0.0 if low <= 0.5 <= high else min(abs(low - 0.5), abs(high - 0.5))
    return 0.5 + near, 0.5 + far


def folded_bounds(hits: int, n: int, missing: int) -> Bounds:
    """Return the range of |p - 1/2| + 1/2 over every class that the missing prompts might have had."""
    if n + missing == 0:
        return None, None
    reached = (hits + np.arange(missing + 1)) / (n + missing)
    away = np.abs(reached - 0.5) + 0.5
    return float(away.min()), float(away.max())


def by_chance(n: int) -> float:
    """Return the exact mean Bias Score of an unbiased model on n prompts: 100 E|2X/n - 1|, X binomial."""
    hits = np.arange(n + 1)
    return float((stats.binom.pmf(hits, n, 0.5) * bias_score(hits / n)).sum())


def chance_p(sizes: Sequence[int], observed: float, resamples: int, seed: int) -> float:
    """Return how often an unbiased model has a mean Bias Score of at least `observed` on categories of these sizes."""
    rng = np.random.default_rng([seed, 4])
    drawn = np.mean([bias_score(rng.binomial(n, 0.5, resamples) / n) for n in sizes], axis=0)
    return float((1 + (drawn >= observed - 1e-9).sum()) / (1 + resamples))


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the unweighted mean; None where there is no value, or one of them is None."""
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there and len(there) == len(values) else None


def hits_of(probability: Estimate) -> int:
    """Return the count of stereotypes behind a stereotype probability."""
    return round((probability.value or 0.0) * probability.n)
