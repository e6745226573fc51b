"""Rank statistics as functions of a table of counts: groups by ordered levels.

A table has the shape (..., groups, levels), with levels in ascending order. What is a function of counts can be
resampled by clusters with one matrix product, ties and all, as the ranks are made anew from every resampled table.
Undefined is NaN.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array, Codes, ratio
from .quantiles import normal_sf

MOST = 512
"""Levels that a table has at most: bounds time and memory, and moves a rank by no more than one part in 512."""


def level_counts(values: Array, groups: Codes, clusters: Codes) -> Array:
    """Count answers per cluster, group and level of `values`, shape (clusters, 1, groups, 1 + levels).

    Column 0 is the count of the group's answers, as `bootstrap` and `swap_test` want it. Groups and clusters are
    numbered from 0; a missing value (NaN) is left out. More than `MOST` different values are put together into levels
    of about equal count; equal values stay together.
    """
    there = ~np.isnan(values)
    level = _levels(values[there])
    shape = (int(clusters.max()) + 1, int(groups.max()) + 1, int(level.max(initial=-1)) + 1)
    place = np.ravel_multi_index((clusters[there], groups[there], level), shape)
    counts = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    return np.concatenate([counts.sum(axis=-1, keepdims=True), counts], axis=-1)[:, None]


def _levels(values: Array) -> Codes:
    level: Codes
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(counts) <= MOST:
        return level
    below = np.cumsum(counts) - counts
    grouped: Codes = np.unique((below * MOST // len(values))[level], return_inverse=True)[1]
    return grouped


def midranks(totals: Array) -> Array:
    """Return the midrank of each level from the counts (..., levels) of all answers."""
    ranks: Array = np.cumsum(totals, axis=-1) - (totals - 1) / 2
    return ranks


def cliffs_delta(table: Array) -> Array:
    """Return P(first group above second) - P(below), from -1 to 1. Source: Cliff (1993)."""
    first, second = table[..., 0, :], table[..., 1, :]
    below = np.cumsum(second, axis=-1) - second
    above = second.sum(axis=-1, keepdims=True) - second - below
    return ratio((first * (below - above)).sum(axis=-1), first.sum(axis=-1) * second.sum(axis=-1))


def kruskal_h(table: Array) -> Array:
    """Return Kruskal and Wallis's H, corrected for ties; groups without an answer are left out."""
    totals = table.sum(axis=-2)
    n, sizes = totals.sum(axis=-1), table.sum(axis=-1)
    sums = (table * midranks(totals)[..., None, :]).sum(axis=-1)
    between = np.where(sizes > 0, ratio((sums - sizes * (n[..., None] + 1) / 2) ** 2, sizes), 0.0).sum(axis=-1)
    return ratio(12 * between, n * (n + 1) * (1 - ratio((totals**3 - totals).sum(axis=-1), n**3 - n)))


def epsilon_squared(table: Array) -> Array:
    """Return H (n + 1) / (n^2 - 1) = H / (n - 1), from 0 to 1. Source: Kelley (1935); Tomczak and Tomczak (2014)."""
    return ratio(kruskal_h(table), table.sum(axis=(-1, -2)) - 1)


def tau_b(table: Array) -> Array:
    """Return Kendall's tau-b of groups (in their order) and levels."""
    return taus(table)[0]


def tau_c(table: Array) -> Array:
    """Return Stuart's tau-c of groups (in their order) and levels: 2 m S / (n^2 (m - 1)), m the shorter side."""
    return taus(table)[1]


def taus(table: Array) -> tuple[Array, Array]:
    """Return tau-b and tau-c, which share most of their work."""
    counts = _groups_first(table)
    groups, levels = counts.sum(axis=1), counts.sum(axis=0)
    n, apart = levels.sum(axis=0), _concordance(counts)
    rows, columns = ((n**2 - (side**2).sum(axis=0)) / 2 for side in (levels, groups))
    shorter = np.minimum((levels > 0).sum(axis=0), (groups > 0).sum(axis=0)).astype(np.float64)
    return ratio(apart, np.sqrt(rows * columns)), ratio(2 * shorter * apart, n**2 * (shorter - 1))


def _groups_first(table: Array) -> Array:
    """Return the counts as (groups, levels, ...): numpy sums over a short axis fast only where it comes first."""
    return np.ascontiguousarray(np.moveaxis(table, (-2, -1), (0, 1)))


def kendall_p(table: Array) -> float:
    """Return the asymptotic two-sided p of Kendall's tau, as if every answer stood for itself; NaN if undefined.

    As `scipy.stats.kendalltau` has it, with the variance corrected for ties. Source: Kendall (1970), chapter 5.
    """
    n = float(table.sum())
    pairs, ties = n * (n - 1), [table.sum(axis=axis) for axis in (-1, -2)]
    (rows, row_triples, row_spread), (columns, column_triples, column_spread) = map(_ties, ties)
    if not rows < pairs or not columns < pairs:
        return float("nan")
    spread = (pairs * (2 * n + 5) - row_spread - column_spread) / 18 + rows * columns / (2 * pairs)
    if n > 2:
        spread += row_triples * column_triples / (9 * pairs * (n - 2))
    return float(min(1.0, 2 * normal_sf(abs(float(_concordance(_groups_first(table)))) / np.sqrt(spread))))


def _ties(counts: Array) -> tuple[float, float, float]:
    """Return the sums over ties of t that the variance of tau is made of."""
    pairs = counts * (counts - 1)
    return float(pairs.sum()), float((pairs * (counts - 2)).sum()), float((pairs * (2 * counts + 5)).sum())


def rank_biserial(table: Array) -> Array:
    """Return (T+ - T-) / (T+ + T-) of paired differences; groups are signs, levels are sizes above 0.

    Source: Kerby (2014); King, Rosopa and Minium (2011). Zero differences have no sign and stand in no level.
    """
    ranks = midranks(table.sum(axis=-2))
    above, below = ((table[..., side, :] * ranks).sum(axis=-1) for side in (0, 1))
    return ratio(above - below, above + below)


def _concordance(counts: Array) -> Array:
    """Return concordant minus discordant pairs of answers; counts (groups, levels, ...)."""
    # Answers in lower groups, at lower and at higher levels.
    lower = np.cumsum(counts, axis=0) - counts
    left = np.cumsum(lower, axis=1) - lower
    right = lower.sum(axis=1, keepdims=True) - lower - left
    pairs: Array = (counts * (left - right)).sum(axis=(0, 1))
    return pairs
