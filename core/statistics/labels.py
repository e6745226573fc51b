"""Permutation of labels between k groups, whole clusters at a time.

Sums have the shape (clusters, groups, columns), and column 0 counts the answers. Clusters that belong to one group
exchange their labels, so that every group keeps its count of clusters; a cluster that has answers in several groups
(a scenario asked about each of them) permutes its answers among these groups, as one block per group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from .arrays import Array, Codes, Flags
from .cluster import Resampling, blocks
from .permutation import p_values

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
    found = []
    for label in np.flatnonzero(counts):
        rest = tuple(count - (number == label) for number, count in enumerate(counts))
        tails = _arrangements(rest)
        found.append(np.hstack([np.full((len(tails), 1), label), tails]))
    return np.vstack(found)
