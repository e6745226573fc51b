"""How much a share or mean of strata would vary over other clusters, such as prompts, persons or scenarios.

The answers of one face, template or descriptor are more alike than those of two. The variance of a share is that of the
totals of its clusters (linearised; Cameron and Miller 2015). Of several ways that cross it is the sum over the ways
less that of their intersections (Cameron, Gelbach and Miller 2011), and never less than that of any one way. Clusters
enter by the number of answers of each stratum in them, so that what the answers are can become known later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


class Way(msgspec.Struct, frozen=True):
    """Clusters by one column, or by several that are crossed."""

    names: tuple[str, ...]
    clusters: int
    products: tuple[tuple[int, ...], ...]
    """Shape (strata, strata): over clusters, the sum of the products of the counts of two strata."""

    @property
    def alone(self) -> bool:
        """Return whether it is one column."""
        return len(self.names) == 1


def ways_of(codes: Mapping[str, Codes], strata: Codes) -> tuple[Way, ...]:
    """Return the clusters of each of these columns, and those of their intersections.

    Args:
        codes: Shape (answers,) each, the cluster of every answer, by column.
        strata: Shape (answers,), the stratum of each.
    """
    found = []
    for size in range(1, len(codes) + 1):
        for some in combinations(codes, size):
            _, own = np.unique(np.stack([codes[name] for name in some]), axis=1, return_inverse=True)
            own = own.ravel()
            counts = sparse.csr_array((np.ones(len(strata), dtype=np.int64), (own, strata)))
            products = (counts.T @ counts).toarray()
            found.append(Way(some, int(own.max()) + 1, tuple(tuple(map(int, row)) for row in products)))
    return tuple(found)


def spread(ways: Sequence[Way], sizes: Array, weights: Array, own: float, level: float) -> float | None:
    """Return the variance of a sum over answers, over draws of as many clusters; None if a way has only one cluster.

    Strata say less of an answer than there is, and show less of how clusters differ: where errors of the verdict have
    no clusters of their own, the square of the share of the variance that strata explain. This is divided out; the
    variance is at most that of answers which are all alike in a cluster.
    Few clusters are told by Student's t: the variance is that which gives its interval by the normal distribution.

    Args:
        ways: Clusters.
        sizes: Shape (strata,), answers.
        weights: Shape (strata,), what an answer of each stratum is expected to add.
        own: Variance that answers of one stratum have besides.
        level: Of the interval.
    """
    singles = [way for way in ways if way.alone]
    least = min((way.clusters for way in singles), default=0)
    if least < 2:
        return None
    shown = float(sizes @ weights**2)
    single = shown + own
    parts = [(-1) ** (len(way.names) + 1) * _variance(way, weights) for way in ways]
    excess = max(sum(parts), *(_variance(way, weights) for way in singles)) - shown
    inside = (weights != 0).astype(np.float64)
    alike = sum(_variance(way, inside) for way in singles) / max(float(sizes @ inside), 1.0)
    variance = single
    if excess > 0 and shown > 0:
        variance = min(single + excess * (single / shown) ** 2, single * max(alike, 1.0))
    tail = (1 + level) / 2
    return variance * float(stats.t.ppf(tail, least - 1) / stats.norm.ppf(tail)) ** 2


def _variance(way: Way, weights: Array) -> float:
    if way.clusters < 2:
        return 0.0
    found = float(weights @ np.array(way.products, dtype=np.float64) @ weights)
    return max(found, 0.0) * way.clusters / (way.clusters - 1)


def widened(low: float, value: float, high: float, variance: float, level: float) -> tuple[float, float]:
    """Return the ends of an interval that carries a further, independent variance."""
    further = variance * float(stats.norm.ppf((1 + level) / 2)) ** 2
    return value - math.sqrt((value - low) ** 2 + further), value + math.sqrt((high - value) ** 2 + further)
