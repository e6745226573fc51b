"""A record of a table: cells as text, and errors that name the row, the value, and what would be accepted."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence

import msgspec

from .faults import RowError, RowPlace, row_error

SHOWN_VALUE = 120
"""Characters of a cell that a message shows."""
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


class Row(msgspec.Struct, frozen=True):
    """One record of a file. Cells are kept exactly as written.

    Example:
        >>> from prejudge import tables
        >>> row = tables.Row("pairs.csv", 2, {"direction": " Stereo", "bias_type": "gender"})
        >>> row.choice("direction", ("stereo", "antistereo"))
        'stereo'
    """

    path: str
    line: int
    """Line on which the record starts, the header being line 1; of other formats, its number."""
    cells: dict[str, str]
    unit: str = "line"
    """What `line` counts: `line`, `record` or `row`."""
    index: int = 0
    """Its number among the rows of the file, from 0."""

    def fault(self, problem: str, code: str, reason: str = "", **fields: object) -> RowError:
        """Return an error that names this row, with further fields; `reason` is the problem without its values."""
        return row_error(RowPlace(self.path, self.unit, self.line), problem, code, reason, **fields)

    def filled(self, column: str) -> str:
        """Return a cell that must not be empty or blank; raises `DataError`."""
        if not (cell := self.cells[column]).strip():
            raise self.fault(f"column {column!r} is empty. Fill it in, or remove the row.", "data.cell-empty")
        return cell

    def optional(self, column: str) -> str | None:
        """Return a cell, or None where the column is absent or the cell is blank."""
        return cell if (cell := self.cells.get(column, "")).strip() else None

    def choice(self, column: str, known: Sequence[str], hint: str = "") -> str:
        """Return which of `known` a cell is, apart from case and outer blanks; raises `DataError` with the nearest.

        Args:
            column: The column.
            known: What the cell may be.
            hint: What else would be accepted, as a sentence of the error.
        """
        cell = self.cells[column]
        if cell in known:
            return cell
        plain = cell.strip().casefold()
        if len(equal := [value for value in known if value.casefold() == plain]) == 1:
            return equal[0]
        near = difflib.get_close_matches(plain, known, n=1)
        mend = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
        mend += f" {hint}" if hint else ""
        problem = f"unknown {column} {_short(cell)}. {mend}"
        raise self.fault(problem, "data.unknown-value", f"unknown {column}", known=tuple(known))

    def number(self, column: str, convert: Callable[[str], float] = float) -> float:
        """Return a cell as a finite number; raises `DataError`."""
        cell = self.cells[column]
        try:
            value = convert(cell)
        except ValueError:
            comma = ""
            if DECIMAL_COMMA.fullmatch(cell):
                plain = cell.strip().replace(",", ".")
                comma = f" It has a decimal comma: write {plain}, or give a file in which every number has one."
            problem = f"{column} {_short(cell)} is not a number.{comma}"
            raise self.fault(problem, "data.number", f"{column} is not a number") from None
        if not abs(value) < float("inf"):
            raise self.fault(f"{column} {_short(cell)} is not finite.", "data.number", f"{column} is not finite")
        return value


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= SHOWN_VALUE else f"{cell[: SHOWN_VALUE - 3]}...")
