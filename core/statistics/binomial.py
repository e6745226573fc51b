"""Counts of hits: the exact test, the exact interval and Wilson's, as `scipy.stats.binomtest` has them.

They are made anew of `scipy.special`, as importing `scipy.stats` takes longer than most studies take to be scored. The
tests compare them.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy import special

from .quantiles import normal_ppf

Ends = tuple[float, float]
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
    from scipy.optimize import brentq

    tail = (1 - level) / 2
    low = brentq(lambda chance: at_least(hits, n, chance) - tail, 0, 1) if hits else 0.0
    high = brentq(lambda chance: at_most(hits, n, chance) - tail, 0, 1) if hits < n else 1.0
    return float(low), float(high)


def wilson_interval(hits: int, n: int, level: float) -> Ends:
    """Return the ends of the interval of Wilson (1927)."""
    z, part = float(normal_ppf(0.5 + 0.5 * level)), hits / n
    below = 2 * (n + z**2)
    middle = (2 * n * part + z**2) / below
    reach = z / below * sqrt(4 * n * part * (1 - part) + z**2)
    return middle - reach if hits else 0.0, middle + reach if hits < n else 1.0
