"""Strict reader of CSV files: an error states the line, the value, and the fix.

The encoding (UTF-8, UTF-16) and the separator of columns are found; cells are kept as written.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from .errors import DataError
from .inputs import file_bytes

SEPARATORS = ",;\t|"
"""Separators of columns; a file has the one that gives its header the most columns."""
MOST_COLUMNS = 10_000
"""Columns of the widest table that is read."""
MOST_HEADER = 1 << 20
"""Characters in which the separator is looked for."""
MOST_CELL = csv.field_size_limit()
"""Characters of the longest cell."""
SHOWN_COLUMNS = 40
"""Columns that a message lists."""
OTHERS = {
    b"PK\x03\x04": "a zip archive, as an Excel workbook is",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "compressed with gzip",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
}
"""Files that are no text, by their first bytes; an error names the one that was given."""


class Row(msgspec.Struct, frozen=True):
    """One record of a file. Cells are kept exactly as written."""

    path: str
    line: int
    """Line on which the record starts; the header is line 1."""
    cells: dict[str, str]

    def fault(self, problem: str, code: str, **fields: object) -> DataError:
        """Return an error that names this row, with further fields."""
        where = {"path": self.path, "line": self.line}
        return DataError(f"{self.path}, line {self.line}: {problem}", code=code, **where, **fields)

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
            raise self.fault(f"unknown {column} {cell!r}. {mend}", "data.unknown-value", known=tuple(known))
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


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a CSV file with these columns; cells of other columns are left out."""
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


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
    """Read a CSV file with a header, in UTF-8 or UTF-16; its columns may also be separated by `;`, tabs or `|`.

    Args:
        path: The file. Blank lines in it are skipped, and lines with only empty cells.
        required: Columns it must have; others are kept too.

    Raises:
        DataError: The file is missing, unreadable, no text, or not well-formed CSV; a column is missing or occurs
            twice.
    """
    return table_of(path, read_bytes(path), required)


def table_of(path: str, raw: bytes, required: Sequence[str] = ()) -> Table:
    """Return the records of a file with this content; see `read_table`."""
    text = decode(path, raw)
    records = _records(path, text, _separator(text))
    _, header = next(records, (1, []))
    while header and not header[-1].strip():
        header.pop()
    _check_header(path, header, required)
    rows = [Row(path, line, _cells(path, line, header, record)) for line, record in records]
    return Table(path, hashlib.sha256(raw).hexdigest(), tuple(header), rows)


def read_bytes(path: str) -> bytes:
    """Return the content of a file; raises `DataError`."""
    try:
        return file_bytes(path)
    except FileNotFoundError:
        raise DataError(f"no such file: {path!r}. Check the path.", code="file.missing", path=path) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read {path!r}: {getattr(error, 'strerror', None) or error}.", code="file.unreadable", path=path
        ) from None


def decode(path: str, raw: bytes) -> str:
    """Return the text of a file in UTF-8 or UTF-16, with or without a byte-order mark.

    Raises:
        DataError: it is no text, or in another encoding; with the line.
    """
    if found := next((what for start, what in OTHERS.items() if raw.startswith(start)), None):
        raise DataError(f"{path} is {found}. Save it as CSV, JSON or JSON Lines.", code="file.format", path=path)
    try:
        text = raw.decode(_encoding(raw))
    except UnicodeDecodeError as error:
        # The codec counts from after the byte-order mark, an editor from the start of the file.
        at = error.start + len(raw) - len(error.object)
        line = raw.count(b"\n", 0, at) + 1
        problem = f"byte {at} (0x{raw[at]:02x}) is not {error.encoding.upper()}. Save the file as UTF-8."
        raise DataError(f"{path}, line {line}: {problem}", code="file.encoding", path=path, line=line) from None

    if (nul := text.find("\0")) >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(
            f"{path}, line {line}: a NUL character, which no text has. Save the file as UTF-8.",
            code="file.encoding",
            path=path,
            line=line,
        )
    return text


def _encoding(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # The header of a table is ASCII, of which UTF-16 makes every second byte zero.
    if len(raw) > 1 and 0 in raw[:2]:
        return "utf-16-le" if raw[1] == 0 else "utf-16-be"
    return "utf-8-sig"


def _separator(text: str) -> str:
    """Return the separator that gives the header the most columns: a comma, unless another gives more."""
    # A header has a bounded number of columns, so its beginning tells the separator.
    text = text[:MOST_HEADER]

    def columns(separator: str) -> tuple[bool, int]:
        try:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            header = next((row for row in rows if row), [])
        except csv.Error:
            return False, 0
        # A quote is left within a name where the header was cut inside a quoted name.
        return not any('"' in name for name in header), len(header)

    return max(SEPARATORS, key=columns)


def _records(path: str, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader, start = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator), 1
    try:
        for record in reader:
            if len(record) == 1 or any(cell.strip() for cell in record):
                yield start, record
            start = reader.line_num + 1
    except csv.Error as error:
        if "field limit" in str(error):
            raise DataError(
                f"{path}, line {start}: a cell of more than {MOST_CELL:,} characters. Is a quote not closed?",
                code="data.cell-length",
                path=path,
                line=start,
            ) from None
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
    if len(header) > MOST_COLUMNS:
        raise DataError(
            f"{path}: the header has {len(header):,} columns; at most {MOST_COLUMNS:,} are read.",
            code="data.columns",
            path=path,
        )
    missing = [name for name in required if name not in header]
    if missing:
        raise _no_column(path, header, missing, ", ")
    twice = sorted(name for name, times in Counter(header).items() if times > 1)
    if twice:
        raise DataError(
            f"{path}: column {twice[0]!r} appears twice in the header. Rename or remove one.", code="data.column-twice"
        )


def _no_column(path: str, header: Sequence[str], missing: Sequence[str], between: str) -> DataError:
    named, has = between.join(_near(name, header) for name in missing), ", ".join(map(repr, header[:SHOWN_COLUMNS]))
    has += f" and {len(header) - SHOWN_COLUMNS:,} more" if len(header) > SHOWN_COLUMNS else ""
    message = f"{path}: no column {named}. It has: {has}."
    return DataError(message, code="data.column-missing", path=path, column=missing[0])


def _near(name: str, header: Sequence[str]) -> str:
    by_lower = {column.strip().lower(): column for column in header}
    near = difflib.get_close_matches(name, list(by_lower), n=1, cutoff=0.7)
    return f"{name!r} (is {by_lower[near[0]]!r} meant?)" if near else repr(name)


def _cells(path: str, line: int, header: Sequence[str], record: Sequence[str]) -> dict[str, str]:
    while len(record) > len(header) and not record[-1].strip():
        record = record[:-1]
    if len(record) != len(header):
        problem = f"{len(record)} cells, but the header names {len(header)}. Quote cells that contain the separator."
        raise DataError(f"{path}, line {line}: {problem}", code="data.row-length", path=path, line=line)
    return dict(zip(header, record, strict=True))
