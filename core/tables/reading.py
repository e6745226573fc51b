"""The one reader of tables: what a file holds, the fields that a study wants, and its rows as the study reads them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ..contracts.errors import DataError
from .columnar import is_columnar, read_columnar
from .decoding import decode, read_bytes
from .delimited import read_delimited
from .documents import is_document, read_documents
from .faults import LeftOut, RepeatedRow, RowError, left_out, refusal
from .names import Path, no_column, renamed, resolve_columns
from .options import PLAIN, TableOptions
from .rows import Row
from .spelling import misspelt_levels
from .understanding import Form, understand

T = TypeVar("T")
NO_FIELDS: Mapping[str, str] = {}


class Records(NamedTuple):
    """All records of a file, values as the file has them."""

    sha256: str
    """Of the file."""
    unit: str
    """What the number of a record counts: lines of the file, records of a JSON document, or rows."""
    fields: tuple[str, ...]
    records: list[tuple[int, dict[str, Any]]]
    faults: list[RowError] = []
    """Of rows that are no records."""


class Table(msgspec.Struct, frozen=True):
    """All records of a file, cells as text."""

    path: str
    sha256: str
    """sha256 of the file (hex)."""
    columns: tuple[str, ...]
    rows: list[Row]

    def column(self, *names: str) -> str:
        """Return the first of these columns that the file has; raises `DataError` if it has none."""
        if (name := next((name for name in names if name in self.columns), None)) is not None:
            return name
        raise no_column(self.path, self.columns, names, " or ")


class Parsed(NamedTuple, Generic[T]):
    """The rows of a file as a study reads them."""

    path: str
    values: list[T]
    left_out: LeftOut
    remarks: tuple[str, ...] = ()
    """What was understood of the file that it does not say, in sentences."""

    def without(self, faults: Sequence[RowError], options: TableOptions) -> Parsed[T]:
        """Return this with rows counted as left out that are seen to be unusable only beside the others.

        Raises:
            DataError: there are some, and the rule is `refuse`, or no row would be left.
        """
        if not faults:
            return self
        usable = len(self.values) - len(faults)
        if options.bad_rows == "refuse" or not usable:
            raise refusal(self.path, self.left_out.rows, faults, skippable=bool(usable))
        reasons = Counter(self.left_out.reasons) + Counter(fault.reason for fault in faults)
        return self._replace(left_out=LeftOut(self.path, self.left_out.rows, dict(reasons)))

    def notes(self) -> tuple[str, ...]:
        """Return what a reader needs to know of the file, in sentences."""
        return tuple(filter(None, [self.left_out.sentence(), *self.remarks]))


def read_records(
    path: str, fields: Collection[str], columns: Mapping[str, str] = NO_FIELDS, encoding: str = ""
) -> Records:
    """Read the records of a file; its content tells the format.

    Args:
        path: The file: CSV with any separator, JSON, JSON Lines, Parquet, or a workbook.
        fields: Names that its columns may have, in any case, with other signs or blanks.
        columns: The column, or the path within a column, of each field that has another name.
        encoding: Of the file; empty: UTF-8 or UTF-16.

    Raises:
        DataError: the file cannot be read, does not hold records, or has no such column.
    """
    raw = read_bytes(path)
    sha256 = hashlib.sha256(raw).hexdigest()
    faults: list[RowError] = []
    unit = "line"
    names: tuple[str, ...] = ()
    if is_columnar(raw):
        unit, names, records = read_columnar(path, raw)
    elif is_document(text := decode(path, raw, encoding)):
        unit, records = read_documents(path, text, {*fields, *columns})
    else:
        names, cells, faults = read_delimited(path, text, {*fields, *columns})
        records = list(cells)
    names = names or tuple(dict.fromkeys(name for _, record in records for name in record))
    if names and len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise DataError(
            f"{path}: column {twice!r} appears twice in the header. Rename or remove one.", code="data.column-twice"
        )
    where = resolve_columns(path, names, columns, fields)
    if all(way == (field,) for field, way in where.items()):
        return Records(sha256, unit, names, records, faults)
    return Records(sha256, unit, tuple(where), _renamed(records, where), faults)


def _renamed(
    records: Iterable[tuple[int, Mapping[str, Any]]], where: Mapping[str, Path]
) -> list[tuple[int, dict[str, Any]]]:
    return [(number, renamed(record, where)) for number, record in records]


def read_rows(path: str, required: Sequence[str], optional: Collection[str] = ()) -> list[Row]:
    """Return the records of a file, in order, at least one; see `read_table`."""
    table = read_table(path, required, optional)
    if not table.rows:
        raise _no_rows(path)
    return table.rows


def read_table(
    path: str, required: Sequence[str] = (), optional: Collection[str] = (), options: TableOptions = PLAIN
) -> Table:
    """Read a file as a table of text; see `read_records`.

    Args:
        path: The file. Blank lines in it are skipped, and lines with only empty cells.
        required: Columns it must have; others are kept too.
        optional: Columns it may have, in any case or with other signs.
        options: How the file is to be understood.

    Raises:
        DataError: The file is missing, unreadable, no table; a column is missing or occurs twice.
    """
    table, faults = _load(path, Form(required, optional), options)
    if faults:
        raise refusal(path, len(table.rows) + len(faults), faults, skippable=False)
    return table


def parse_file(path: str, form: Form, convert: Callable[[Row], T], options: TableOptions | None = None) -> Parsed[T]:
    """Return what `convert` makes of each row; rows that it refuses are one error, or are left out and counted.

    Where rows have names, `convert` ends with `Repeats.check`.

    Args:
        path: The file.
        form: What is known of its columns.
        convert: Called with each row, in order; it raises `Row.fault` for a row that cannot be used.
        options: How the file is to be understood; None: of a reader that can leave no row out.

    Raises:
        DataError: the file cannot be read, or has rows that cannot be used, or none that can.
    """
    table, faults = _load(path, form, options or PLAIN)
    return parse_rows(table, form, convert, options, faults)


def parse_rows(
    table: Table,
    form: Form,
    convert: Callable[[Row], T],
    options: TableOptions | None = None,
    found: Sequence[RowError] = (),
) -> Parsed[T]:
    """Return what `convert` makes of each row of a table that was read; `found` are rows that could not be.

    Raises:
        DataError: as of `parse_file`.
    """
    path, faults = table.path, list(found)
    chosen = options or PLAIN
    rows, remarks = understand(table.rows, form)
    values: list[T] = []
    for row in rows:
        try:
            values.append(convert(row))
        except RowError as fault:
            faults.append(fault)
    total = len(values) + len(faults)
    faults.sort(key=lambda fault: int(str(fault.fields["line"])))
    unusable = [fault for fault in faults if not isinstance(fault, RepeatedRow)]
    if unusable and (chosen.bad_rows == "refuse" or not values):
        raise refusal(path, total, unusable, skippable=options is not None and bool(values))
    if not values:
        raise _no_rows(path)
    remarks += tuple(misspelt_levels(path, [row.cells for row in rows]))
    return Parsed(path, values, left_out(path, total, faults), remarks)


def _load(path: str, form: Form, options: TableOptions) -> tuple[Table, list[RowError]]:
    loaded = read_records(path, [*form.required, *form.optional], options.renamed, options.encoding)
    missing = [name for name in form.required if name not in loaded.fields]
    if missing and loaded.fields:
        raise no_column(path, loaded.fields, missing)
    codes = options.codes
    if unknown := [name for name in codes if name not in loaded.fields]:
        raise no_column(path, loaded.fields, unknown)
    rows = []
    for index, (number, record) in enumerate(loaded.records):
        cells = {name: as_text(record.get(name)) for name in loaded.fields}
        for name, meanings in codes.items():
            cells[name] = meanings.get(cells[name].strip(), cells[name])
        rows.append(Row(path, number, cells, loaded.unit, index))
    return Table(path, loaded.sha256, loaded.fields, rows), list(loaded.faults)


def as_text(value: Any) -> str:
    """Return a value of a file as the text of a cell: a whole number without decimals, lists and objects as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    return str(value)


def _no_rows(path: str) -> DataError:
    return DataError(f"{path}: the file has a header but no rows.", code="data.no-rows")
