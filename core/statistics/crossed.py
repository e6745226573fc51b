"""Two ways of clustering at once: scenarios crossed with images, templates crossed with names.

Answers to one scenario resemble each other, and so do answers about one image. Rows and columns are drawn
independently, each with replacement, and a cell counts as often as its row times its column was drawn: the pigeonhole
bootstrap (Owen 2007). It takes missing cells as they are. Its variance is at least the right one; where neither rows
nor columns matter it is up to three times too large.

The jackknife needs no draws: the variance by rows plus that by columns, less that by single cells, which both contain
(Cameron, Gelbach and Miller 2011). It is right with and without effects of rows and columns. Percentiles therefore
have the shape of the bootstrap and the width of the jackknife. `infer` takes its t intervals and the t tests that go
with them: an interval excludes the neutral value exactly where p is below 1 - level.

Cells have the shape (rows, columns of the design, units, sides, columns), and column 0 counts the answers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import msgspec
import numpy as np

from .intervals import Array, Codes, Flags, Ranges, jackknife_variance, ratio, stretched, t_ends, t_isf, t_test, within
from .resampling import BLOCK, Resampling, Statistics, alike, blocks, draw, fewest, jackknife, strata

Ways = tuple[list[Codes], list[Codes]]
"""The strata of the rows and of the columns."""


def crossed_bootstrap(
    cells: Array, statistics: Statistics, plan: Resampling, ranges: Ranges = ()
) -> tuple[Array, Array]:
    """Return the ends of intervals by the pigeonhole bootstrap or the jackknife, two arrays (units, statistics).

    Rows, or columns, that have answers on one side only are drawn within that side. NaN where a side has fewer than
    two rows or two columns. There is no BCa of two ways: percentiles stand in for it. `ranges` as for `bootstrap`.
    """
    observed = statistics(cells.sum(axis=(0, 1)))
    low, high = np.full((2, *observed.shape), np.nan)
    for number, units, part, ways in _crossings(cells):
        variance, freedom = _jackknife(part, statistics, ways)
        if plan.method == "jackknife":
            low[units], high[units] = within(*t_ends(observed[units], variance, plan.level, freedom), ranges)
            continue
        replicates = _replicates(part, statistics, ways, plan, number)
        reach = _reach(replicates, variance, freedom, plan.level)
        low[units], high[units] = stretched(replicates, observed[units], reach, plan.level, ranges)
    return low, high


def crossed_jackknife(cells: Array, statistics: Statistics) -> tuple[Array, Array]:
    """Return the variances of two ways of clustering, and their degrees of freedom, (units, statistics).

    NaN where a side has fewer than two rows or two columns, or a statistic is undefined.
    """
    variance, freedom = np.full((2, *statistics(cells.sum(axis=(0, 1))).shape), np.nan)
    for _, units, part, ways in _crossings(cells):
        variance[units], freedom[units] = _jackknife(part, statistics, ways)
    return variance, freedom


def _crossings(cells: Array) -> Iterator[tuple[int, Codes, Array, Ways]]:
    """Yield the units that rest on the same rows and columns in the same way, where there are enough of both."""
    margins = np.concatenate([cells[..., :1].sum(axis=1), cells[..., :1].sum(axis=0)])
    sides = cells.shape[3]
    for number, (units, pattern) in enumerate(alike(margins)):
        rows, columns = pattern[: len(cells)], pattern[len(cells) :]
        if min(fewest(rows, sides), fewest(columns, sides)) < 2:
            continue
        part = cells[rows > 0][:, columns > 0][:, :, units]
        yield number, units, part, (strata(rows[rows > 0]), strata(columns[columns > 0]))


class Inferred(msgspec.Struct, frozen=True):
    """Intervals and tests over two facets at once; arrays (units, statistics), NaN where undefined."""

    low: Array
    high: Array
    t: Array
    """Distance from neutral in standard errors."""
    p: Array
    """Two-sided, of the hypothesis that a statistic is neutral."""
    levels: Codes
    """Shape (units, 2): levels of either facet, on the side that has the fewest."""
    agree: Flags
    """Whether a statistic is the same whatever level is left out: then there is no variance to test with."""


def infer(cells: Array, statistics: Statistics, level: float, ranges: Ranges = (), neutral: float = 0.0) -> Inferred:
    """Return jackknife intervals and tests over the rows and the columns of the design.

    A facet with one level on a side cannot be generalised over: the unit's inference is over the other facet alone.

    Args:
        cells: sums (rows, columns of the design, units, sides, columns).
        statistics: from totals to statistics.
        level: of the intervals.
        ranges: what each statistic can be.
        neutral: what the tests compare statistics with.
    """
    observed = statistics(cells.sum(axis=(0, 1)))
    there = cells[..., 0] > 0
    levels: Codes = np.stack([there.any(axis=1 - way).sum(axis=0).min(axis=-1) for way in (0, 1)], axis=-1)
    variance, freedom = crossed_jackknife(cells, statistics)
    for way in (0, 1):
        if (alone := np.flatnonzero(levels[:, 1 - way] < 2)).size:
            variance[alone], freedom[alone] = jackknife(cells[:, :, alone].sum(axis=1 - way), statistics)
    low, high = t_ends(observed, variance, level, freedom)
    t, p = np.where(np.isnan(low), np.nan, t_test(observed - neutral, variance, freedom))
    return Inferred(*within(low, high, ranges), t, p, levels, np.isfinite(variance) & np.isnan(low))


def _replicates(cells: Array, statistics: Statistics, ways: Ways, plan: Resampling, number: int) -> Array:
    rng = np.random.default_rng([plan.seed, 4, number])
    width = max(cells[0].size // cells.shape[1], 1) * min(cells.shape[:2])
    counts = blocks(plan.resamples, sum(cells.shape[:2]), width)
    return np.concatenate([statistics(_totals(cells, draw(rng, ways[0], n), draw(rng, ways[1], n))) for n in counts])


def _reach(replicates: Array, variance: Array, freedom: Array, level: float) -> Array:
    """Return the jackknife's t interval in standard errors of the bootstrap; NaN without any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # A statistic without a replicate has no interval.
        spread = np.nanstd(replicates, axis=0)
    return ratio(t_isf((1 - level) / 2, freedom) * np.sqrt(variance), spread)


