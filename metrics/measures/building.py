"""From a table of a study to the measures of the rows at hand: of every two levels, within equal cells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.statistics.estimates import POINTS
from ...core.statistics.intervals import Array, ratio
from ...core.statistics.measures import Correlation, DeclaredMeasure, Mean, Share, Statistic, own_family
from ...core.statistics.measures_compared import Difference, Ranks
from .declaring import MeasureTable
from .ranked import RankCorrelation
from .twins import Twins, crossing, twins
from .values import level_is, value_of, where_of

if TYPE_CHECKING:
    from .metric import MeasuresOptions

COMPARED = "compared"
"""Names the two levels of a comparison in the group of its estimates, where a factor has more than two."""


def built(table: MeasureTable, rows: pl.DataFrame, options: MeasuresOptions) -> Iterator[DeclaredMeasure]:
    """Yield the measures of a table.

    Raises:
        DataError: a level or a label does not occur, or a column is absent.
    """
    builder = _Builder(table, rows, options)
    if table.kind in ("share", "mean", "correlation"):
        yield builder.single()
        return
    levels = builder.levels
    if table.kind != "ratio":
        yield from (builder.compared(*pair) for pair in combinations(levels, 2))
    elif levels:
        yield builder.rates()
        reference = builder.reference()
        yield from (builder.ratio(level, reference) for level in levels if level != reference)


class _Builder:
    def __init__(self, table: MeasureTable, rows: pl.DataFrame, options: MeasuresOptions) -> None:
        self._table, self._rows, self._options = table, rows, options
        self._value = value_of(table, rows, options.labels)
        self._where = where_of(table.where, rows)
        self._number = self._value.expression.cast(pl.Float64)
        self._common: dict[str, Any] = {
            "where": self._where,
            "groups": ((), table.by) if table.by else ((),),
            "family": own_family(table.name),
            "label": table.words.label,
            "meaning": table.words.meaning,
        }

    def single(self) -> DeclaredMeasure:
        """Return a measure of all rows: a share, a mean or a correlation."""
        table, neutral = self._table, self._table.neutral
        if table.kind == "share":
            return Share(table.name, hit=self._value.expression, neutral=neutral, **self._common)
        if table.kind == "mean":
            # Labels whose numbers are symmetric about 0, such as 1, 0 and -1, cancel in an unbiased model.
            symmetric = self._value.by_label and sum(self._value.limits or (1.0,)) == 0
            neutral = 0.0 if neutral is None and symmetric else neutral
            return Mean(table.name, value=self._number, neutral=neutral, **self._scaled("%"), **self._common)
        numbers: dict[str, Any] = {"x": table.factor, "y": self._number, "neutral": neutral or 0.0}
        if table.method == "pearson":
            return Correlation(table.name, **numbers, **self._common)
        return RankCorrelation(table.name, method=table.method, **numbers, **self._common)

    def compared(self, first: str, second: str) -> DeclaredMeasure:
        """Return the difference of means, or of ranks, at two levels."""
        table = self._table
        fields = self._common | self._sides(first, second) | {"neutral": table.neutral or 0.0}
        fields |= self._named(f"{first} minus {second}")
        if table.kind == "ranks":
            return Ranks(table.name, value=self._number, limits=self._value.limits, **fields)
        weighed, hit = self._twins(first, second), self._value.is_hit
        fields |= self._scaled(POINTS)
        if weighed.equal:
            size: Any = "risk difference" if hit else "Cohen's d"
            return Difference(table.name, value=self._value.expression if hit else self._number, size=size, **fields)
        if (limits := fields["limits"]) is not None:
            fields["limits"] = (limits[0] - limits[1], limits[1] - limits[0])
        fields["facts"] = {"answers_without_twin": weighed.without}
        return Statistic(table.name, sums=self._weighted(weighed), by=_gap, **fields)

    def ratio(self, first: str, second: str) -> DeclaredMeasure:
        """Return the logarithm of the ratio of the rates at two levels."""
        table = self._table
        # The level with the greatest rate was chosen by these answers: of several, the ratio is below 1 by that alone.
        chosen = not table.reference and len(self.levels) > 2
        fields = self._common | self._sides(first, second)
        fields |= self._named(f"{first} over {second}") | {
            "neutral": float(np.log(table.neutral or 1.0)),
            "tested": not chosen,
            "note": f"{second} has the greatest rate of these rows, so the ratio is not tested" if chosen else "",
        }
        return Statistic(table.name, sums=self._weighted(self._twins(first, second)), by=_log_ratio, **fields)

    def rates(self) -> DeclaredMeasure:
        """Return the share at each level."""
        words = {"label": "Selection rate", "meaning": "Percentage of the readable answers that are selected."}
        fields = self._common | {"groups": ((self._table.factor,),)} | words
        return Share(f"{self._table.name}_rate", hit=self._value.expression, **fields)

    @cached_property
    def levels(self) -> list[str]:
        """Return the levels that are compared, the first first.

        Raises:
            DataError: the factor has no such level, or fewer than two.
        """
        table, frame = self._table, self._rows.filter(self._where)
        column = frame[table.factor]
        present = column.drop_nulls().cast(pl.String).unique().sort().to_list()
        if isinstance(column.dtype, pl.Enum):
            present = [level for level in column.dtype.categories.to_list() if level in present]
        absent = [level for level in (*table.levels, table.reference) if level and level not in present]
        if (absent or len(present) < 2) and frame.height:
            problem = f"has no level {absent[0]!r}" if absent else "has fewer than two levels"
            raise DataError(
                f"the measure {table.name!r} compares levels of {table.factor!r}, which {problem}. It has: "
                f"{', '.join(map(repr, present)) or 'none'}.",
                code="data.unknown-value",
                column=table.factor,
            )
        return list(table.levels) or present

    def reference(self) -> str:
        """Return the level that others are divided by; the first of several with the greatest rate."""
        answers = self._rows.filter(self._where, pl.col("status") == "ok")
        frame = answers.select(level=pl.col(self._table.factor).cast(pl.String), hit=self._number)
        rates = dict(frame.group_by("level").agg(pl.col("hit").mean()).iter_rows())
        return self._table.reference or max(self.levels, key=lambda level: rates.get(level) or 0.0)

    def _named(self, pair: str) -> dict[str, Any]:
        """Return the label of a comparison, and what tells it from others of the same measure."""
        several = len(self.levels) > 2
        return {"label": f"{self._common['label']}: {pair}", "group": {COMPARED: pair} if several else {}}

    def _scaled(self, unit: str) -> dict[str, Any]:
        """Return unit, scale and limits of a mean; `unit` is that of a mean of true and false."""
        if self._value.is_hit:
            return {"unit": unit, "scale": 100.0, "limits": (0.0, 100.0)}
        return {"unit": self._table.unit, "limits": self._value.limits}

    def _sides(self, first: str, second: str) -> dict[str, Any]:
        factor = self._table.factor
        sides = {"first": level_is(factor, first), "second": level_is(factor, second)}
        return sides | {"direction": f"more where {factor} is {first} than where it is {second}"}

    def _twins(self, first: str, second: str) -> Twins:
        table, sides = self._table, self._sides(first, second)
        is_first, is_second = (self._where & sides[name] for name in ("first", "second"))
        side = self._rows.select(side=pl.when(is_first).then(0).when(is_second).then(1))["side"]
        answered = (pl.col("status") == "ok") & self._value.expression.is_not_null()
        default = () if table.kind == "ratio" else self._options.within or self._options.ways
        within = crossing(
            self._rows.filter(side.is_not_null()), table.factor, default if table.within is None else table.within
        )
        cells = dict.fromkeys([*within, *(name for name in table.by if name != table.factor)])
        answers = self._rows.select(there=answered.fill_null(value=False))["there"]
        return twins(side, answers, self._rows.select(*cells))

    def _weighted(self, weighed: Twins) -> tuple[Any, Any]:
        """Return what gives the weight of each row, and its product with the value."""
        weights, number = pl.Series(weighed.weights), self._number
        return lambda frame: weights, lambda frame: weights * frame.select(number)[:, 0]


def _gap(weights: Array, products: Array) -> Array:
    means = ratio(products, weights)
    gap: Array = means[..., 0] - means[..., 1]
    return gap


def _log_ratio(weights: Array, products: Array) -> Array:
    rates = np.log(ratio(products, weights))
    difference: Array = rates[..., 0] - rates[..., 1]
    return difference
