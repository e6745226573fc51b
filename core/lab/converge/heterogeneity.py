"""Heterogeneity of effects: Cochran's Q, I squared, and tau squared with the interval of the Q-profile.

No mean over methods is made of them: they say how far methods differ beyond their errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from scipy.optimize import brentq

from ...statistics.intervals import Array, normal_isf, stats

MOST = 1e4
"""Largest tau squared that is looked for; Cohen's h lies within pi / 2 of 0."""


class Heterogeneity(msgspec.Struct, frozen=True):
    """How far effects differ beyond their standard errors."""

    n: int
    """Effects with a standard error."""
    q: float
    """Cochran's Q (1954), weights 1 / error squared."""
    p: float
    """Of Q, chi-squared with n - 1 degrees of freedom: valid for independent errors."""
    tau2: float
    """Variance of the effects themselves, by Paule and Mandel (1982)."""
    tau2_low: float
    tau2_high: float
    """Q-profile interval (Viechtbauer 2007); both ends are 0 of effects more alike than their errors make likely."""
    i2: float
    """Share of the variance that is of the effects: tau2 / (tau2 + typical error squared) (Higgins and Thompson
    2002)."""
    i2_low: float
    i2_high: float


def heterogeneity(values: Sequence[float], errors: Sequence[float], level: float = 0.95) -> Heterogeneity | None:
    """Return the heterogeneity of effects with these standard errors; None of fewer than two."""
    y, s2 = np.asarray(values, float), np.asarray(errors, float) ** 2
    if len(y) < 2:
        return None
    freedom = len(y) - 1
    chi2: Any = stats.chi2
    q = _q(0.0, y, s2)
    w = 1 / s2
    typical = freedom * w.sum() / (w.sum() ** 2 - (w**2).sum())
    tail = (1 - level) / 2
    # Q falls as tau squared rises, and meets each quantile once, if at all.
    low, high = (_meet(float(chi2.isf(at, freedom)), y, s2) for at in (tail, 1 - tail))
    tau2 = _meet(float(freedom), y, s2)
    i2, i2_low, i2_high = (x / (x + typical) for x in (tau2, low, high))
    return Heterogeneity(
        len(y), q, float(chi2.sf(q, freedom)), tau2, low, high, float(i2), float(i2_low), float(i2_high)
    )


def _q(tau2: float, y: Array, s2: Array) -> float:
    w = 1 / (s2 + tau2)
    return float((w * (y - (w * y).sum() / w.sum()) ** 2).sum())


def _meet(target: float, y: Array, s2: Array) -> float:
    """Return the tau squared at which Q has a value; 0 where it is below it from the start."""
    if _q(0.0, y, s2) <= target:
        return 0.0
    low, high = 0.0, 1e-6
    while _q(high, y, s2) > target and high < MOST:
        low, high = high, 2 * high
    if _q(high, y, s2) > target:
        return high
    return float(brentq(lambda tau2: _q(tau2, y, s2) - target, low, high, xtol=1e-15, rtol=1e-14))


def at_least(p_values: Sequence[float], alpha: float) -> int:
    """Return how many of several hypotheses are false at least, at this level, however their tests depend.

    The partial conjunction of Benjamini and Heller (2008) by Bonferroni: that fewer than u of n effects exist has the
    p-value (n - u + 1) p(u), where p(u) is the u-th smallest, and no less than those of smaller u.
    """
    ordered, found, worst = sorted(p_values), 0, 0.0
    for u, p in enumerate(ordered, 1):
        worst = max(worst, (len(ordered) - u + 1) * p)
        if worst > alpha:
            break
        found = u
    return found


def correlation(x: Sequence[float], y: Sequence[float], level: float = 0.95) -> Correlated:
    """Return Kendall's tau-b of two methods over models, its exact or asymptotic p by scipy, and an interval.

    The interval is Fieller's (1957): atanh(tau) with standard error sqrt(0.437 / (n - 4)), of five models or more. It
    is undefined at 1 and -1; there the bound of pairs of models that share none is given, each concordant or not
    (Clopper and Pearson 1934).
    """
    n = len(x)
    if n < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return Correlated(n)
    found = stats.kendalltau(x, y)
    tau, p = float(found.statistic), float(found.pvalue)
    if abs(tau) > 1 - 1e-12:
        least = 2 * ((1 - level) / 2) ** (1 / (n // 2)) - 1
        low, high = (least, 1.0) if tau > 0 else (-1.0, -least)
    elif n > 4:
        reach = float(normal_isf((1 - level) / 2)) * (0.437 / (n - 4)) ** 0.5
        low, high = (float(np.tanh(np.arctanh(tau) + side * reach)) for side in (-1, 1))
    else:
        return Correlated(n, tau, p)
    return Correlated(n, tau, p, low, high)


class Correlated(msgspec.Struct, frozen=True):
    """A rank correlation over models; without a value there are fewer than three, or no order among them."""

    n: int
    tau: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None
