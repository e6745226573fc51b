"""Interval methods for few clusters: percentile and BCa bootstrap, and the jackknife with Student's t.

Replicates have the shape (replicates, ...); every statistic in the trailing axes gets an interval of its own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from .arrays import Array, Codes, ratio
from .quantiles import normal_cdf, normal_isf, normal_ppf, t_isf

Ranges = Sequence[tuple[float | Array, float | Array] | None]
"""What each statistic can be at all, one after the other; None, or nothing, where that is not known."""
FREE, SHARE, CONTRAST = (-math.inf, math.inf), (0.0, 1.0), (-1.0, 1.0)
"""Ranges: of a mean without limits, of a share, of a difference of shares."""
ROUNDING = 1e-12
"""Width of an interval, as a share of its ends, that is rounding."""
FEWEST = 10
"""Below so many clusters, percentiles are stretched: see `stretched`."""


def reach_of_clusters(level: float, clusters: int) -> float:
    """Return how many of the bootstrap's standard errors an interval of so few clusters must reach.

    Source: Hesterberg (2015), What teachers should know about the bootstrap, section 3.3.1 (expanded percentile).
    """
    return math.sqrt(clusters / (clusters - 1)) * float(t_isf((1 - level) / 2, clusters - 1))


def reach_of(left_out: Array, strata: Sequence[Codes], level: float) -> Array:
    """Return the reach of statistics that rest on several strata, such as two groups of clusters.

    Each stratum loses its own (n - 1) / n of the variance, and the degrees of freedom are Welch and Satterthwaite's:
    those of the smaller group would make every comparison too wide. `left_out` as for `acceleration`; NaN where a
    statistic is undefined without one of the clusters.
    """
    parts, lost, counts = [], [], []
    for own in strata:
        n = len(own)
        parts.append((n - 1) / n * ((left_out[own] - left_out[own].mean(axis=0)) ** 2).sum(axis=0))
        lost.append(parts[-1] * (n - 1) / n)
        counts.append(n - 1)
    shrunk: Array = np.sqrt(ratio(np.sum(parts, axis=0), np.sum(lost, axis=0)))
    found: Array = shrunk * t_isf((1 - level) / 2, pooled_freedom(parts, counts))
    return found


def percentiles(replicates: Array, tail: Array | float) -> tuple[Array, Array]:
    """Cut `tail` (one, or one per statistic) off both ends; NaN where most replicates are undefined or none differs."""
    tails = np.broadcast_to(tail, replicates.shape[1:])
    low, high = np.full((2, *tails.shape), np.nan)
    for own in np.unique(tails):
        where = tails == own
        part = replicates if where.all() else replicates[:, where]
        found = np.quantile(part, [own, 1 - own], axis=0)
        low[where], high[where] = found.reshape(2, -1)
    for place in map(tuple, np.argwhere(np.isnan(replicates).any(axis=0))):
        low[place], high[place] = _cut(replicates[(slice(None), *place)], tails[place], 1 - tails[place])
    return _wide(low, high)


def stretched(
    replicates: Array, observed: Array, reach: Array, level: float, ranges: Ranges = ()
) -> tuple[Array, Array]:
    """Return percentile ends moved away from the observed value, to `reach` instead of the normal distribution's.

    For very few clusters: no quantile of the replicates lies as far out as it must, since none lies beyond the outmost
    cluster. An end stops at the limit of its statistic; where `ranges` names none, at the outmost replicate.
    """
    low, high = percentiles(replicates, (1 - level) / 2)
    factor = reach / normal_isf((1 - level) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # A statistic without a replicate has no interval.
        outmost = np.nanmin(replicates, axis=0), np.nanmax(replicates, axis=0)
    least, greatest = _limits(ranges, outmost)
    return _wide(
        np.maximum(observed + factor * (low - observed), least),
        np.minimum(observed + factor * (high - observed), greatest),
    )


def within(low: Array, high: Array, ranges: Ranges) -> tuple[Array, Array]:
    """Return the ends, none beyond what its statistic can be."""
    least, greatest = _limits(ranges, (np.full(low.shape, -np.inf), np.full(low.shape, np.inf)))
    return np.maximum(low, least), np.minimum(high, greatest)


def _limits(ranges: Ranges, otherwise: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the limits of each statistic; `otherwise` where it has none."""
    least, greatest = otherwise
    for column, known in enumerate(ranges):
        if known is not None:
            least[..., column], greatest[..., column] = known
    return least, greatest


def bca(replicates: Array, observed: Array, acceleration: Array, tail: Array | float) -> tuple[Array, Array]:
    """Return bias-corrected and accelerated ends; NaN also where all replicates lie on one side of the observed.

    Source: Efron (1987); Efron and Tibshirani (1993), chapter 14.
    """
    below = (replicates < observed).sum(axis=0) + 0.5 * (replicates == observed).sum(axis=0)
    defined = (~np.isnan(replicates)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = normal_ppf(below / defined)
        levels = [_level(shift, acceleration, z) for z in (normal_ppf(tail), -normal_ppf(tail))]
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
    reach = t_isf((1 - level) / 2, freedom) * np.sqrt(variance)
    return _wide(observed - reach, observed + reach)


def _level(shift: Array, acceleration: Array, z: float) -> Array:
    moved = shift + z
    level: Array = normal_cdf(shift + moved / (1 - acceleration * moved))
    return level


def _cut(replicates: Array, low: float, high: float) -> tuple[float, float]:
    defined = replicates[~np.isnan(replicates)]
    if 2 * len(defined) <= len(replicates):
        return math.nan, math.nan
    ends = np.quantile(defined, [low, high])
    return float(ends[0]), float(ends[1])


def _wide(low: Array, high: Array) -> tuple[Array, Array]:
    # What differs by rounding alone does not differ.
    flat = ~(high - low > ROUNDING * np.maximum(np.abs(low), np.abs(high)))
    low[flat] = high[flat] = np.nan
    return low, high
