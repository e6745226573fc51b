"""Intervals: exact and Wilson ones of shares, and those from replicates of a statistic.

Percentile and BCa bootstrap, and the jackknife with Student's t, with what few clusters ask for. Replicates have the
shape (replicates, ...); every statistic in the trailing axes gets an interval of its own. A share comes with its exact
test and the worst case of what is missing (Manski 1990). Quantiles and tails are those of `scipy.special`, which
`scipy.stats` calls too: importing it takes a fifth of the time.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special


class _Lazy:
    """A module that is imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


stats: Any = _Lazy("scipy.stats")
_optimize: Any = _Lazy("scipy.optimize")


def normal_cdf(x: Any) -> Any:
    """Return the probability of at most `x`."""
    return special.ndtr(x)


def normal_sf(x: Any) -> Any:
    """Return the probability of more than `x`."""
    return special.ndtr(-x)


def normal_ppf(p: Any) -> Any:
    """Return what lies above a share `p`."""
    return special.ndtri(p)


def normal_isf(p: Any) -> Any:
    """Return what lies below a share `p`."""
    return -special.ndtri(p)


def t_sf(x: Any, freedom: Any) -> Any:
    """Return the probability of more than `x` under Student's t."""
    return special.stdtr(freedom, -x)


def t_isf(p: Any, freedom: Any) -> Any:
    """Return what lies below a share `p` under Student's t."""
    return -special.stdtrit(freedom, p)


Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def ratio(above: Array, below: Array) -> Array:
    """Divide; NaN where the divisor is not above 0."""
    empty = np.empty(np.broadcast(above, below).shape)
    empty.fill(np.nan)
    quotient: Array = np.divide(above, below, out=empty, where=np.greater(below, 0))
    return quotient


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


def t_test(distance: Array, variance: Array, freedom: Array) -> Array:
    """Return t and its two-sided p, never 0, which go with `t_ends`: is the distance 0? Shape (2, ...)."""
    t = np.sign(distance) * ratio(np.abs(distance), np.sqrt(variance))
    return np.stack([t, np.clip(2 * t_sf(np.abs(t), freedom), LEAST_P, 1.0)])


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


Ends = tuple[float, float]
CLOSE, SHARE_ROUNDING = 2e-12, 4 * sys.float_info.epsilon
"""How near a root is found: those of scipy."""
TIES = 1 + 1e-7
"""Outcomes up to this much more likely count as equally likely: what differs is rounding."""


def binomial_test(hits: int, n: int, chance: float = 0.5) -> float:
    """Return the two-sided p: the probability of all that is at most as likely as `hits`."""
    if hits == chance * n:
        return 1.0
    counts = np.arange(n + 1)
    ways = special.gammaln(n + 1) - special.gammaln(counts + 1) - special.gammaln(n - counts + 1)
    likely = ways + special.xlogy(counts, chance) + special.xlog1py(n - counts, -chance)
    rare = likely <= likely[hits] + np.log(TIES)
    below = counts[rare & (counts < chance * n)].max(initial=-1)
    above = counts[rare & (counts > chance * n)].min(initial=n + 1)
    return min(1.0, at_most(int(below), n, chance) + at_least(int(above), n, chance))


def at_most(hits: int, n: int, chance: float) -> float:
    """Return the probability of at most `hits`."""
    return 0.0 if hits < 0 else 1.0 if hits >= n else float(special.betaincc(hits + 1, n - hits, chance))


def at_least(hits: int, n: int, chance: float) -> float:
    """Return the probability of at least `hits`."""
    return 1.0 if hits <= 0 else 0.0 if hits > n else float(special.betainc(hits, n - hits + 1, chance))


def exact_interval(hits: int, n: int, level: float) -> Ends:
    """Return the ends of the interval of Clopper and Pearson (1934)."""
    tail = (1 - level) / 2
    low = _root(lambda chance: at_least(hits, n, chance) - tail) if hits else 0.0
    high = _root(lambda chance: at_most(hits, n, chance) - tail) if hits < n else 1.0
    return float(low), float(high)


def _root(f: Callable[[float], float]) -> float:
    """Return where a monotone function crosses 0 between 0 and 1."""
    return float(_optimize.brentq(f, 0.0, 1.0, xtol=CLOSE, rtol=SHARE_ROUNDING))


def wilson_interval(hits: float, n: float, level: float) -> Ends:
    """Return the ends of the interval of Wilson (1927), also of weighted counts; the whole range without any."""
    if n <= 0:
        return 0.0, 1.0
    z, part = float(normal_ppf(0.5 + 0.5 * level)), hits / n
    below = 2 * (n + z**2)
    middle = (2 * n * part + z**2) / below
    reach = z / below * math.sqrt(4 * n * part * (1 - part) + z**2)
    return middle - reach if hits else 0.0, middle + reach if hits < n else 1.0


Bounds = tuple[float | None, float | None]
Limits = tuple[float, float] | None
"""The least and the greatest an answer can be; None where there are none."""


def mean_bounds(total: float, n: int, missing: int, limits: Limits) -> Bounds:
    """Bound the mean of `n` answers that sum to `total`, and of `missing` ones within `limits`."""
    if n + missing == 0 or (missing and limits is None):
        return None, None
    least, greatest = limits or (0.0, 0.0)
    return (total + missing * least) / (n + missing), (total + missing * greatest) / (n + missing)


def difference_bounds(first: Bounds, second: Bounds) -> Bounds:
    """Bound the first less the second, whose missing answers have nothing to do with each other."""
    (low, high), (less_low, less_high) = first, second
    if low is None or high is None or less_low is None or less_high is None:
        return None, None
    return low - less_high, high - less_low


def paired_bounds(first: Sequence[float] | Array, second: Sequence[float] | Array, limits: Limits) -> Bounds:
    """Bound the mean of first less second over all pairs; NaN is missing.

    Where one side of a pair is there, only the other is unknown: so the range is narrower than that of two means
    of complete pairs, whose incomplete pairs may be anything.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    absent = int(np.isnan(one).sum()), int(np.isnan(other).sum())
    means = (
        mean_bounds(float(np.nansum(x)), len(x) - gone, gone, limits)
        for x, gone in zip((one, other), absent, strict=True)
    )
    return difference_bounds(*means)


LEAST_P = sys.float_info.min
"""A p below this underflows; it is small, but never 0."""


class Share(msgspec.Struct, frozen=True):
    """A share of `n` with its exact (Clopper-Pearson) interval and exact two-sided binomial test against 1/2."""

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def share(hits: int, n: int, level: float) -> Share:
    """Return the share of `hits` among `n` decided units; everything None for n = 0."""
    if n == 0:
        return Share(None)
    return Share(hits / n, *exact_interval(hits, n, level), max(binomial_test(hits, n), LEAST_P))


def worst_case(hits: int, n: int, missing: int) -> Bounds:
    """Return the least and the greatest share over all answers the missing units might have given (Manski 1990)."""
    return mean_bounds(hits, n, missing, (0.0, 1.0))


def scaled(value: float | None, by: float, shift: float = 0.0) -> float | None:
    """Return value * by + shift; None stays None."""
    return None if value is None else value * by + shift
