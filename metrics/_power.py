"""What a design can show: power, and the smallest effect it would find, before anything is asked.

Answers in one cluster resemble each other; m answers in each of C clusters with intra-cluster correlation icc are
worth C m / (1 + (m - 1) icc) independent ones (Kish 1965). A test of a mean is then a t test with C - 1 degrees of
freedom, and its power is that of the noncentral t distribution.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from scipy import optimize, stats

from ..core.errors import UsageError
from ._arrays import Array, Codes


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """A design to be tested against a neutral mean, or two groups of clusters against each other."""

    clusters: int
    """In each group, where there are two."""
    size: float = 1.0
    """Answers (or pairs) per cluster, on average."""
    spread: float = 1.0
    """Standard deviation of one answer; of a pair's difference, where answers are paired."""
    icc: float = 0.0
    """Correlation of two answers of one cluster."""
    unevenness: float = 0.0
    """Standard deviation of the clusters' sizes over their mean."""
    groups: int = 1
    """1: a mean, or a mean of paired differences, against neutral. 2: the means of two groups of clusters."""

    def __post_init__(self) -> None:
        """Refuse what is no design."""
        if self.clusters < 2:
            raise UsageError(f"clusters is {self.clusters}. Give at least 2: one cluster shows no spread.")
        if not self.size > 0 or not self.spread > 0:
            raise UsageError(f"size is {self.size} and spread is {self.spread}. Give numbers above 0.")
        if not 0 <= self.icc <= 1:
            raise UsageError(f"icc is {self.icc}. Give a number from 0 to 1.")
        if self.groups not in (1, 2):
            raise UsageError(f"groups is {self.groups}. Give 1 or 2.")

    @property
    def design_effect(self) -> float:
        """Return by how much clustering multiplies the variance of the mean.

        Source: Kish (1965); for clusters of unequal size Eldridge, Ashby and Kerry (2006).
        """
        return max(1 + ((1 + self.unevenness**2) * self.size - 1) * self.icc, self.icc)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean, or of the difference of two means."""
        return self.spread * math.sqrt(self.groups * self.design_effect / (self.clusters * self.size))

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom: clusters less one per group."""
        return self.groups * (self.clusters - 1)


class CrossedDesign(msgspec.Struct, frozen=True, kw_only=True):
    """Every row (scenario) with every column (image), tested against a neutral mean by the crossed jackknife."""

    rows: int
    columns: int
    spread: float = 1.0
    """Standard deviation of one answer."""
    row_icc: float = 0.0
    """Share of its variance that answers of one row have in common."""
    column_icc: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no design."""
        if self.rows < 2 or self.columns < 2:
            raise UsageError(f"rows is {self.rows} and columns is {self.columns}. Give at least 2 of each.")
        if not self.spread > 0:
            raise UsageError(f"spread is {self.spread}. Give a number above 0.")
        if min(self.row_icc, self.column_icc) < 0 or self.row_icc + self.column_icc > 1:
            raise UsageError(f"row_icc is {self.row_icc}, column_icc {self.column_icc}. Give shares that sum up to 1.")

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean: what rows, columns and single answers add to it."""
        return self.spread * math.sqrt(self.row_icc / self.rows + self.column_icc / self.columns + self._single)

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom, after Satterthwaite (1946)."""
        row, column = self.row_icc / self.rows + self._single, self.column_icc / self.columns + self._single
        spread = row**2 / (self.rows - 1) + column**2 / (self.columns - 1)
        return (row + column - self._single) ** 2 / spread

    @property
    def _single(self) -> float:
        return (1 - self.row_icc - self.column_icc) / (self.rows * self.columns)


def proportion_spread(share: float) -> float:
    """Return the standard deviation of a yes-no answer."""
    return math.sqrt(share * (1 - share))


def discordance_spread(discordant: float) -> float:
    """Return the standard deviation of paired yes-no differences of mean 0, from the share of pairs that differ."""
    return math.sqrt(discordant)


def power(effect: float, design: Design | CrossedDesign, alpha: float = 0.05) -> float:
    """Return the chance that a two-sided test at `alpha` finds a true `effect` (in the units of the spread)."""
    critical = stats.t.isf(alpha / 2, design.freedom)
    shift = abs(effect) / design.standard_error
    # The far tail underflows to NaN in scipy where it is nothing.
    far = stats.nct.cdf(-critical, design.freedom, shift) if shift < 5 else 0.0
    return float(stats.nct.sf(critical, design.freedom, shift) + far)


def minimum_detectable_effect(design: Design | CrossedDesign, alpha: float = 0.05, wanted: float = 0.8) -> float:
    """Return the least true effect that a two-sided test at `alpha` finds with probability `wanted`."""
    if not alpha < wanted < 1:
        raise UsageError(f"power is {wanted}. Give a number between alpha ({alpha}) and 1.")
    top = stats.t.isf(alpha / 2, design.freedom) + 2 * stats.t.isf((1 - wanted) / 2, design.freedom)
    found = optimize.brentq(lambda shift: power(shift * design.standard_error, design, alpha) - wanted, 0, top)
    return float(found * design.standard_error)


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