def _jackknife(cells: Array, statistics: Statistics, ways: Ways) -> tuple[Array, Array]:
    """Return variances and degrees of freedom, the latter after Satterthwaite from those of either way."""
    total = cells.sum(axis=(0, 1))
    observed = statistics(total)
    left_out = (statistics(total - cells.sum(axis=1 - way)) for way in (0, 1))
    found = [jackknife_variance(out, observed, own) for out, own in zip(left_out, ways, strict=True)]
    # Some rows of cells at a time bound the memory; a single cell is one of very many, so n / (n - 1) is left out.
    some = max(1, BLOCK // cells[0].size)
    parts = (cells[start : start + some] for start in range(0, len(cells), some))
    single = sum(np.nansum((statistics(total - part) - observed) ** 2, axis=(0, 1)) for part in parts)
    (rows, _), (columns, _) = found
    both = np.maximum(rows + columns - single, np.maximum(rows, columns))
    # A way that does not vary adds nothing, and leaves the other its degrees of freedom.
    parts = (np.nan_to_num(ratio(own**2, freedom)) for own, freedom in found)
    return both, ratio(both**2, np.sum(list(parts), axis=0))


def _totals(cells: Array, rows: Array, columns: Array) -> Array:
    """Return totals (replicates, units, sides, columns); the longer way goes first, as it shrinks the most."""
    if len(cells) > cells.shape[1]:
        cells, rows, columns = np.swapaxes(cells, 0, 1), columns, rows
    # (replicates, short, rest) after the product with the longer way.
    shape = cells.shape
    flat = np.swapaxes(cells, 0, 1).reshape(shape[1], -1)
    half = (columns @ flat).reshape(len(columns), shape[0], -1)
    totals: Array = np.einsum("br,brk->bk", rows, half).reshape(len(rows), *shape[2:])
    return totals
