"""The folder of a report that is of no single run: the page, its figures, and its tables as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl

from .content import ReportContent
from .export import Format, encode, write_bytes
from .render import write

TABLES: tuple[Format, ...] = ("parquet", "csv")


def write_folder(
    place: Path,
    content: ReportContent,
    tables: Mapping[str, pl.DataFrame],
    records: Mapping[str, object],
    more_formats: Sequence[str] = (),
) -> Path:
    """Write a page with its tables and records to a new folder, and return the path of the page.

    Args:
        place: The folder.
        content: Of the page.
        tables: By name of the file; each as Parquet and CSV.
        records: By name of the file; each as JSON.
        more_formats: Of the figures, beside SVG.

    Raises:
        UsageError: the folder cannot be written.
    """
    for name, table in tables.items():
        for kind in TABLES:
            write_bytes(encode(table, kind), place / f"{name}.{kind}")
    for name, record in records.items():
        write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2), place / f"{name}.json")
    return write(content, place, more_formats)
