"""Strict reader of CSV files: an error states the line, the value, and the fix."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from .errors import DataError

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Other separators of columns; an error names the one that was found."""


class Row(msgspec.Struct, frozen=True):
    """One record of a file. Cells are kept exactly as written."""

    path: str
    line: int
    """Line on which the record starts; the header is line 1."""
    cells: dict[str, str]

    def fault(self, problem: str, code: str) -> DataError:
        """Return an error that names this row."""
        return DataError(f"{self.path}, line {self.line}: {problem}", code=code, path=self.path, line=self.line)

    def filled(self, column: str) -> str:
        """Return a cell that must not be empty or blank; raises `DataError`."""
        if not (cell := self.cells[column]).strip():
            raise self.fault(f"column {column!r} is empty. Fill it in, or remove the row.", "data.cell-empty")
        return cell

    def optional(self, column: str) -> str | None:
        """Return a cell, or None where the column is absent or the cell is blank."""
        return cell if (cell := self.cells.get(column, "")).strip() else None

    def choice(self, column: str, known: Sequence[str]) -> str:
        """Return a cell that must be one of `known`; raises `DataError` with the nearest one."""
        if (cell := self.cells[column]) not in known:
            near = difflib.get_close_matches(cell.strip().lower(), known, n=1)
            mend = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
            raise self.fault(f"unknown {column} {cell!r}. {mend}", "data.unknown-value")
        return cell

    def number(self, column: str, convert: Callable[[str], float] = float) -> float:
        """Return a cell as a finite number; raises `DataError`."""
        try:
            value = convert(cell := self.cells[column])
        except ValueError:
            raise self.fault(f"{column} {cell!r} is not a number.", "data.number") from None
        if not abs(value) < float("inf"):
            raise self.fault(f"{column} {cell!r} is not finite.", "data.number")
        return value


class Table(msgspec.Struct, frozen=True):
    """All records of a file."""

    path: str
    sha256: str
    """sha256 of the file (hex)."""
    columns: tuple[str, ...]
    rows: list[Row]

    def column(self, *names: str) -> str:
        """Return the first of these columns that the file has; raises `DataError` if it has none."""
        if found := next((name for name in names if name in self.columns), None):
            return found
        raise _no_column(self.path, self.columns, names, " or ")


def read_rows(path: str, required: Sequence[str]) -> list[Row]:
    """Return the records of a file, in order, at least one; see `read_table`."""
    table = read_table(path, required)
    if not table.rows:
        raise DataError(f"{path}: the file has a header but no rows.", code="data.no-rows")
    return table.rows


def read_table(path: str, required: Sequence[str] = ()) -> Table:
    """Read a UTF-8 CSV file with a header; a byte-order mark is accepted.

    Args:
        path: The file. Blank lines in it are skipped.
        required: Columns it must have; others are kept too.

    Raises:
        DataError: The file is missing, unreadable, not UTF-8, or not well-formed CSV with commas; a column is missing
            or occurs twice.
    """
    raw = read_bytes(path)
    records = _records(path, decode(path, raw))
    _, header = next(records, (1, []))
    _check_header(path, header, required)
    rows = [Row(path, line, _cells(path, line, header, record)) for line, record in records]
    return Table(path, hashlib.sha256(raw).hexdigest(), tuple(header), rows)


def read_bytes(path: str) -> bytes:
    """Return the content of a file; raises `DataError`."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"no such file: {path!r}. Check the path.", code="file.missing", path=path) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read {path!r}: {getattr(error, 'strerror', None) or error}.", code="file.unreadable", path=path
        ) from None


def decode(path: str, raw: bytes) -> str:
    """Return the text of a file in UTF-8, with or without a byte-order mark; raises `DataError` with the line."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from after the byte-order mark, an editor from the start of the file.
        at = error.start + len(raw) - len(error.object)
        line = raw.count(b"\n", 0, at) + 1
        problem = f"byte {at} (0x{raw[at]:02x}) is not UTF-8. Save the file as UTF-8."
        raise DataError(f"{path}, line {line}: {problem}", code="file.encoding", path=path, line=line) from None


def _records(path: str, text: str) -> Iterator[tuple[int, list[str]]]:
    reader, start = csv.reader(io.StringIO(text, newline=""), strict=True), 1
    try:
        for record in reader:
            if record:
                yield start, record
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {start}: not well-formed CSV ({error}). Check the quotes of this row.",
            code="data.syntax",
            path=path,
            line=start,
        ) from None


def _check_header(path: str, header: Sequence[str], required: Sequence[str]) -> None:
    if not header:
        wanted = f" with: {', '.join(required)}" if required else ""
        raise DataError(f"{path}: the file is empty. It needs a header{wanted}.", code="data.no-rows")
    for separator, name in SEPARATORS.items():
        if len(header) == 1 and separator in header[0]:
            raise DataError(f"{path}: its columns are separated by {name}. Save it with commas.", code="data.separator")
    missing = [name for name in required if name not in header]
    if missing:
        raise _no_column(path, header, missing, ", ")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(
            f"{path}: column {twice[0]!r} appears twice in the header. Rename or remove one.", code="data.column-twice"
        )


def _no_column(path: str, header: Sequence[str], missing: Sequence[str], between: str) -> DataError:
    named, has = between.join(_near(name, header) for name in missing), ", ".join(map(repr, header))
    message = f"{path}: no column {named}. It has: {has}."
    return DataError(message, code="data.column-missing", path=path, column=missing[0])


def _near(name: str, header: Sequence[str]) -> str:
    by_lower = {column.strip().lower(): column for column in header}
    near = difflib.get_close_matches(name, list(by_lower), n=1, cutoff=0.7)
    return f"{name!r} (is {by_lower[near[0]]!r} meant?)" if near else repr(name)


def _cells(path: str, line: int, header: Sequence[str], record: Sequence[str]) -> dict[str, str]:
    if len(record) != len(header):
        problem = f"{len(record)} cells, but the header names {len(header)}. Quote cells that contain a comma."
        raise DataError(f"{path}, line {line}: {problem}", code="data.row-length", path=path, line=line)
    return dict(zip(header, record, strict=True))
