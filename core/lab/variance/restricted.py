"""Variance components by restricted maximum likelihood (REML), from sums over cells.

All is computed from the levels' counts and sums and from how often two levels meet, so a fit takes time and memory by
the levels of all terms, not by the rows. An estimate is at least 0, unlike that of a method of moments.

Source: Searle, Casella and McCulloch (1992), chapter 6; Harville (1977) for the information; the criterion is that of
Bates and others (2015), equation 41.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.sparse import csr_matrix, hstack
from scipy.stats import chi2

from ...contracts.errors import DataError
from .components import Cells, Component, Components, Term
from .limits import Array, Likely

METHOD = "REML"
MOST_LEVELS = 1_000
"""Levels of all terms together: the time of a fit grows with the third power, to some minutes here."""
LEAST = 1e-12
"""Of the total variance: the residual is at least that."""
STEPS, SMALLEST, NEAR = 200, 1e-8, 1e-8
"""Most steps of a fit, the smallest part of one, and how much less the criterion may become."""
FARTHEST = 1e6
"""Times the estimate or the total variance: an end beyond is as good as infinite."""


class Restricted(NamedTuple):
    """What a fit is computed from. Levels are those of all terms, one term after another."""

    met: Array
    """Shape (levels, levels): the rows that have both levels."""
    counts: Array
    """Shape (levels,): the rows of each."""
    sums: Array
    """Shape (levels,): the sum of their values."""
    starts: tuple[int, ...]
    """Where the levels of each term begin, and at last how many there are."""
    rows: float
    total: float
    """The sum of all values."""
    squares: float
    """The sum of their squares."""

    @classmethod
    def of(cls, cells: Cells, terms: Sequence[Term]) -> Restricted:
        """Sum what is needed.

        Raises:
            DataError: the terms have too many levels.
        """
        starts = np.cumsum([0, *(term.levels for term in terms)])
        if starts[-1] > MOST_LEVELS:
            raise DataError(
                f"REML takes {MOST_LEVELS:,} levels of all terms together at most, and these have {starts[-1]:,}. Name "
                "fewer facets, allow fewer interactions (--interactions 1), or leave --method out: the method of "
                "moments takes any number.",
                code="variance.levels",
            )
        every, ones = np.arange(len(cells.n)), np.ones(len(cells.n))
        parts = [csr_matrix((ones, (every, cells.places(t.facets))), (len(every), t.levels)) for t in terms]
        levels = hstack(parts, format="csr") if parts else csr_matrix((len(every), 0))
        met = (levels.T @ levels.multiply(cells.n[:, None]).tocsr()).toarray()
        return cls(
            met=np.asarray(met, dtype=np.float64),
            counts=levels.T @ cells.n,
            sums=levels.T @ cells.y,
            starts=tuple(int(start) for start in starts),
            rows=float(cells.rows),
            total=float(cells.y.sum()),
            squares=cells.squares,
        )

    def blocks(self) -> list[slice]:
        """Return the levels of each term."""
        return [slice(first, end) for first, end in pairwise(self.starts)]

    def at(self, variances: Array) -> Point:
        """Return the criterion at variances of the terms and, last, of the residual, which is above 0."""
        rest, blocks = float(variances[-1]), self.blocks()
        scale = np.sqrt(np.repeat(variances[:-1] / rest, np.diff(self.starts)))
        known = cho_factor(np.eye(len(scale)) + scale[:, None] * self.met * scale, lower=True)
        within = self.met * scale
        # W = Z'V0^-1 Z, and the same with the column of ones and the values, where V0 is V divided by the residual.
        columns = np.column_stack([within.T, scale * self.counts, scale * self.sums])
        taken = columns.T @ cho_solve(known, columns)
        inner = self.met - taken[:-2, :-2]
        size = self.rows - taken[-2, -2]
        mean = (self.total - taken[-2, -1]) / size
        left = self.squares - taken[-1, -1] - size * mean**2
        of_ones = self.counts - taken[:-2, -2]
        of_values = self.sums - taken[:-2, -1] - mean * of_ones
        inner -= np.outer(of_ones, of_ones) / size
        logs = 2 * float(np.log(np.diag(known[0])).sum()) + np.log(size) + (self.rows - 1) * np.log(rest)
        # P is V^-1 without what the mean takes: tr(PV) = rows - 1 and PVP = P give what concerns the residual.
        traces = np.array([np.trace(inner[own, own]) for own in blocks]) / rest
        errors = np.array([(of_values[own] ** 2).sum() for own in blocks]) / rest**2
        trace = float(self.rows - 1 - variances[:-1] @ traces) / rest
        error = (left / rest - variances[:-1] @ errors) / rest
        slope = np.r_[traces - errors, trace - error]
        return Point(float(logs + left / rest), slope, inner / rest, traces, trace)

    def information(self, variances: Array, point: Point) -> Array:
        """Return the expected information, shape (terms + 1, terms + 1), at variances and what `at` gives for them."""
        blocks, count = self.blocks(), len(self.starts) - 1
        found = np.zeros((count + 1, count + 1))
        for one, first in enumerate(blocks):
            for other, second in enumerate(blocks):
                found[one, other] = (point.inner[first, second] ** 2).sum()
        own = (point.traces - found[:count, :count] @ variances[:-1]) / variances[-1]
        found[:count, -1] = found[-1, :count] = own
        found[-1, -1] = (point.trace - own @ variances[:-1]) / variances[-1]
        return found / 2


class Point(NamedTuple):
    """The criterion at some variances: minus twice the logarithm of the restricted likelihood, but for a constant."""

    value: float
    slope: Array
    """Shape (terms + 1,): its derivative by each variance."""
    inner: Array
    """Z'PZ, shape (levels, levels)."""
    traces: Array
    """Of the blocks of `inner`, shape (terms,)."""
    trace: float
    """Of P."""


