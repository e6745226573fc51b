"""Comparison within equal cells: weights with which two groups of rows have the same templates, jobs and other cells.

In each cell that has answers of both groups, the groups weigh n1 n2 / (n1 + n2) together, as Mantel and Haenszel (1959)
weigh strata, and the answers of a group weigh alike. Weights that are equal leave the plain difference of means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ...core.statistics.intervals import Array, ratio

CROSSED = 0.5
"""A column crosses the groups if at least this share of its levels has rows of two groups; else it lies within them."""


class Twins(NamedTuple):
    """The weight of each row in a comparison of two groups."""

    weights: Array
    """Shape (rows,); 0 of an answer whose cell has no answer of the other group, NaN of rows that are not compared."""
    without: int
    """Answers whose cell has none of the other group."""

    @property
    def equal(self) -> bool:
        """Return whether all answers weigh alike, so that the plain difference is the weighted one."""
        present = self.weights[np.isfinite(self.weights)]
        return not self.without and (not len(present) or bool(np.ptp(present) <= 1e-12 * present.max()))


def crossing(frame: pl.DataFrame, group: str, columns: Sequence[str]) -> list[str]:
    """Return the columns within whose levels the groups can be compared; names of one gender lie within it."""
    crossed = []
    for column in dict.fromkeys(columns):
        if column == group or column not in frame.columns:
            continue
        groups = frame.drop_nulls([column, group]).group_by(column).agg(pl.col(group).n_unique())[group]
        if len(groups) and int((groups > 1).sum()) >= CROSSED * len(groups):
            crossed.append(column)
    return crossed


def twins(sides: pl.Series, answered: pl.Series, cells: pl.DataFrame) -> Twins:
    """Return the weights of a comparison.

    Args:
        sides: 0 for rows of the first group, 1 for the second, null for others.
        answered: whether a row has a readable answer.
        cells: the columns that are equal in a cell; none: one cell.
    """
    frame = pl.DataFrame([sides.alias("_side"), answered.alias("_answered"), *cells.get_columns()])
    compared = pl.col("_answered") & pl.col("_side").is_not_null()
    first, second = ((compared & (pl.col("_side") == side)).sum() for side in (0, 1))
    if cells.width:
        first, second = first.over(cells.columns), second.over(cells.columns)
    counts = frame.select(first.alias("first"), second.alias("second"), compared.alias("in"))
    size, size_of_second = (counts[name].to_numpy().astype(np.float64) for name in ("first", "second"))
    side, inside = sides.to_numpy(), counts["in"].fill_null(False).to_numpy()
    size_of_other = np.where(side == 0, size_of_second, size)
    # n1 n2 / (n1 + n2) of a cell, divided by the answers of the row's group.
    weights = np.where(inside, ratio(size_of_other, size + size_of_second), np.nan)
    return Twins(weights, int((inside & (weights == 0)).sum()))
