"""The ends of an interval: expanded percentiles and BCa of bootstrap replicates, and the jackknife with t.

Replicates have the shape (replicates, ...); every statistic in the trailing axes gets an interval of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from ._arrays import Array, Codes, ratio


def expanded_tail(level: float, clusters: int) -> float:
    """Return the tail to cut so that a percentile interval of few clusters is as wide as a t interval.

    Source: Hesterberg (2015), What teachers should know about the bootstrap, section 3.3.1 (expanded percentile).
    """
    stretch = math.sqrt(clusters / (clusters - 1)) * stats.t.isf((1 - level) / 2, clusters - 1)
    return float(stats.norm.sf(stretch))


def percentiles(replicates: Array, tail: float) -> tuple[Array, Array]:
    """Cut `tail` off both ends; NaN where most replicates are undefined or none differs."""
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
    for where in map(tuple, np.argwhere(np.isnan(replicates).any(axis=0))):
        low[where], high[where] = _cut(replicates[(slice(None), *where)], tail, 1 - tail)
    return _wide(low, high)


def bca(replicates: Array, observed: Array, acceleration: Array, tail: float) -> tuple[Array, Array]:
    """Return bias-corrected and accelerated ends; NaN also where all replicates lie on one side of the observed.

    Source: Efron (1987); Efron and Tibshirani (1993), chapter 14.
    """
    below = (replicates < observed).sum(axis=0) + 0.5 * (replicates == observed).sum(axis=0)
    defined = (~np.isnan(replicates)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = stats.norm.ppf(below / defined)
        levels = [_level(shift, acceleration, z) for z in (stats.norm.ppf(tail), -stats.norm.ppf(tail))]
    low, high = np.full((2, *observed.shape), np.nan)
    for where in map(tuple, np.argwhere(np.isfinite(levels[0]) & np.isfinite(levels[1]))):
        low[where], high[where] = _cut(replicates[(slice(None), *where)], levels[0][where], levels[1][where])
    return _wide(low, high)


def acceleration(left_out: Array, strata: Sequence[Codes]) -> Array:
    """Return BCa's acceleration from the statistics with one cluster left out at a time, shape (clusters, ...).

    Each stratum is centred on itself, as for samples that are drawn apart; 0 where nothing varies.
    """
    above, below = np.zeros((2, *left_out.shape[1:]))
    for members in strata:
        n = len(members)
        influence = (n - 1) * (left_out[members].mean(axis=0) - left_out[members])
        above += (influence**3).sum(axis=0) / n**3
        below += (influence**2).sum(axis=0) / n**2
    bend: Array = np.divide(above, 6 * below**1.5, out=np.zeros_like(above), where=below > 0)
    return bend


def jackknife_variance(left_out: Array, observed: Array, strata: Sequence[Codes]) -> tuple[Array, Array]:
    """Return the variance of statistics from leaving out one cluster at a time, and its degrees of freedom.

    Strata as for `acceleration`; with several, the degrees of freedom are Welch and Satterthwaite's.
    Source: Efron and Stein (1981); for clusters MacKinnon, Nielsen and Webb (2023), CV3.
    """
    parts = [
        (len(own) - 1) / len(own) * ((left_out[own] - observed) ** 2).sum(axis=0) for own in strata if len(own) > 1
    ]
    counts = [len(own) - 1 for own in strata if len(own) > 1]
    return np.sum(parts, axis=0), pooled_freedom(parts, counts)


def pooled_freedom(parts: Sequence[Array], counts: Sequence[int]) -> Array:
    """Return the degrees of freedom of a sum of variances. Source: Satterthwaite (1946)."""
    spread = np.sum([part**2 / count for part, count in zip(parts, counts, strict=True)], axis=0)
    return ratio(np.sum(parts, axis=0) ** 2, spread)


def t_ends(observed: Array, variance: Array, level: float, freedom: Array) -> tuple[Array, Array]:
    """Return observed plus and minus t standard errors; NaN without variance."""
    reach = stats.t.isf((1 - level) / 2, freedom) * np.sqrt(variance)
    return _wide(observed - reach, observed + reach)


def _level(shift: Array, acceleration: Array, z: float) -> Array:
    moved = shift + z
    level: Array = stats.norm.cdf(shift + moved / (1 - acceleration * moved))
    return level


def _cut(replicates: Array, low: float, high: float) -> tuple[float, float]:
    defined = replicates[~np.isnan(replicates)]
    if 2 * len(defined) <= len(replicates):
        return math.nan, math.nan
    ends = np.quantile(defined, [low, high])
    return float(ends[0]), float(ends[1])


def _wide(low: Array, high: Array) -> tuple[Array, Array]:
    flat = ~(low < high)
    low[flat] = high[flat] = np.nan
    return low, high
