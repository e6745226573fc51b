"""Resample and permute whole clusters: bootstrap intervals and permutation tests of many statistics at once.

Answers to one template resemble each other, so the cluster is what is drawn, flipped or relabelled, never the answer.
All statistics that rest on the same clusters share one matrix of weights or signs, and one matrix product with the
clusters' sums gives every replicate of every statistic. `scipy.stats.bootstrap` and `permutation_test` compute the
same, one statistic at a time (the tests compare them); at 300 statistics and 9,999 resamples they are too slow.

Sums have the shape (clusters, units, sides, columns), and column 0 counts the answers. A unit is one cell with one
side, or a contrast with two. A cluster belongs to a side where its count is above 0. Where labels of k groups are
permuted, sums have the shape (clusters, groups, columns). Clusters that belong to one group exchange their labels, so
that every group keeps its count of clusters; a cluster that has answers in several groups (a scenario asked about each
of them) permutes its answers among these groups, as one block per group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from .intervals import (
    FEWEST,
    Array,
    Codes,
    Flags,
    Ranges,
    acceleration,
    bca,
    jackknife_variance,
    normal_sf,
    percentiles,
    ratio,
    reach_of,
    reach_of_clusters,
    stretched,
    t_ends,
    within,
)

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


def jackknife(sums: Array, statistics: Statistics) -> tuple[Array, Array]:
    """Return the variances from leaving out each cluster in turn, and their degrees of freedom, (units, statistics).

    NaN where `bootstrap` has no interval: a side with fewer than two clusters, or an undefined statistic.
    """
    observed = statistics(sums.sum(axis=0))
    variance, freedom = np.full((2, *observed.shape), np.nan)
    for units, pattern in alike(sums):
        if fewest(pattern, sums.shape[2]) < 2:
            continue
        left_out = _left_out(sums[pattern > 0][:, units], statistics)
        found = jackknife_variance(left_out, observed[units], strata(pattern[pattern > 0]))
        variance[units], freedom[units] = found
    return variance, freedom


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
    return alike_columns(((sums[..., 0] > 0) * (1 << np.arange(sums.shape[2]))).sum(axis=2))


def alike_columns(table: npt.NDArray[Any]) -> Iterator[tuple[Codes, npt.NDArray[Any]]]:
    """Yield the places of equal columns, with the column, in the order of their values."""
    if table.shape[1] == 1:
        yield np.zeros(1, np.int64), table[:, 0]
        return
    columns, group = np.unique(table, axis=1, return_inverse=True)
    for number in range(columns.shape[1]):
        yield np.flatnonzero(group.ravel() == number), columns[:, number]


def fewest(pattern: Codes, sides: int) -> int:
    """Return the clusters of the side that has the fewest."""
    return min(int(((pattern >> side) & 1).sum()) for side in range(sides))


def strata(pattern: Codes) -> list[Codes]:
    """Return the members of each kind of cluster; all together where a kind has a single member.

    A stratum of one would always be drawn once: its spread would be lost.
    """
    counts = np.bincount(pattern)
    if counts[counts > 0].min() < 2:
        return [np.arange(len(pattern))]
    return [np.flatnonzero(pattern == kind) for kind in np.flatnonzero(counts)]


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


SLACK = 1e-12
"""Differences below this (a share, or nats) are rounding."""
BOTH = 3
"""Pattern of a cluster that has answers on both sides: 1 (first side) + 2 (second side)."""
BALANCE = 0.95
"""Least share of its variance that a difference keeps under exchange: at most 5.6 % false findings in place of 5."""


def flip_test(sums: Array, plan: Resampling) -> Array:
    """Return two-sided p-values (units, columns - 1) of the sums in columns 1 and on, each symmetric about 0.

    Under the hypothesis a cluster's sum is as likely with the other sign. All sign patterns are tried where there are
    few enough, else `resamples` of them with p = (1 + b) / (1 + R). NaN for fewer than two clusters.
    """
    p = np.full((sums.shape[1], sums.shape[3] - 1), np.nan)
    for number, (units, pattern) in enumerate(alike(sums)):
        if (pattern > 0).sum() < 2:
            continue
        part = sums[pattern > 0][:, units, 0, 1:] / sums[:, units, 0, :1].sum(axis=0)
        keeps = _assignments(np.full(len(part), BOTH), plan, number)
        replicates = (np.abs(product(2 * keep.astype(np.float64) - 1, part)) for keep in keeps)
        p[units] = p_values(np.abs(part.sum(axis=0)), replicates, plan)
    return p


def swap_test(sums: Array, statistics: Statistics, plan: Resampling) -> Array:
    """Return two-sided p-values (units, statistics) of contrasts between the two sides.

    The sides of a cluster that has both are swapped at random; clusters with one side exchange their labels, so that
    the count of clusters per side stays. Exact and Monte Carlo as in `flip_test`. NaN where swapping would move many
    answers to the smaller side: a difference of two sides of equal size varies less than the one observed.
    """
    observed = np.abs(statistics(sums.sum(axis=0)))
    observed = np.where(_balanced(sums[..., 0])[:, None], observed, np.nan)
    p = np.full(observed.shape, np.nan)
    for number, (units, pattern) in enumerate(alike(sums)):
        if _free(pattern) < 2:
            continue
        part = sums[pattern > 0][:, units]
        keeps = _assignments(pattern[pattern > 0], plan, number)
        replicates = (np.abs(statistics(_swapped(keep, part))) for keep in keeps)
        p[units] = p_values(observed[units], replicates, plan)
    return p


def _balanced(counts: Array) -> Flags:
    """Return for which units of counts (clusters, units, sides) an exchange about keeps the variance 1 / n + 1 / m."""
    present = counts > 0
    loose = present & ~present.all(axis=2, keepdims=True)
    totals, alone, numbers = counts.sum(axis=0), (counts * loose).sum(axis=0), loose.sum(axis=0).astype(np.float64)
    share = np.nan_to_num(ratio(numbers, numbers.sum(axis=-1, keepdims=True)))
    expected = (totals - alone).mean(axis=-1, keepdims=True) + share * alone.sum(axis=-1, keepdims=True)
    kept, variance = (ratio(np.ones_like(n), n).sum(axis=-1) for n in (expected, totals))
    balanced: Flags = kept >= BALANCE * variance
    return balanced


def smallest_p(clusters: int, resamples: int) -> float:
    """Return the least two-sided p the sign-flip test can give with so many clusters."""
    return max(2.0 ** (1 - clusters), 1 / (1 + resamples)) if clusters < 1000 else 1 / (1 + resamples)


def _swapped(keep: Flags, sums: Array) -> Array:
    first, second = sums[:, :, 0], sums[:, :, 1]
    ours = product(keep.astype(np.float64), first - second) + second.sum(axis=0)
    # Counts and sums are exact or nearly so; what one side does not get, the other does.
    return np.stack([ours, sums.sum(axis=(0, 2)) - ours], axis=2)


def p_values(observed: Array, replicates: Iterator[Array], plan: Resampling) -> Array:
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
    for rows in blocks(plan.resamples, len(pattern)):
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


Statistic = Callable[[Array], Array]
"""From totals (..., groups, columns) to statistics (..., statistics); large means far from the hypothesis."""


def label_test(sums: Array, statistic: Statistic, plan: Resampling) -> Array:
    """Return p-values of `statistic`: how often random labels bring it as far as observed (upper tail).

    Give the magnitude of a statistic with two sides. All arrangements are tried where clusters have one group each
    and there are fewer than `resamples`; else `resamples` random ones with p = (1 + b) / (1 + R). NaN where no
    arrangement differs from the observed one.
    """
    inside = sums[..., 0] > 0
    sums, inside = sums[inside.any(axis=1)], inside[inside.any(axis=1)]
    observed = statistic(sums.sum(axis=0))
    lone = inside.sum(axis=1) == 1
    labels = inside.argmax(axis=1)
    if lone.all() and len(np.unique(labels)) < 2 or not len(sums):
        return np.full(np.shape(observed), np.nan)
    if lone.all() and _ways(labels) < plan.resamples:
        totals = iter([_exchanged(_arrangements(tuple(np.bincount(labels).tolist())), sums)])
    else:
        totals = _random(sums, inside, plan)
    return p_values(observed, (statistic(block) for block in totals), plan)


def _random(sums: Array, inside: Flags, plan: Resampling) -> Iterator[Array]:
    rng = np.random.default_rng([plan.seed, 3])
    lone = inside.sum(axis=1) == 1
    labels = inside[lone].argmax(axis=1)
    shared = [np.flatnonzero((inside == kind).all(axis=1)) for kind in np.unique(inside[~lone], axis=0)]
    for rows in blocks(plan.resamples, inside.size, sums[0].size):
        totals = _exchanged(rng.permuted(np.tile(labels, (rows, 1)), axis=1), sums[lone])
        for members in shared:
            groups = np.flatnonzero(inside[members[0]])
            totals[:, groups] += _within(rng, sums[members][:, groups], rows)
        yield totals


def _exchanged(labels: Codes, sums: Array) -> Array:
    """Return totals (arrangements, groups, columns) of one-group clusters under new labels."""
    whole = sums.sum(axis=1)
    totals = ((labels == group).astype(np.float64) @ whole for group in range(sums.shape[1]))
    return np.stack(list(totals), axis=1)


def _within(rng: np.random.Generator, sums: Array, rows: int) -> Array:
    """Return totals of clusters that have every group, each permuted within itself."""
    count = sums.shape[1]
    source = rng.random((rows, len(sums), count)).argsort(axis=2)
    totals = np.zeros((rows, *sums.shape[1:]))
    for target in range(count):
        for origin in range(count):
            totals[:, target] += (source[..., target] == origin).astype(np.float64) @ sums[:, origin]
    return totals


def _ways(labels: Codes) -> float:
    counts = np.bincount(labels)
    ways = math.lgamma(len(labels) + 1) - sum(math.lgamma(n + 1) for n in counts)
    # Beyond this a float overflows; it is far more than anybody tries.
    return math.exp(min(ways, 700.0))


@lru_cache(128)
def _arrangements(counts: tuple[int, ...]) -> Codes:
    """Return every distinct order of the labels, of which there are so many each."""
    if not any(counts):
        return np.zeros((1, 0), np.int64)
    orders = []
    for label in np.flatnonzero(counts):
        tails = _arrangements(tuple(count - (number == label) for number, count in enumerate(counts)))
        orders.append(np.hstack([np.full((len(tails), 1), label), tails]))
    return np.vstack(orders)
