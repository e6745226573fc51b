"""What a file writes in another way than a study: codes of published copies, and decimal commas."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from .rows import DECIMAL_COMMA, Row

_INTEGER = re.compile(r"\s*[+-]?\d+\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
Change = Callable[[str], str]


class Codes(NamedTuple):
    """Codes of closed values in a published copy of a data set."""

    copy: str
    """Its name, as the end of a sentence: `the copy of Hugging Face`."""
    values: Mapping[str, Sequence[str]]
    """By column, the value of each code, from 0."""


class Form(NamedTuple):
    """What a study knows of the form of a file."""

    required: Sequence[str]
    """Columns that it must have."""
    optional: Collection[str] = ()
    """Columns that it may have."""
    numbers: Collection[str] = ()
    """Columns of numbers, which may have a decimal comma if all of a column have one."""
    codes: Sequence[Codes] = ()
    """Published copies whose codes are understood."""


def understand(rows: list[Row], form: Form) -> tuple[list[Row], tuple[str, ...]]:
    """Return rows with codes and decimal commas replaced, and what was understood of them, in sentences."""
    remarks: list[str] = []
    changes: dict[str, Change] = {}
    for name in form.numbers:
        cells = [cell for row in rows if (cell := row.cells.get(name, "")).strip()]
        if has_decimal_commas(cells):
            changes[name] = _with_point
            remarks.append(f"The numbers of {name} have a decimal comma, such as {cells[0].strip()}.")
    for copy in form.codes:
        # Of a file that is not this copy one column may have equal codes with other meanings.
        if rows and all(_coded(rows, name, values) for name, values in copy.values.items()):
            changes |= {name: _decoder(values) for name, values in copy.values.items()}
            meanings = "; ".join(f"{name} {_meanings(values)}" for name, values in copy.values.items())
            remarks.append(f"The codes of the file are read as those of {copy.copy}: {meanings}.")
            break
    return [_changed(row, changes) for row in rows] if changes else rows, tuple(remarks)


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Return whether numbers have decimal commas beyond doubt: no other form occurs, and not all may be thousands."""
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    plain = all(DECIMAL_COMMA.fullmatch(cell) or _INTEGER.fullmatch(cell) for cell in cells)
    return plain and any(not _THOUSANDS.fullmatch(cell) for cell in commas)


def _changed(row: Row, changes: Mapping[str, Change]) -> Row:
    cells = {name: change(row.cells[name]) for name, change in changes.items()}
    return msgspec.structs.replace(row, cells=row.cells | cells)


def _with_point(cell: str) -> str:
    return cell.replace(",", ".")


def _coded(rows: Sequence[Row], name: str, values: Sequence[str]) -> bool:
    codes = {str(code) for code in range(len(values))}
    return name in rows[0].cells and all(row.cells[name].strip() in {*codes, ""} for row in rows)


def _decoder(values: Sequence[str]) -> Change:
    return lambda cell: values[int(cell)] if cell.strip() else cell


def _meanings(values: Sequence[str]) -> str:
    return ", ".join(f"{code} = {value}" for code, value in enumerate(values))
