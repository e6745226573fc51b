"""Two ways of clustering at once: scenarios crossed with images, templates crossed with names.

Answers to one scenario resemble each other, and so do answers about one image. Rows and columns are drawn
independently, each with replacement, and a cell counts as often as its row times its column was drawn: the pigeonhole
bootstrap (Owen 2007). It takes missing cells as they are. Its variance is at least the right one; where neither rows
nor columns matter it is up to three times too large, so its intervals are then too wide, never too narrow.

The jackknife needs no draws: the variance by rows plus that by columns, less that by single cells, which both contain
(Cameron, Gelbach and Miller 2011). It is right with and without effects of rows and columns.

Cells have the shape (rows, columns of the design, units, sides, columns), and column 0 counts the answers.
"""

from __future__ import annotations

import numpy as np

from ._arrays import Array, Codes, ratio
from ._cluster import Resampling, Statistics, alike, blocks, draw, fewest, strata
from ._ends import expanded_tail, jackknife_variance, percentiles, t_ends


def crossed_bootstrap(cells: Array, statistics: Statistics, plan: Resampling) -> tuple[Array, Array]:
    """Return the ends of intervals by the pigeonhole bootstrap or the jackknife, two arrays (units, statistics).

    Rows, or columns, that have answers on one side only are drawn within that side. Few clusters are made up for by
    the smaller count of the two ways. NaN where a side has fewer than two rows or two columns. There is no BCa of
    two ways: percentiles stand in for it.
    """
    observed = statistics(cells.sum(axis=(0, 1)))
    low, high = np.full((2, *observed.shape), np.nan)
    margins = np.concatenate([cells[..., :1].sum(axis=1), cells[..., :1].sum(axis=0)])
    sides = cells.shape[3]
    for number, (units, pattern) in enumerate(alike(margins)):
        rows, columns = pattern[: len(cells)], pattern[len(cells) :]
        few = min(fewest(rows, sides), fewest(columns, sides))
        if few < 2:
            continue
        part = cells[rows > 0][:, columns > 0][:, :, units]
        ways = (strata(rows[rows > 0]), strata(columns[columns > 0]))
        if plan.method == "jackknife":
            low[units], high[units] = _jackknife(part, statistics, ways, plan.level)
            continue
        rng = np.random.default_rng([plan.seed, 4, number])
        width = max(part[0].size // part.shape[1], 1) * min(part.shape[:2])
        counts = blocks(plan.resamples, sum(part.shape[:2]), width)
        replicates = [statistics(_totals(part, draw(rng, ways[0], n), draw(rng, ways[1], n))) for n in counts]
        low[units], high[units] = percentiles(np.concatenate(replicates), expanded_tail(plan.level, few))
    return low, high


def _jackknife(
    cells: Array, statistics: Statistics, ways: tuple[list[Codes], list[Codes]], level: float
) -> tuple[Array, Array]:
    """Return t intervals; degrees of freedom after Satterthwaite, from those of either way."""
    total = cells.sum(axis=(0, 1))
    observed = statistics(total)
    left_out = (statistics(total - cells.sum(axis=1 - way)) for way in (0, 1))
    found = [jackknife_variance(out, observed, own) for out, own in zip(left_out, ways, strict=True)]
    # One row of cells at a time bounds the memory; a single cell is one of very many, so n / (n - 1) is left out.
    single = sum(np.nansum((statistics(total - row) - observed) ** 2, axis=0) for row in cells)
    (rows, row_freedom), (columns, column_freedom) = found
    both = np.maximum(rows + columns - single, np.maximum(rows, columns))
    freedom = ratio(both**2, ratio(rows**2, row_freedom) + ratio(columns**2, column_freedom))
    return t_ends(observed, both, level, freedom)


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
