"""Designs whose power is known in closed form: means, crossed means, rank tests, and k groups.

Answers in one cluster resemble each other; m answers in each of C clusters with intra-cluster correlation icc are
worth C m / (1 + (m - 1) icc) independent ones (Kish 1965). Every design has a standard error of its effect and degrees
of freedom, but for k groups, which have a noncentrality. Where several facets cross, an answer is the sum of what its
level of each facet (scenario, image, word) adds, and the rest. What each adds to the variance of a mean decides which
facet a larger study should have more levels of.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
from scipy import special

from ..contracts.errors import UsageError

RANK_EFFICIENCY = 3 / math.pi
"""Asymptotic relative efficiency of rank tests against t and F, answers being normal (Hodges and Lehmann 1956; for
Kruskal and Wallis's test Andrews 1954). For any other continuous distribution it is at least 0.864."""


class Clustered(msgspec.Struct, frozen=True, kw_only=True):
    """What designs with one kind of cluster have in common."""

    size: float = 1.0
    """Answers (or pairs) per cluster, on average."""
    icc: float = 0.0
    """Correlation of two answers of one cluster; of their ranks, where these are tested."""
    unevenness: float = 0.0
    """Standard deviation of the clusters' sizes over their mean."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if not self.size > 0:
            raise UsageError(f"size is {self.size}. Give a number above 0.", code="options.value")
        if not 0 <= self.icc <= 1:
            raise UsageError(f"icc is {self.icc}. Give a number from 0 to 1.", code="options.value")

    @property
    def design_effect(self) -> float:
        """Return by how much clustering multiplies the variance of the mean.

        Source: Kish (1965); for clusters of unequal size Eldridge, Ashby and Kerry (2006).
        """
        return max(1 + ((1 + self.unevenness**2) * self.size - 1) * self.icc, self.icc)


class Design(Clustered, frozen=True, kw_only=True):
    """A design to be tested against a neutral mean, or two groups of clusters against each other."""

    clusters: int
    """In each group, where there are two."""
    spread: float = 1.0
    """Standard deviation of one answer; of a pair's difference, where answers are paired."""
    groups: int = 1
    """1: a mean, or a mean of paired differences, against neutral. 2: the means of two groups of clusters."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        _ensure(self.clusters, self.groups, self.spread)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean, or of the difference of two means."""
        return self.spread * math.sqrt(self.groups * self.design_effect / (self.clusters * self.size))

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom: clusters less one per group."""
        return self.groups * (self.clusters - 1)


class RankDesign(Clustered, frozen=True, kw_only=True):
    """A design to be tested by ranks: Wilcoxon's signed ranks of one group, or Mann and Whitney's test of two.

    The effect needs no spread: the matched-pairs rank-biserial correlation, 2 P(D + D' > 0) - 1 of two differences, or
    Cliff's delta, P(X > Y) - P(X < Y). What a test must exceed is Noether's (1987), whatever the distribution; how much
    the effect found varies is Lehmann's (1975, sections 2.3 and 4.2), answers being normal. Ties leave a little less to
    find; zeros are no differences, and count in no `size`.
    """

    clusters: int
    """In each group, where there are two."""
    groups: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        _ensure(self.clusters, self.groups)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the effect where there is none."""
        n = self.clusters * self.size
        variance = (2 * n + 1) / (6 * n * (n + 1) if self.groups == 1 else 12 * n * n)
        return 2 * math.sqrt(self.design_effect * variance)

    def found_at(self, effect: float) -> float:
        """Return what a sample shows of an effect, on average: signed ranks also rank each difference with itself."""
        if self.groups == 2:
            return effect
        n = self.clusters * self.size
        return (2 * (2 * self._above(effect) - 1) + (n - 1) * effect) / (n + 1)

    def standard_error_at(self, effect: float) -> float:
        """Return the standard error of an effect between -1 and 1."""
        n, p = self.clusters * self.size, (1 + effect) / 2
        h = float(special.ndtri(p))
        # P(X > Y and X > Y'), or P(D + D' > 0 and D + D'' > 0): normal, with correlation one half (Owen 1956).
        both = p - 2 * float(special.owens_t(h, math.sqrt(1 / 3))) - p * p
        if self.groups == 2:
            variance = (p * (1 - p) + 2 * (n - 1) * both) / n**2
        else:
            above = self._above(effect)
            pairs = (n - 1) / 2 * (2 * (above - p) ** 2 + 3 * p * (1 - p)) + (n - 1) * (n - 2) * both
            variance = 4 * (above * (1 - above) + pairs) / (n * (n + 1) ** 2)
        return 2 * math.sqrt(self.design_effect * max(variance, 0.0))

    def _above(self, effect: float) -> float:
        """Return the chance that a single difference is above 0, differences being normal."""
        return float(special.ndtr(special.ndtri((1 + effect) / 2) / math.sqrt(2)))

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom: those of clusters, where these count; ranks of single answers have none."""
        return self.groups * (self.clusters - 1) if self.design_effect > 1 else math.inf


class GroupsDesign(Clustered, frozen=True, kw_only=True):
    """Groups of clusters to be tested for any difference of their means, or by ranks (Kruskal and Wallis).

    The effect is Cohen's f: the standard deviation of the groups' means, each weighted by its clusters, over that of
    answers within a group. By ranks it is that of normal answers, and counts `RANK_EFFICIENCY` of itself.
    """

    clusters: tuple[int, ...]
    """In each group."""
    ranks: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if len(self.clusters) < 2 or min(self.clusters) < 1 or self.freedom[1] < 1:
            raise UsageError(
                f"clusters are {list(self.clusters)}. Give two groups or more, and one cluster to spare.",
                code="options.value",
            )

    @property
    def freedom(self) -> tuple[int, int]:
        """Return the degrees of freedom: of groups, and of clusters within groups."""
        return len(self.clusters) - 1, sum(self.clusters) - len(self.clusters)

    def noncentrality(self, effect: float) -> float:
        """Return the noncentrality of F: f squared times what the answers are worth (Cohen 1988, chapter 8)."""
        worth = sum(self.clusters) * self.size / self.design_effect * (RANK_EFFICIENCY if self.ranks else 1)
        return effect**2 * worth


def _ensure(clusters: int, groups: int, spread: float = 1.0) -> None:
    if clusters < 2:
        raise UsageError(f"clusters is {clusters}. Give at least 2: one cluster shows no spread.", code="options.value")
    if not spread > 0:
        raise UsageError(f"spread is {spread}. Give a number above 0.", code="options.value")
    if groups not in (1, 2):
        raise UsageError(f"groups is {groups}. Give 1 or 2.", code="options.value")


class CrossedDesign(msgspec.Struct, frozen=True, kw_only=True):
    """Facets that cross, such as scenarios and images, tested against a neutral mean by the jackknife over all."""

    levels: tuple[int, ...]
    """Of each facet; of the last one in each group, where there are two."""
    shares: tuple[float, ...]
    """Share of the variance of one answer that answers of one level have in common, by facet; of one level and group,
    where there are two groups, beyond what the level adds to both."""
    spread: float = 1.0
    """Standard deviation of one answer."""
    fill: float = 1.0
    """Share of the combinations of levels that is asked."""
    groups: int = 1
    """1: a mean. 2: the means of two groups of levels of the last facet, each with the same levels of the others."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if len(self.levels) < 2 or min(self.levels) < 2:
            raise UsageError(
                f"levels is {list(self.levels)}. Give two facets or more, each with at least 2.", code="options.value"
            )
        if not self.spread > 0:
            raise UsageError(f"spread is {self.spread}. Give a number above 0.", code="options.value")
        if len(self.shares) != len(self.levels) or min(self.shares) < 0 or sum(self.shares) > 1 + 1e-9:
            raise UsageError(
                f"shares is {list(self.shares)}. Give one for each facet; they sum up to 1 at most.",
                code="options.value",
            )
        if not 0 < self.fill <= 1:
            raise UsageError(f"fill is {self.fill}. Give a share above 0, up to 1.", code="options.value")
        if self.groups not in (1, 2):
            raise UsageError(f"groups is {self.groups}. Give 1 or 2.", code="options.value")

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean: what the facets and single answers add to it."""
        total = sum(share / count for share, count in zip(self.shares, self.levels, strict=True)) + self._single
        return self.spread * math.sqrt(self.groups * total)

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom, after Satterthwaite (1946)."""
        by_facet = [share / count + self._single for share, count in zip(self.shares, self.levels, strict=True)]
        groups = [*[1] * (len(self.levels) - 1), self.groups]
        spread = sum(
            own**2 / (within * (count - 1)) for own, count, within in zip(by_facet, self.levels, groups, strict=True)
        )
        return float((sum(by_facet) - (len(by_facet) - 1) * self._single) ** 2 / spread)

    @property
    def last_alone(self) -> Design | None:
        """Return the same design as a test over the last facet alone sees it; None without spread.

        That test takes the levels of the other facets for all there are.
        """
        rest = 1 - sum(self.shares[:-1])
        if rest <= 1e-9:
            return None
        return Design(
            clusters=self.levels[-1],
            size=max(math.prod(self.levels[:-1]) * self.fill, 1.0),
            spread=self.spread * math.sqrt(rest),
            icc=min(self.shares[-1] / rest, 1.0),
            groups=self.groups,
        )

    def with_levels(self, facet: int, count: int) -> CrossedDesign:
        """Return the same design with so many levels of one facet."""
        levels = (*self.levels[:facet], count, *self.levels[facet + 1 :])
        return msgspec.structs.replace(self, levels=levels)

    @property
    def _single(self) -> float:
        return max(1 - sum(self.shares), 0.0) / (math.prod(self.levels) * self.fill)
