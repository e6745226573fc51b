"""Rows that describe one thing: one policy for every reader of a table.

A row that says the same as an earlier one counts once, and the file's count of rows left out has it. A row that says
something else of the same thing cannot be used, as one that belongs to nothing: the file is refused, or `--bad-rows
skip` leaves it out, so that the first row counts.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from .faults import RowPlace, repeated_row
from .rows import Row

AGAIN = "a row that says the same as an earlier one"
OTHERWISE = "a row that contradicts an earlier one"


class Repeats:
    """The rows of a file by what they describe.

    Example:
        >>> from prejudge import tables
        >>> repeats = tables.Repeats(["pair", "text"])
        >>> repeats.check(tables.Row("pairs.csv", 2, {"pair": "a", "text": "x"}), "a", "pair 'a'")
    """

    def __init__(self, columns: Collection[str]) -> None:
        """Compare rows by these columns, those that are read; a row may lack some of them."""
        self._columns = columns
        self._first: dict[Hashable, Row] = {}

    def check(self, row: Row, name: Hashable, shown: str) -> None:
        """Take a row that can be used, under the name of what it describes.

        Args:
            row: The row.
            name: What it describes.
            shown: The name in a message.

        Raises:
            RepeatedRow: an earlier row of this name says the same.
            RowError: an earlier row of this name says something else.
        """
        first = self._first.setdefault(name, row)
        if first is row:
            return
        where = f"{first.unit} {first.line}" if first.path == row.path else f"{first.path}, {first.unit} {first.line}"
        if (column := next((name for name in self._columns if _cell(first, name) != _cell(row, name)), None)) is None:
            problem = f"{shown} is already on {where}, with the same values."
            raise repeated_row(RowPlace(row.path, row.unit, row.line), problem, "data.duplicate", AGAIN)
        raise row.fault(
            f"{shown} is already on {where}, where {column} is {_cell(first, column)!r} and not "
            f"{_cell(row, column)!r}. Keep one of the rows, or name them apart.",
            "data.duplicate",
            OTHERWISE,
            column=column,
        )


def _cell(row: Row, column: str) -> str:
    return " ".join(row.cells.get(column, "").split())
