"""Records of Parquet files and of workbooks, read by polars."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..contracts.errors import DataError, MissingExtraError

PARQUET = b"PAR1"
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of a workbook of Excel, of the present and of the old kind."""
ZIP = WORKBOOKS[0]
MOST_COLUMNS = 10_000


class Columnar(NamedTuple):
    """The records of a file."""

    unit: str
    """What the number of a record counts: `row`; of a workbook, as its program shows it."""
    names: tuple[str, ...]
    records: list[tuple[int, dict[str, Any]]]


def is_columnar(raw: bytes) -> bool:
    """Return whether bytes are those of a Parquet file or of a workbook."""
    return raw.startswith((PARQUET, *WORKBOOKS))


def read_columnar(path: str, raw: bytes) -> Columnar:
    """Return the records of a Parquet file, or of the first sheet of a workbook whose first row is its header.

    Raises:
        DataError: it cannot be read.
        MissingExtraError: it is a workbook, and its reader is not installed.
    """
    if raw.startswith(PARQUET):
        return _columnar(path, raw, "a Parquet file")
    if raw.startswith(ZIP) and b"xl/" not in raw:
        raise DataError(
            f"{path} is a zip archive without an Excel workbook. Unpack it: CSV, JSON or Parquet is read.",
            code="file.format",
            path=path,
        )
    if find_spec("fastexcel") is None:
        raise MissingExtraError("reading a workbook (or save it as CSV)", "tables")
    return _columnar(path, raw, "a workbook")


def _columnar(path: str, raw: bytes, kind: str) -> Columnar:
    import polars as pl

    try:
        if kind == "a Parquet file":
            frame, first = pl.read_parquet(io.BytesIO(raw)), 1
        else:
            # As text: a whole number of a workbook is a decimal number to polars.
            frame, first = pl.read_excel(io.BytesIO(raw), infer_schema_length=0), 2
        records = list(enumerate(frame.to_dicts(), start=first))
    except Exception as error:  # polars and its readers raise errors of many kinds
        problem = " ".join(str(error).split())[:200]
        raise DataError(
            f"{path} begins as {kind} does, but cannot be read: {problem}.", code="file.format", path=path
        ) from None
    if frame.width > MOST_COLUMNS:
        raise DataError(f"{path} has {frame.width:,} columns; at most {MOST_COLUMNS:,} are read.", code="data.columns")
    return Columnar("row", tuple(frame.columns), [(number, row) for number, row in records if _filled(row)])


def _filled(row: dict[str, Any]) -> bool:
    return any(cell is not None and cell != "" for cell in row.values())
