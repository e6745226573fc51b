"""Do several groups have one value? A test from the joint covariance of their estimates over all facets.

Groups share words and templates, so their estimates are correlated: what is left out of one is left out of all. The
covariance is that of `multiway`, by each facet, less each pair, and so on. The test is the ANOVA-type statistic
(Brunner, Dette and Munk 1997), which needs no inverse: with few levels the covariance of many groups has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from .intervals import LEAST_P, Array, Codes
from .multiway import Cells, shared_levels, shares_lost, summed
from .resampling import Statistics, jackknife, strata


class JointCovariance(NamedTuple):
    """The covariance (groups, groups) of the estimates of groups over all facets, and by each facet alone."""

    total: Array
    by_facet: tuple[Array, ...]
    freedom: tuple[float, ...]
    """Degrees of freedom by facet, of the group that has the fewest; infinite where nothing varies."""


class EqualGroups(NamedTuple):
    """A test that all groups have one value."""

    statistic: float
    freedom: tuple[float, float]
    p: float


def joint_covariance(cells: Cells, statistics: Statistics) -> JointCovariance | None:
    """Return the jackknife's joint covariance of groups; None where the groups do not all vary over the same facets.

    Args:
        cells: sums by the levels of every facet; each unit is a group.
        statistics: from totals to one statistic per unit, (..., units, 1).
    """
    usable = cells.levels[0] > 1
    facets = np.flatnonzero(usable.all(axis=0))
    if not len(facets) or len(facets) < usable.any(axis=0).sum():
        return None
    sums = [cells.by_facet[facet] for facet in facets]
    by_facet = [_products(_left_out(table, statistics) * _weights(table)) for table in sums]
    freedom = [float(np.fmin.reduce(jackknife(table, statistics)[1], axis=None, initial=np.inf)) for table in sums]
    total = np.sum(by_facet, axis=0)
    for sign, labels, _ in shared_levels(cells.codes[:, facets]) if len(facets) > 1 else ():
        total = total + sign * _products(_left_out(summed(cells.sums, labels), statistics))
    lost = np.sqrt(shares_lost(cells.codes[:, facets], cells.sums[..., 0] > 0))
    total = total + sum(np.outer(roots, roots) * products for roots, products in zip(lost, by_facet, strict=True))
    if not np.isfinite(total).all():
        return None
    return JointCovariance(total, tuple(by_facet), tuple(freedom))


def equal_groups(values: Array, covariance: JointCovariance) -> EqualGroups | None:
    """Return the test that groups with these values (groups,) have one; None where nothing varies.

    As for one estimate, the variance is not below that by any facet alone.
    """
    groups = len(values)
    centre = np.eye(groups) - 1 / groups
    traces = [float(np.trace(centre @ facet)) for facet in covariance.by_facet]
    matrix, trace = covariance.total, float(np.trace(centre @ covariance.total))
    if trace < max(traces):
        trace, matrix = max(traces), covariance.by_facet[int(np.argmax(traces))]
    if groups < 2 or trace <= 0:
        return None
    among = centre @ matrix @ centre
    above = float(np.clip(trace**2 / (among**2).sum(), 1, groups - 1))
    below = trace**2 / sum(part**2 / freedom for part, freedom in zip(traces, covariance.freedom, strict=True))
    statistic = float(values @ centre @ values) / trace
    p = float(np.clip(special.fdtrc(above, below, statistic), LEAST_P, 1.0))
    return EqualGroups(statistic, (above, below), p)


def difference_of_sides(totals: Array) -> Array:
    """Return the mean of the first side less that of the second, if there is one; columns are count and sum."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[..., 1] / totals[..., 0]
    difference: Array = means[..., :1] if totals.shape[-2] == 1 else means[..., :1] - means[..., 1:]
    return difference


def _left_out(sums: Array, statistics: Statistics) -> Array:
    """Return how far each level left out moves each group, (levels, groups); 0 where a group does not have it."""
    total = sums.sum(axis=0)
    moved = (statistics(total - sums) - statistics(total))[..., 0]
    present = sums[..., 0].any(axis=2)
    return np.where(present, moved, 0.0)


def _weights(sums: Array) -> Array:
    """Return the roots of (n - 1) / n by level and group, n counting the levels of the same sides in the group."""
    sides: Codes = ((sums[..., 0] > 0) * (1 << np.arange(sums.shape[2]))).sum(axis=2)
    weights = np.zeros(sides.shape)
    for group, pattern in enumerate(sides.T):
        present = np.flatnonzero(pattern)
        for members in strata(pattern[present]):
            weights[present[members], group] = np.sqrt((len(members) - 1) / len(members))
    return weights


def _products(moved: Array) -> Array:
    products: Array = moved.T @ moved
    return products


def codes_of(columns: Sequence[Sequence[object]]) -> Codes:
    """Return columns of names as codes, shape (rows, columns)."""
    return np.stack([np.unique(np.asarray(column, dtype=str), return_inverse=True)[1] for column in columns], axis=-1)
