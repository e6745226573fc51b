"""Power of a design, and the smallest effect that it can detect.

A test of a mean is a t test with C - 1 degrees of freedom for C clusters, and its power is that of the noncentral t
distribution; a test of k groups is an F test, and its power that of the noncentral F. `power_designs` has the designs.
A pilot says how the planned answers spread, and how much those of one cluster have in common.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from scipy import optimize

from ..contracts.errors import UsageError
from .intervals import Array, Codes, stats
from .multiway import joint
from .power_designs import CrossedDesign, Design, GroupsDesign, RankDesign


class Pilot(msgspec.Struct, frozen=True):
    """What a pilot says about the spread of answers. None where it cannot say."""

    spread: float | None
    icc: float | None
    n: int
    clusters: int


def pilot(values: Array, clusters: Codes) -> Pilot:
    """Estimate spread and intra-cluster correlation by one-way analysis of variance; NaN is left out.

    A correlation below 0 is taken as 0: answers of a cluster are then no more alike than others.
    Source: Donner and Koval (1980).
    """
    there = ~np.isnan(values)
    own = np.unique(clusters[there], return_inverse=True)[1]
    y, n, k = values[there], int(there.sum()), int(own.max(initial=-1)) + 1
    if n < 2:
        return Pilot(None, None, n, k)
    spread = float(np.std(y, ddof=1))
    if k < 2 or n == k or spread == 0:
        return Pilot(spread or None, None, n, k)
    sizes, sums = np.bincount(own), np.bincount(own, weights=y)
    means = sums / sizes
    between = (sizes * (means - y.mean()) ** 2).sum() / (k - 1)
    within = ((y - means[own]) ** 2).sum() / (n - k)
    size = (n - (sizes**2).sum() / n) / (k - 1)
    return Pilot(spread, float(np.clip((between - within) / (between + (size - 1) * within), 0, 1)), n, k)


class CrossedPilot(msgspec.Struct, frozen=True):
    """What a pilot says about the spread of crossed answers. None where it cannot say."""

    spread: float | None
    shares: tuple[float, ...] | None
    """Of the variance, by facet."""


def crossed_pilot(values: Array, facets: Sequence[Codes], sides: Codes) -> CrossedPilot:
    """Estimate the spread and what each facet adds to it; NaN is left out, and no level needs every other.

    Answers to one combination of levels count as their mean. Each of two `sides` has its own mean, and what a level
    adds to both is left out: it cancels in their difference. Shares below 0 are taken as 0.
    """
    known = ~np.isnan(values)
    y, side = values[known], np.unique(sides[known], return_inverse=True)[1]
    parts = [cell_means(y[side == s], [levels[known][side == s] for levels in facets]) for s in np.unique(side)]
    components = [variance_components(*part) for part in parts]
    if not components or any(part is None for part in components):
        spread = float(np.sqrt(np.mean([np.var(part[0], ddof=1) for part in parts]))) if _repeated(parts) else 0.0
        return CrossedPilot(spread or None, None)
    *by_facet, single = np.average(np.array(components), axis=0, weights=[len(part[0]) for part in parts])
    cancel = [_shared(parts, facet) for facet in range(len(facets))]
    added = [max(float(facet - both), 0.0) for facet, both in zip(by_facet, cancel, strict=True)]
    total = sum(added) + max(float(single), 0.0)
    return CrossedPilot(math.sqrt(total), tuple(part / total for part in added)) if total else CrossedPilot(None, None)


Cells = tuple[Array, Sequence[Codes]]
"""One value per cell, and its level of each facet."""


def cell_means(values: Array, facets: Sequence[Codes]) -> Cells:
    """Return the mean of each combination of levels that has answers."""
    cells, place = np.unique(np.stack(facets), axis=1, return_inverse=True)
    place = place.ravel()
    return np.bincount(place, weights=values) / np.bincount(place), list(cells)


def variance_components(values: Array, facets: Sequence[Codes]) -> Array | None:
    """Return the variances between the levels of each facet and of the rest, one value a cell; None if undetermined.

    Sums of squares within the levels of each facet and of all cells, set equal to what they are expected to be:
    unbiased whatever cells are missing, and the analysis of variance where none is. An estimate may be below 0.
    Source: Gao and Owen (2017), section 4, there of two facets.
    """
    n = len(values)
    levels = [np.unique(codes, return_inverse=True)[1].ravel() for codes in facets]
    sizes = [np.bincount(codes) for codes in levels]
    if n < 2 or min(map(len, sizes)) < 2:
        return None
    expected = np.zeros((len(facets) + 1, len(facets) + 1))
    for row, (codes, size) in enumerate(zip(levels, sizes, strict=True)):
        for column, other in enumerate(levels):
            pairs = joint(codes, other)
            first = np.unique(pairs, return_index=True)[1]
            expected[row, column] = n - float((np.bincount(pairs) ** 2 / size[codes[first]]).sum())
        expected[row, -1] = n - len(size)
    expected[-1] = [*(n - float((size**2).sum()) / n for size in sizes), n - 1]
    if np.linalg.matrix_rank(expected) < len(expected):
        return None
    means = [np.bincount(codes, weights=values) / size for codes, size in zip(levels, sizes, strict=True)]
    squares = [((values - mean[codes]) ** 2).sum() for codes, mean in zip(levels, means, strict=True)]
    components: Array = np.linalg.solve(expected, np.array([*squares, ((values - values.mean()) ** 2).sum()]))
    return components


def _shared(parts: list[Cells], facet: int) -> float:
    """Return the variance that levels add to both sides alike: the covariance of their means on either."""
    if len(parts) != 2:
        return 0.0
    means = [dict(zip(*_means_by(part, facet), strict=True)) for part in parts]
    both = sorted(means[0].keys() & means[1].keys())
    if len(both) < 2:
        return 0.0
    table = np.array([[mean[level] for level in both] for mean in means])
    return float(np.cov(table)[0, 1])


def _means_by(part: Cells, facet: int) -> tuple[list[int], list[float]]:
    names, codes = np.unique(part[1][facet], return_inverse=True)
    means = np.bincount(codes.ravel(), weights=part[0]) / np.bincount(codes.ravel())
    return names.tolist(), means.tolist()


def _repeated(parts: list[Cells]) -> bool:
    return bool(parts) and all(len(part[0]) > 1 for part in parts)


__all__ = [
    "AnyDesign",
    "CrossedDesign",
    "Design",
    "GroupsDesign",
    "RankDesign",
    "discordance_spread",
    "levels_needed",
    "minimum_detectable_effect",
    "power",
    "proportion_spread",
]

STRONGEST = 1 - 1e-9
"""Nearly the strongest effect of ranks there is."""
AnyDesign = Design | CrossedDesign | RankDesign | GroupsDesign


def proportion_spread(share: float) -> float:
    """Return the standard deviation of a yes-no answer."""
    return math.sqrt(share * (1 - share))


def discordance_spread(discordant: float) -> float:
    """Return the standard deviation of paired yes-no differences of mean 0, from the share of pairs that differ."""
    return math.sqrt(discordant)


def power(effect: float, design: AnyDesign, alpha: float = 0.05) -> float:
    """Return the chance that a test at `alpha`, two-sided where there are sides, finds a true `effect`.

    The effect is in the units of the spread; of a `RankDesign` it is a rank-biserial correlation or Cliff's delta, of
    a `GroupsDesign` Cohen's f.
    """
    if isinstance(design, GroupsDesign):
        return _power_of_f(design.freedom, design.noncentrality(effect), alpha)
    if isinstance(design, RankDesign):
        return _power_of_ranks(design, min(abs(effect), 1.0), alpha)
    return _power_of_t(design.freedom, abs(effect) / design.standard_error, alpha)


def minimum_detectable_effect(design: AnyDesign, alpha: float = 0.05, wanted: float = 0.8) -> float:
    """Return the least true effect that a test at `alpha` finds with probability `wanted`.

    Infinite where ranks of so few answers find no effect, however large.

    Raises:
        UsageError: the power wanted is none, or below alpha.
    """
    if not alpha < wanted < 1:
        raise UsageError(f"power is {wanted}. Give a number between alpha ({alpha}) and 1.", code="options.value")
    if isinstance(design, GroupsDesign):
        return math.sqrt(_least_noncentrality(design.freedom, alpha, wanted) / design.noncentrality(1.0))
    if isinstance(design, RankDesign):
        return _least_of_ranks(design, alpha, wanted)
    return _least_shift(design.freedom, alpha, wanted) * design.standard_error


FURTHEST = 1e6
"""Standard errors beyond which no effect is sought."""
MOST_LEVELS = 10**6
"""More levels of a facet than anybody would write."""


def levels_needed(
    design: CrossedDesign | Design, facet: int, effect: float, alpha: float = 0.05, wanted: float = 0.8
) -> int | None:
    """Return how many levels of a facet find a true `effect` with probability `wanted`; of a `Design` its clusters.

    The other facets stay as they are; None where even `MOST_LEVELS` are too few, as these add too much variance.
    """

    def found(levels: int) -> bool:
        if isinstance(design, CrossedDesign):
            return power(effect, design.with_levels(facet, levels), alpha) >= wanted
        return power(effect, msgspec.structs.replace(design, clusters=levels), alpha) >= wanted

    high = 2
    while not found(high):
        if high >= MOST_LEVELS:
            return None
        high *= 2
    return bisect.bisect_left(range(high + 1), True, lo=max(high // 2, 2), key=found)


def _power_of_t(freedom: float, shift: float, alpha: float) -> float:
    critical = stats.t.isf(alpha / 2, freedom)
    # The far tail underflows to NaN in scipy where it is nothing.
    far = stats.nct.cdf(-critical, freedom, shift) if shift < 5 else 0.0
    return float(stats.nct.sf(critical, freedom, shift) + far)


def _power_of_ranks(design: RankDesign, effect: float, alpha: float) -> float:
    needed = stats.t.isf(alpha / 2, design.freedom) * design.standard_error
    found, error = design.found_at(effect), design.standard_error_at(effect)
    if error == 0:
        return float(found > needed)
    return float(stats.norm.sf((needed - found) / error) + stats.norm.sf((needed + found) / error))


def _power_of_f(freedom: tuple[int, int], noncentrality: float, alpha: float) -> float:
    critical = stats.f.isf(alpha, *freedom)
    return float(stats.ncf.sf(critical, *freedom, noncentrality)) if noncentrality else alpha


@lru_cache(maxsize=4096)
def _least_shift(freedom: float, alpha: float, wanted: float) -> float:
    """Return the least effect in standard errors; many measures of a study have the same freedom.

    Two facets of few levels can have less than one degree of freedom. It is infinite where `FURTHEST` is not found.
    """
    top = stats.t.isf(alpha / 2, freedom) + 2 * stats.t.isf((1 - wanted) / 2, freedom)
    while not _power_of_t(freedom, top, alpha) >= wanted:
        if top >= FURTHEST:
            return math.inf
        top *= 2
    return float(optimize.brentq(lambda shift: _power_of_t(freedom, shift, alpha) - wanted, 0, top))


@lru_cache(maxsize=4096)
def _least_of_ranks(design: RankDesign, alpha: float, wanted: float) -> float:
    if _power_of_ranks(design, STRONGEST, alpha) < wanted:
        return math.inf
    return float(optimize.brentq(lambda effect: _power_of_ranks(design, effect, alpha) - wanted, 0, STRONGEST))


@lru_cache(maxsize=4096)
def _least_noncentrality(freedom: tuple[int, int], alpha: float, wanted: float) -> float:
    top = 1.0
    while _power_of_f(freedom, top, alpha) < wanted:
        top *= 2
    return float(optimize.brentq(lambda shift: _power_of_f(freedom, shift, alpha) - wanted, 0, top))
