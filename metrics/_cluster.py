"""Resample whole clusters: bootstrap intervals and permutation p-values of many statistics at once.

Answers to one template resemble each other, so the cluster is what is drawn, never the answer. All statistics that
rest on the same clusters share one matrix of weights (or of signs), and one matrix product with the clusters' sums
gives every replicate of every statistic. `scipy.stats.bootstrap` and `permutation_test` say the same, one statistic
at a time (the tests compare them); at 300 statistics and 9,999 resamples they are too slow.

Sums have the shape (clusters, units, sides, columns), and column 0 counts the answers. A unit is one cell with one
side, or a contrast with two. A cluster belongs to a side where its count is above 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
Statistics = Callable[[Array], Array]
"""From totals (..., units, sides, columns) to statistics (..., units, statistics); undefined is NaN."""

BLOCK = 1 << 19
"""Numbers drawn at a time: bounds the memory whatever the count of clusters."""
SLACK = 1e-12
"""Differences below this (a share, or nats) are rounding."""
BOTH = 3
"""Pattern of a cluster that has answers on both sides: 1 (first side) + 2 (second side)."""


class Resampling(msgspec.Struct, frozen=True):
    """How to resample."""

    resamples: int = 9999
    seed: int = 0
    level: float = 0.95


def ratio(above: Array, below: Array) -> Array:
    """Divide; NaN where the divisor is not above 0."""
    empty = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    quotient: Array = np.divide(above, below, out=empty, where=below > 0)
    return quotient


def expanded_tail(level: float, clusters: int) -> float:
    """Return the tail to cut so that a percentile interval of few clusters is as wide as a t interval.

    Source: Hesterberg (2015), What teachers should know about the bootstrap, section 3.3.1 (expanded percentile).
    """
    stretch = math.sqrt(clusters / (clusters - 1)) * stats.t.isf((1 - level) / 2, clusters - 1)
    return float(stats.norm.sf(stretch))


def bootstrap(sums: Array, statistics: Statistics, plan: Resampling) -> tuple[Array, Array]:
    """Return the ends of the cluster bootstrap intervals, two arrays (units, statistics).

    NaN where there is no interval: a side with fewer than two clusters, no variation between replicates, or a
    statistic that is undefined in most of them. Clusters with answers on one side only are drawn within that side.
    """
    low, high = np.full((2, *statistics(sums.sum(axis=0)).shape), np.nan)
    for number, (units, pattern) in enumerate(_alike(sums)):
        fewest = _fewest(pattern, sums.shape[2])
        if fewest < 2:
            continue
        rng = np.random.default_rng([plan.seed, 1, number])
        part = sums[pattern > 0][:, units]
        blocks = _weights(rng, pattern[pattern > 0], plan.resamples)
        replicates = np.concatenate([statistics(_product(block, part)) for block in blocks])
        low[units], high[units] = _percentiles(replicates, expanded_tail(plan.level, fewest))
    return low, high


def flip_test(sums: Array, plan: Resampling) -> Array:
    """Return two-sided p-values (units, columns - 1) of the sums in columns 1 and on, each symmetric about 0.

    Under the hypothesis a cluster's sum is as likely with the other sign. All sign patterns are tried where there are
    few enough, else `resamples` of them with p = (1 + b) / (1 + R). NaN for fewer than two clusters.
    """
    p = np.full((sums.shape[1], sums.shape[3] - 1), np.nan)
    for number, (units, pattern) in enumerate(_alike(sums)):
        if (pattern > 0).sum() < 2:
            continue
        part = sums[pattern > 0][:, units, 0, 1:] / sums[:, units, 0, :1].sum(axis=0)
        keeps = _assignments(np.full(len(part), BOTH), plan, number)
        replicates = (np.abs(_product(2 * keep.astype(np.float64) - 1, part)) for keep in keeps)
        p[units] = _p_values(np.abs(part.sum(axis=0)), replicates, plan)
    return p


def swap_test(sums: Array, statistics: Statistics, plan: Resampling) -> Array:
    """Return two-sided p-values (units, statistics) of contrasts between the two sides.

    The sides of a cluster that has both are swapped at random; clusters with one side exchange their labels, so that
    the count of clusters per side stays. Exact and Monte Carlo as in `flip_test`.
    """
    observed = np.abs(statistics(sums.sum(axis=0)))
    p = np.full(observed.shape, np.nan)
    for number, (units, pattern) in enumerate(_alike(sums)):
        if _free(pattern) < 2:
            continue
        part = sums[pattern > 0][:, units]
        keeps = _assignments(pattern[pattern > 0], plan, number)
        replicates = (np.abs(statistics(_swapped(keep, part))) for keep in keeps)
        p[units] = _p_values(observed[units], replicates, plan)
    return p


def smallest_p(clusters: int, resamples: int) -> float:
    """Return the least two-sided p the sign-flip test can give with so many clusters."""
    return max(2.0 ** (1 - clusters), 1 / (1 + resamples)) if clusters < 1000 else 1 / (1 + resamples)


def _alike(sums: Array) -> Iterator[tuple[Codes, Codes]]:
    """Yield the units that rest on the same clusters in the same way, with the pattern per cluster."""
    codes = ((sums[..., 0] > 0) * (1 << np.arange(sums.shape[2]))).sum(axis=2)
    patterns, group = np.unique(codes, axis=1, return_inverse=True)
    for number in range(patterns.shape[1]):
        yield np.flatnonzero(group.ravel() == number), patterns[:, number]


def _fewest(pattern: Codes, sides: int) -> int:
    return min(int(((pattern >> side) & 1).sum()) for side in range(sides))


def _weights(rng: np.random.Generator, pattern: Codes, resamples: int) -> Iterator[Array]:
    """Yield blocks (replicates, clusters) of how often each cluster was drawn, each stratum drawn within itself."""
    strata, counts = np.unique(pattern, return_counts=True)
    # A stratum of one would always be drawn once: its spread would be lost, so all are drawn together instead.
    members = [np.arange(len(pattern))] if counts.min() < 2 else [np.flatnonzero(pattern == s) for s in strata]
    for rows in _blocks(resamples, len(pattern)):
        weights = np.empty((rows, len(pattern)))
        for own in members:
            picks = rng.integers(len(own), size=(rows, len(own))) + np.arange(rows)[:, None] * len(own)
            weights[:, own] = np.bincount(picks.ravel(), minlength=picks.size).reshape(picks.shape)
        yield weights


def _blocks(total: int, width: int) -> Iterator[int]:
    size = max(1, BLOCK // width)
    for start in range(0, total, size):
        yield min(size, total - start)


def _product(weights: Array, sums: Array) -> Array:
    return (weights @ sums.reshape(len(sums), -1)).reshape(len(weights), *sums.shape[1:])


def _swapped(keep: Flags, sums: Array) -> Array:
    first, second = sums[:, :, 0], sums[:, :, 1]
    ours = _product(keep.astype(np.float64), first - second) + second.sum(axis=0)
    # Counts and sums are exact or nearly so; what one side does not get, the other does.
    return np.stack([ours, sums.sum(axis=(0, 2)) - ours], axis=2)


def _percentiles(replicates: Array, tail: float) -> tuple[Array, Array]:
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
    for where in map(tuple, np.argwhere(np.isnan(replicates).any(axis=0))):
        defined = replicates[(slice(None), *where)]
        defined = defined[~np.isnan(defined)]
        if 2 * len(defined) > len(replicates):
            low[where], high[where] = np.quantile(defined, [tail, 1 - tail])
    flat = ~(low < high)
    low[flat] = high[flat] = np.nan
    return low, high


def _p_values(observed: Array, replicates: Iterator[Array], plan: Resampling) -> Array:
    """Count the replicates at least as far from 0; a hair of slack keeps exact ties ties after rounding."""
    beyond, total = np.zeros(observed.shape), 0
    for block in replicates:
        beyond += (block >= observed * (1 - 1e-9) - SLACK).sum(axis=0)
        total += len(block)
    p = (1 + beyond) / (1 + total) if total == plan.resamples else beyond / max(total, 1)
    return np.where(np.isnan(observed), np.nan, p)


def _free(pattern: Codes) -> int:
    """Count the clusters whose exchange can change anything; below 2, every arrangement mirrors the observed one."""
    first, second, both = (int((pattern == code).sum()) for code in (1, 2, BOTH))
    return both + (first + second if first and second and (both or first + second > 2) else 0)


def _assignments(pattern: Codes, plan: Resampling, number: int) -> Iterator[Flags]:
    """Yield blocks (arrangements, clusters): True where a cluster keeps its sides."""
    loose = np.flatnonzero(pattern != BOTH)
    first = pattern[loose] == 1
    paired = len(pattern) - len(loose)
    ways = (math.comb(len(loose), int(first.sum())) << paired) if paired < 64 else math.inf
    if ways < plan.resamples:
        yield _every(pattern, loose, first)
        return
    rng = np.random.default_rng([plan.seed, 2, number])
    for rows in _blocks(plan.resamples, len(pattern)):
        keep = rng.integers(2, size=(rows, len(pattern)), dtype=np.int8).astype(np.bool_)
        keep[:, loose] = rng.permuted(np.tile(first, (rows, 1)), axis=1) == first
        yield keep


def _every(pattern: Codes, loose: Codes, first: Flags) -> Flags:
    paired = np.flatnonzero(pattern == BOTH)
    flips = (np.arange(1 << len(paired))[:, None] >> np.arange(len(paired))) & 1 == 1
    labels = np.array([np.isin(np.arange(len(loose)), c) for c in combinations(range(len(loose)), int(first.sum()))])
    keep = np.empty((len(labels), len(flips), len(pattern)), dtype=np.bool_)
    keep[:, :, paired] = flips[None]
    keep[:, :, loose] = (labels == first)[:, None]
    return keep.reshape(-1, len(pattern))
