"""Resample whole clusters: bootstrap intervals of many statistics at once.

Answers to one template resemble each other, so the cluster is what is drawn, never the answer. All statistics that
rest on the same clusters share one matrix of weights, and one matrix product with the clusters' sums gives every
replicate of every statistic. `scipy.stats.bootstrap` says the same, one statistic at a time (the tests compare them);
at 300 statistics and 9,999 resamples it is too slow.

Sums have the shape (clusters, units, sides, columns), and column 0 counts the answers. A unit is one cell with one
side, or a contrast with two. A cluster belongs to a side where its count is above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np

from .arrays import Array, Codes
from .intervals import (
    FEWEST,
    Ranges,
    acceleration,
    bca,
    jackknife_variance,
    percentiles,
    reach_of,
    reach_of_clusters,
    stretched,
    t_ends,
    within,
)
from .quantiles import normal_sf

Method = Literal["percentile", "bca", "jackknife"]
METHODS: dict[Method, str] = {
    "percentile": "cluster bootstrap",
    "bca": "cluster bootstrap, BCa",
    "jackknife": "cluster jackknife",
}
Statistics = Callable[[Array], Array]
"""From totals (..., units, sides, columns) to statistics (..., units, statistics); undefined is NaN."""

BLOCK = 1 << 19
"""Numbers drawn at a time: bounds the memory whatever the count of clusters."""
WIDE = 1 << 23
"""Sums made at a time: bounds the memory whatever the count of columns."""


class Resampling(msgspec.Struct, frozen=True):
    """How to resample."""

    resamples: int = 9999
    seed: int = 0
    level: float = 0.95
    method: Method = "percentile"
    """How an interval is made: from bootstrap replicates, or by the jackknife with t (best for few clusters)."""


def bootstrap(sums: Array, statistics: Statistics, plan: Resampling, ranges: Ranges = ()) -> tuple[Array, Array]:
    """Return the ends of the cluster intervals, two arrays (units, statistics).

    NaN where there is no interval: a side with fewer than two clusters, no variation between replicates, or a
    statistic that is undefined in most of them. Clusters with answers on one side only are drawn within that side.
    `ranges` say what each statistic can be at all, as for `stretched`.
    """
    observed = statistics(sums.sum(axis=0))
    low, high = np.full((2, *observed.shape), np.nan)
    for number, (units, pattern) in enumerate(alike(sums)):
        few = fewest(pattern, sums.shape[2])
        if few < 2:
            continue
        part, own = sums[pattern > 0][:, units], pattern[pattern > 0]
        group = _Group(part, own, few, observed[units])
        low[units], high[units] = _interval(group, statistics, plan, number, ranges)
    return low, high


class _Group(msgspec.Struct, frozen=True):
    """Units that rest on the same clusters in the same way."""

    sums: Array
    pattern: Codes
    few: int
    """Clusters of the side that has the fewest."""
    observed: Array


def _interval(
    group: _Group, statistics: Statistics, plan: Resampling, number: int, ranges: Ranges
) -> tuple[Array, Array]:
    members, observed = strata(group.pattern), group.observed
    if plan.method == "jackknife":
        variance, freedom = jackknife_variance(_left_out(group.sums, statistics), observed, members)
        return within(*t_ends(observed, variance, plan.level, freedom), ranges)
    reach = _reach(group, statistics, plan.level)
    drawn = _weights(plan, number, group.pattern, group.sums[0].size)
    replicates = np.concatenate([statistics(product(weights, group.sums)) for weights in drawn])
    if plan.method == "bca":
        bend = acceleration(_left_out(group.sums, statistics), members)
        return bca(replicates, observed, bend, normal_sf(reach))
    if group.few < FEWEST:
        return stretched(replicates, observed, reach, plan.level, ranges)
    return percentiles(replicates, normal_sf(reach))


def _reach(group: _Group, statistics: Statistics, level: float) -> Array:
    alone, members = reach_of_clusters(level, group.few), strata(group.pattern)
    if len(members) < 2:
        return np.full(group.observed.shape, alone)
    found = reach_of(_left_out(group.sums, statistics), members, level)
    return np.where(np.isfinite(found), found, alone)


def _left_out(sums: Array, statistics: Statistics) -> Array:
    """Return the statistics with each cluster left out, shape (clusters, units, statistics)."""
    return statistics(sums.sum(axis=0) - sums)


def alike(sums: Array) -> Iterator[tuple[Codes, Codes]]:
    """Yield the units that rest on the same clusters in the same way, with the pattern per cluster."""
    codes = ((sums[..., 0] > 0) * (1 << np.arange(sums.shape[2]))).sum(axis=2)
    patterns, group = np.unique(codes, axis=1, return_inverse=True)
    for number in range(patterns.shape[1]):
        yield np.flatnonzero(group.ravel() == number), patterns[:, number]


def fewest(pattern: Codes, sides: int) -> int:
    """Return the clusters of the side that has the fewest."""
    return min(int(((pattern >> side) & 1).sum()) for side in range(sides))


def strata(pattern: Codes) -> list[Codes]:
    """Return the members of each kind of cluster; all together where a kind has a single member.

    A stratum of one would always be drawn once: its spread would be lost.
    """
    kinds, counts = np.unique(pattern, return_counts=True)
    return [np.arange(len(pattern))] if counts.min() < 2 else [np.flatnonzero(pattern == kind) for kind in kinds]


def _weights(plan: Resampling, number: int, pattern: Codes, width: int) -> Iterator[Array]:
    """Yield blocks (replicates, clusters) of how often each cluster was drawn, each stratum drawn within itself."""
    sizes = tuple(blocks(plan.resamples, len(pattern), width))
    if plan.resamples * len(pattern) <= BLOCK:
        yield from _few_weights(plan.seed, number, pattern.astype(np.int64).tobytes(), sizes)
        return
    rng, members = np.random.default_rng([plan.seed, 1, number]), strata(pattern)
    for rows in sizes:
        yield draw(rng, members, rows)


@lru_cache(8)
def _few_weights(seed: int, number: int, pattern: bytes, sizes: tuple[int, ...]) -> list[Array]:
    """Keep what was drawn: hundreds of statistics of one study rest on the same clusters, one call each."""
    rng, members = np.random.default_rng([seed, 1, number]), strata(np.frombuffer(pattern, np.int64))
    return [draw(rng, members, rows) for rows in sizes]


def draw(rng: np.random.Generator, members: list[Codes], rows: int) -> Array:
    """Return (rows, clusters): how often each cluster is drawn, each stratum within itself."""
    weights = np.empty((rows, sum(map(len, members))))
    for own in members:
        picks = rng.integers(len(own), size=(rows, len(own))) + np.arange(rows)[:, None] * len(own)
        weights[:, own] = np.bincount(picks.ravel(), minlength=picks.size).reshape(picks.shape)
    return weights


def blocks(total: int, drawn: int, width: int = 1) -> Iterator[int]:
    """Yield how many replicates to make at a time, of `drawn` numbers and `width` sums each."""
    size = max(1, min(BLOCK // drawn, WIDE // width))
    for start in range(0, total, size):
        yield min(size, total - start)


def product(weights: Array, sums: Array) -> Array:
    """Return the totals (replicates, ...) of sums (clusters, ...) under weights (replicates, clusters)."""
    return (weights @ sums.reshape(len(sums), -1)).reshape(len(weights), *sums.shape[1:])
