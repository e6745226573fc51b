"""Tables of separated columns; the separator is looked for, or stated by a first line such as `sep=;`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ..contracts.errors import DataError
from .faults import RowError, RowPlace, row_error
from .names import folded_name

SEPARATORS = (",", ";", "\t", "|", "^", "~", "\x1f", "\x01")
"""Separators of columns; a file has the one that gives its header the most columns, wanted ones first."""
USUAL = 4
"""Number of separators that need no wanted column to be chosen."""
MOST_COLUMNS = 10_000
"""Columns of the widest table that is read."""
MOST_HEADER = 1 << 20
"""Characters in which the separator is looked for."""
MOST_CELL = csv.field_size_limit()
"""Characters of the longest cell."""
_STATED = re.compile(r'\s*"?sep=(.)"?[ \t,;]*(?:\r\n|\r|\n|$)', re.IGNORECASE)
"""The first line by which Excel knows the separator."""


class Delimited(NamedTuple):
    """The records of a file, and those that do not go with its header."""

    header: tuple[str, ...]
    records: list[tuple[int, dict[str, str]]]
    """Cells by column, with the line that each starts on."""
    faults: list[RowError]


def read_delimited(path: str, text: str, wanted: Collection[str]) -> Delimited:
    """Return the records of a file with a header; blank lines are skipped, and lines with only empty cells.

    Args:
        path: The file, for errors.
        text: Its content.
        wanted: Columns that it may have, which tell its separator.

    Raises:
        DataError: it is empty, or its quotes are not closed.
    """
    stated = _STATED.match(text)
    body = text[stated.end() :] if stated else text
    separator = stated[1] if stated else _separator(body, wanted)
    lines = _records(path, body, separator, 1 + bool(stated))
    _, header = next(lines, (1, []))
    header = [name.strip() for name in header]
    while header and not header[-1]:
        header.pop()
    _check_header(path, header, wanted)
    records, faults = [], []
    for line, record in lines:
        while len(record) > len(header) and not record[-1].strip():
            record = record[:-1]
        if len(record) == len(header):
            records.append((line, dict(zip(header, record, strict=True))))
        else:
            problem = f"{len(record)} cells, but the header names {len(header)}."
            mend = f"{problem} Quote cells that contain the separator {separator!r}."
            faults.append(
                row_error(RowPlace(path, "line", line), mend, "data.row-length", "another number of cells than columns")
            )
    return Delimited(tuple(header), records, faults)


def _spaced(text: str, separator: str) -> bool:
    """Return whether a blank follows every separator of the header: such blanks are no part of the cells."""
    header = next(csv.reader(io.StringIO(text[:MOST_HEADER], newline=""), delimiter=separator), [])
    return len(header) > 1 and separator.strip() != "" and all(name[:1] == " " for name in header[1:])


def _separator(text: str, wanted: Collection[str]) -> str:
    """Return the separator that gives the header the most wanted columns, then the most columns: commas first."""
    # A header has a bounded number of columns, so its beginning tells the separator.
    text = text[:MOST_HEADER]
    folded = {folded_name(name) for name in wanted}

    def columns(separator: str) -> tuple[bool, int, int]:
        try:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            header = next((row for row in rows if row), [])
        except csv.Error:
            return False, 0, 0
        here = len(folded & {folded_name(name) for name in header})
        count = len(header) if separator in SEPARATORS[:USUAL] or here > 1 else 0
        # A quote is left within a name where the header was cut inside a quoted name.
        return not any('"' in name for name in header), here, count

    return max(SEPARATORS, key=columns)


def _records(path: str, text: str, separator: str, first: int) -> Iterator[tuple[int, list[str]]]:
    spaced = _spaced(text, separator)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator, skipinitialspace=spaced)
    start = first
    try:
        for record in reader:
            if len(record) == 1 or any(cell.strip() for cell in record):
                yield start, record
            start = reader.line_num + first
    except csv.Error as error:
        problem = f"not well-formed CSV ({error}). Check the quotes of this row."
        code = "data.syntax"
        if "field limit" in str(error):
            problem, code = f"a cell of more than {MOST_CELL:,} characters. Is a quote not closed?", "data.cell-length"
        raise DataError(f"{path}, line {start}: {problem}", code=code, path=path, line=start) from None


def _check_header(path: str, header: Sequence[str], wanted: Collection[str]) -> None:
    if not header:
        needs = f" with: {', '.join(wanted)}" if wanted else ""
        raise DataError(f"{path}: the file is empty. It needs a header{needs}.", code="data.no-rows")
    if len(header) > MOST_COLUMNS:
        raise DataError(
            f"{path}: the header has {len(header):,} columns; at most {MOST_COLUMNS:,} are read.", code="data.columns"
        )