def restricted(found: Components) -> Components:
    """Return the components of the same terms by REML.

    Intervals of a component are by profile likelihood, those of sums of components by Satterthwaite's approximation
    with the expected information.

    Args:
        found: the components by moments: their terms can be told apart, and the fit begins with their estimates.

    Raises:
        DataError: the terms have too many levels.
    """
    terms = [one.term for one in found.components]
    sums = Restricted.of(found.cells, terms[:-1])
    total = sums.squares / sums.rows - (sums.total / sums.rows) ** 2
    if total <= 0:
        raise DataError("every answer has the same value: there is no variance to divide.", code="variance.nothing")
    start = np.maximum([one.variance / total for one in found.components], [0.01] * len(terms))
    scaled = sums._replace(
        sums=sums.sums / total**0.5, total=sums.total / total**0.5, squares=sums.squares / total
    )  # so that one tolerance suits all units
    best, point = _least(scaled, start)
    covariance: Array = np.linalg.pinv(scaled.information(best, point)).astype(np.float64)
    most = point.value + float(chi2.ppf(found.level, 1))
    components = []
    for place, one in enumerate(found.components):
        low, high = _profile(scaled, best, place, most)
        components.append(Component(one.term, float(best[place] * total), low * total, high * total, one.freedom))
    limits = Likely(best * total, covariance * total**2)
    return Components(tuple(components), METHOD, found.level, limits, found.cells, found.notes)


def _least(sums: Restricted, start: Array, held: int | None = None) -> tuple[Array, Point]:
    """Return the variances at which the criterion is least, by Fisher scoring, and what it is there.

    The variance at `held` stays as it is.
    """
    floor, variances = np.zeros(len(start)), start
    floor[-1] = LEAST
    point = sums.at(variances)
    for _ in range(STEPS):
        free = (variances > floor) | (point.slope < 0)
        if held is not None:
            free[held] = False
        information, step = sums.information(variances, point), np.zeros(len(start))
        step[free] = -np.linalg.pinv(2 * information[np.ix_(free, free)]) @ point.slope[free]
        if -step @ point.slope < NEAR:
            break
        size = 1.0
        while (there := sums.at(tried := np.maximum(variances + size * step, floor))).value >= point.value:
            size /= 2
            if size <= SMALLEST:
                return variances, point
        variances, point = tried, there
    return variances, point


def _profile(sums: Restricted, best: Array, place: int, most: float) -> tuple[float, float]:
    """Return the interval of one variance: the values at which the criterion of the best fit is at most `most`."""
    known = best

    def above(value: float) -> float:
        nonlocal known
        start = known.copy()
        start[place] = value
        known, point = _least(sums, start, place)
        return point.value - most

    least, own = LEAST if place == len(best) - 1 else 0.0, float(best[place])
    low = least if own <= least or above(least) <= 0 else _crossing(above, least, own)
    reach = max(own, 1e-3)
    known, high = best, own + reach
    while above(high) < 0:
        reach *= 2
        high = own + reach
        if reach > FARTHEST:
            return low, float("inf")
    return low, _crossing(above, own, high)


def _crossing(above: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(above, low, high, xtol=1e-7, rtol=1e-4))
