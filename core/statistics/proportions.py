"""Shares of a count: exact test, exact and Wilson interval, worst case of what is missing (Manski 1990).

A share of nothing is None, and so are its interval and its test. Tests and intervals are those of
`scipy.stats.binomtest`, computed by `scipy.special`: importing `scipy.stats` takes longer than most studies take to be
scored. The tests compare them. A worst case is the least and the greatest value over every possible answer; it speaks
of missing answers alone, and sampling error comes on top. Without limits to an answer it has no ends while any is
missing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from scipy import special

from .arrays import Array
from .quantiles import normal_ppf

Ends = tuple[float, float]
CLOSE, ROUNDING = 2e-12, 4 * sys.float_info.epsilon
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
    """Return where a monotone function crosses 0 between 0 and 1, by the steps of `scipy.optimize.brentq`.

    The same steps end at the same number; the import of `scipy.optimize` takes longer than the intervals of a study.
    Source: Brent (1973), chapter 4.
    """
    before, now, far = 0.0, 1.0, 0.0
    f_before, f_now, f_far = f(before), f(now), 0.0
    step_before = step = 0.0
    while True:
        if f_before * f_now < 0:
            far, f_far, step_before, step = before, f_before, now - before, now - before
        if abs(f_far) < abs(f_now):
            before, now, far = now, far, now
            f_before, f_now, f_far = f_now, f_far, f_now
        least, half = (CLOSE + ROUNDING * abs(now)) / 2, (far - now) / 2
        if f_now == 0 or abs(half) < least:
            return now
        most = min(abs(step_before), 3 * abs(half) - least) if abs(step_before) > least else 0.0
        tried = _secant((before, now, far), (f_before, f_now, f_far)) if abs(f_now) < abs(f_before) else math.inf
        step_before, step = (step, tried) if 2 * abs(tried) < most else (half, half)
        before, f_before = now, f_now
        now += step if abs(step) > least else math.copysign(least, half)
        f_now = f(now)


def _secant(x: tuple[float, float, float], f: tuple[float, float, float]) -> float:
    """Return the step from the second point that a line, or a curve through all three, suggests."""
    (before, now, far), (f_before, f_now, f_far) = x, f
    if before == far:
        return -f_now * (now - before) / (f_now - f_before)
    one, other = (f_before - f_now) / (before - now), (f_far - f_now) / (far - now)
    return -f_now * (f_far * other - f_before * one) / (other * one * (f_far - f_before))


def wilson_interval(hits: int, n: int, level: float) -> Ends:
    """Return the ends of the interval of Wilson (1927)."""
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
