"""What a measure is of: a column, a label or several, or a number for each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ...core.contracts.declared import LABEL, OUTCOME
from ...core.contracts.errors import DataError
from ...core.contracts.records import Scalar
from ...core.statistics.intervals import Limits
from .declaring import MeasureTable


class Value(NamedTuple):
    """What gives the number of a row."""

    expression: pl.Expr
    is_hit: bool
    """Whether it is true or false."""
    limits: Limits = None
    """The least and the greatest that it can be."""
    by_label: bool = False


def value_of(table: MeasureTable, frame: pl.DataFrame, labels: Sequence[str] = ()) -> Value:
    """Return what a measure is of.

    Args:
        table: the measure.
        frame: the observations.
        labels: all that an answer can have; empty: any.

    Raises:
        DataError: it is no column and no label that an answer can have, or a label has no number.
    """
    of = table.value
    if isinstance(of, str) and of == "number" and of not in frame.columns:
        of = OUTCOME
    if isinstance(of, str) and of in frame.columns:
        boolean = frame.schema[of] == pl.Boolean
        # A share, and what has the unit %, is of 0 and 1.
        hit = boolean or table.kind in ("share", "ratio") or table.unit == "%"
        return Value(pl.col(of), hit, table.range)
    if LABEL not in frame.columns or isinstance(of, str) and of == OUTCOME:
        raise _absent(table, frame, of)
    column = pl.col(LABEL).cast(pl.String)
    names = [of] if isinstance(of, str) else list(of)
    if unknown := [name for name in names if labels and name not in labels]:
        raise DataError(
            f"the measure {table.name!r} is of the label {unknown[0]!r}. An answer has one of "
            f"{', '.join(map(repr, labels))}.",
            code="data.unknown-value",
            column=LABEL,
        )
    if not isinstance(of, dict):
        return Value(column.is_in(names), is_hit=True, by_label=True)
    numbers = {name: float(number) for name, number in of.items()}
    _ensure_numbers(table, frame, numbers)
    limits = (min(numbers.values()), max(numbers.values()))
    return Value(column.replace_strict(numbers, default=None, return_dtype=pl.Float64), False, limits, by_label=True)


def _ensure_numbers(table: MeasureTable, frame: pl.DataFrame, numbers: Mapping[str, float]) -> None:
    answers = frame.filter(where_of(table.where, frame), pl.col("status") == "ok")[LABEL].drop_nulls()
    if without := sorted(set(answers.cast(pl.String).unique().to_list()) - set(numbers)):
        raise DataError(
            f"the measure {table.name!r} has no number for the label {without[0]!r}, which answers have. Give one, or "
            "leave these rows out with `where`.",
            code="data.unknown-value",
            column=LABEL,
        )


def _absent(table: MeasureTable, frame: pl.DataFrame, of: object) -> DataError:
    return DataError(
        f"the measure {table.name!r} is of {of!r}, which is no column, and the observations have no column "
        f"{LABEL!r}. They have: {', '.join(frame.columns)}.",
        code="data.column-missing",
        column=str(of),
    )


def level_is(column: str, *levels: Scalar) -> pl.Expr:
    """Return whether a column has one of these levels; null where it has none."""
    return pl.col(column).cast(pl.String).is_in([_text(level) for level in levels])


def where_of(levels: Mapping[str, Scalar | tuple[Scalar, ...]], frame: pl.DataFrame) -> pl.Expr:
    """Return whether a row has all these levels; numbers are compared as numbers."""
    every = pl.lit(value=True)
    for column, wanted in levels.items():
        allowed = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
        if column in frame.columns and frame.schema[column].is_numeric():
            every &= (
                pl.col(column)
                .cast(pl.Float64)
                .is_in([float(level) for level in allowed if isinstance(level, int | float)])
            )
        else:
            every &= level_is(column, *allowed)
    return every


def _text(level: Scalar) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)
