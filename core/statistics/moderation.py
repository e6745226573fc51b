"""Moderated variances: the variances of the groups of a family, each drawn towards what they have in common.

Empirical Bayes as in limma (Smyth 2004): the variances are taken as drawn from a scaled inverse chi-square distribution
with `freedom` degrees of freedom, which is fitted by the moments of their logarithms. Each group then has that many
degrees of freedom more, at most those of all groups together.

The gain supposes that the groups vary independently of each other, and that each variance is that of a chi-square
distribution. Where groups share preferences their variances are copies of one, and with few levels those of a jackknife
over several facets are no such: the test then has too many false positives. `benchmarks/power.py` says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from scipy import special

from .facets import Inference
from .intervals import Array, Flags, Ranges, t_ends, t_test, within

FEWEST_GROUPS = 2
"""Groups with a variance, below which nothing is moderated."""


class Prior(NamedTuple):
    """What variances have in common."""

    variance: float
    freedom: float
    """Infinite where they differ by chance alone: then all are taken as equal."""


class Spread(NamedTuple):
    """Variances and their degrees of freedom, (units, statistics), and which of them were moderated."""

    variance: Array
    freedom: Array
    moderated: Flags


def fitted(variance: Array, freedom: Array) -> Prior:
    """Return what these variances have in common, by the moments of their logarithms.

    Args:
        variance: above 0, of two groups or more.
        freedom: degrees of freedom of each.

    Source: Smyth (2004), section 6.2; `fitFDist` of limma.
    """
    logs = np.log(variance) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    if excess <= 0:
        return Prior(float(variance.mean()), np.inf)
    half = trigamma_inverse(excess)
    return Prior(float(np.exp(logs.mean() + special.digamma(half) - np.log(half))), 2 * half)


def trigamma_inverse(value: float) -> float:
    """Return where the trigamma function has a value above 0, by Newton's method (Smyth 2004, appendix)."""
    if value > 1e7:
        return float(value**-0.5)
    if value < 1e-6:
        return 1 / value
    root = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, root))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, root))
        root += step
        if -step / root < 1e-10:
            break
    return root


def moderated(tables: Sequence[tuple[Array, Array]], families: Sequence[Sequence[object]]) -> Iterator[Spread]:
    """Yield moderated variances, table by table.

    Args:
        tables: variances and degrees of freedom, (units, statistics) each; what is undefined or 0 stays, and says
            nothing of the others.
        families: the family of each unit, by table.
    """
    variance, freedom = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    names = [name for table in families for name in table]
    changed = np.zeros(variance.shape, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        known = np.isfinite(variance) & np.isfinite(freedom) & (variance > 0)
    for name in dict.fromkeys(names):
        member = np.array([family == name for family in names])
        for column in range(variance.shape[1]):
            here = np.flatnonzero(member & known[:, column]), column
            if len(here[0]) >= FEWEST_GROUPS:
                variance[here], freedom[here] = _drawn(variance[here], freedom[here])
                changed[here] = True
    ends = np.cumsum([len(table) for table, _ in tables])[:-1]
    parts = (np.split(table, ends) for table in (variance, freedom, changed))
    return (Spread(*table) for table in zip(*parts, strict=True))


def _drawn(variance: Array, freedom: Array) -> tuple[Array, Array]:
    """Return variances drawn towards their prior, and the degrees of freedom that they then have."""
    prior, pooled = fitted(variance, freedom), freedom.sum()
    if np.isinf(prior.freedom):
        return np.full_like(variance, prior.variance), np.full_like(freedom, pooled)
    total = prior.freedom + freedom
    return (prior.freedom * prior.variance + freedom * variance) / total, np.minimum(total, pooled)


def with_spread(inference: Inference, observed: Array, spread: Spread, neutral: float, ranges: Ranges) -> Inference:
    """Return an inference over several facets with intervals and tests of moderated variances.

    Args:
        inference: the inference; what a permutation tests stays.
        observed: the statistics, (units, statistics).
        spread: their variances.
        neutral: what the tests compare statistics with.
        ranges: what each statistic can be.
    """
    low, high = t_ends(observed, spread.variance, inference.plan.level, spread.freedom)
    t, p = t_test(observed - neutral, spread.variance, spread.freedom)
    changed = spread.moderated & np.isfinite(low) & ~inference.permuted
    low, high = within(low, high, ranges)
    before = (
        inference.low,
        inference.high,
        np.full_like(p, np.nan) if inference.t is None else inference.t,
        inference.p,
    )
    low, high, t, p = (np.where(changed, new, old) for new, old in zip((low, high, t, p), before, strict=True))
    return msgspec.structs.replace(inference, low=low, high=high, t=t, p=p, moderated=changed.any(axis=1))
