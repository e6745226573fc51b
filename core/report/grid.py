"""The structure of all tables of the page, which one template macro renders."""

from __future__ import annotations

import math

import msgspec

from ..contracts.records import Scalar
from ..contracts.words import UNDEFINED
from .content import Table
from .text import label, scalar

MOST_ROWS = 500
"""Maximum number of rows of a plain table on the page."""


class Plot(msgspec.Struct, frozen=True):
    """A value, its interval and the neutral value as positions from 0 to 100 along the metric's own scale."""

    value: float
    low: float | None
    high: float | None
    neutral: float | None
    apart: bool
    """Whether the interval excludes the neutral value, or the measure has no neutral value."""


class Cell(msgspec.Struct, frozen=True):
    """A cell: its text, sort key and full value."""

    text: str
    sort: str | None = None
    """A number for sorting; empty: last; None: by the text."""
    title: str = ""
    detail: str = ""
    """Text in small letters below the cell's text."""
    plot: Plot | None = None
    meaning: str = ""
    """What the text means, which the reader opens."""
    answers: str = ""
    """Of a row's heading: the filter of the answers behind it, as the query of `prejudge view`."""

    @property
    def undefined(self) -> bool:
        """Return whether there is no value."""
        return self.text == UNDEFINED


class Column(msgspec.Struct, frozen=True):
    """A column."""

    label: str
    numeric: bool = False
    meaning: str = ""


class Grid(msgspec.Struct, frozen=True):
    """A table; the first cell of each row is its heading."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def sort_key(value: float | None) -> str:
    """Return the number for sorting by script; empty if it is undefined."""
    return "" if value is None or math.isnan(value) else repr(float(value))


def scalar_cell(value: Scalar) -> Cell:
    """Return the cell of a plain value."""
    if value is None or isinstance(value, int | float) and not isinstance(value, bool):
        return Cell(scalar(value), sort_key(value), "" if value is None else repr(value))
    return Cell(scalar(value))


def label_cell(value: Scalar) -> Cell:
    """Return the cell of a factor's value."""
    return msgspec.structs.replace(scalar_cell(value), text=label(value), title="")


def plain_grid(table: Table) -> Grid:
    """Return the grid of a plain table; a column is numeric if all of its values are numbers or missing."""
    rows = tuple(tuple(scalar_cell(value) for value in row) for row in table.rows[:MOST_ROWS])
    numeric = [all(row[index].sort is not None for row in rows) for index in range(len(table.columns))]
    cut = f" (the first {MOST_ROWS:,} of {len(table.rows):,} rows)" if len(table.rows) > MOST_ROWS else ""
    return Grid(table.caption + cut, tuple(map(Column, table.columns, numeric)), rows)
