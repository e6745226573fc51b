"""Rank correlations as functions of counts, from which the answers of a cluster can be left out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...core.statistics.intervals import CONTRAST, Array, Codes, ratio
from ...core.statistics.measures import SummedMeasure
from ...core.statistics.ranks import levels_of, midranks, tau_b
from ...core.statistics.recipes import Column, EffectSize, Recipe

MOST = 32
"""Levels of a number that are told apart; of more, neighbours of similar number count as equal."""


class RankCorrelation(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """Spearman's correlation or Kendall's tau-b of two numbers; it is its own effect size."""

    x: Column
    y: Column
    method: Literal["spearman", "kendall"]
    neutral: float | None = 0.0

    def recipe(self) -> Recipe:
        """Return the counts by level of both numbers, and the correlation."""
        statistic, name = (tau_b, "Kendall's tau-b") if self.method == "kendall" else (_spearman, "Spearman's rho")

        def tabulated(values: Array, place: Codes, number: int) -> Array:
            x, y = (levels_of(column, MOST) for column in values.T)
            width = int(y.max(initial=0)) + 1
            size = MOST * width
            code = (place * MOST + x) * width + y
            counts = np.bincount(code, minlength=number * size).reshape(number, size).astype(np.float64)
            return np.concatenate([counts.sum(axis=-1, keepdims=True), counts], axis=-1)

        def value(totals: Array) -> Array:
            counts = totals[..., 0, 1:]
            return statistic(counts.reshape(*counts.shape[:-1], MOST, -1))

        return Recipe(
            inputs=(self.x, self.y),
            columns=lambda values: (),
            value=value,
            range=CONTRAST,
            effect=EffectSize(name, lambda value: value, CONTRAST, of_value=True),
            tabulated=tabulated,
        )


def _spearman(table: Array) -> Array:
    """Return the correlation of midranks from counts (..., levels of x, levels of y)."""
    by_x, by_y = table.sum(axis=-1), table.sum(axis=-2)
    n = by_x.sum(axis=-1)
    x, y = (midranks(counts) - (n[..., None] + 1) / 2 for counts in (by_x, by_y))
    products = (x[..., :, None] * y[..., None, :] * table).sum(axis=(-1, -2))
    spread = (by_x * x**2).sum(axis=-1) * (by_y * y**2).sum(axis=-1)
    return ratio(products, np.sqrt(spread))
