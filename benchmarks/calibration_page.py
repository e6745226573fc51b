"""The page of calibration: of long tables the ranges over what was varied; every row is in a CSV file beside it."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, str]
"""Cells by column, as they are printed; bold where a rate is not what it should be."""

RANGES = {
    "Coverage of 95 % intervals: percentile": ("clusters",),
    "Coverage of 95 % intervals: bca": ("clusters",),
    "Coverage of 95 % intervals: jackknife": ("clusters",),
    "False positives of permutation tests": ("clusters",),
    "False positives of rank tests and McNemar's": ("clusters",),
    "Power": ("clusters",),
    "The measures of TriSentBias": ("clusters",),
    "Default conclusions by study": ("study", "planted"),
}
"""Columns whose levels have a row on the page, by title of the table."""


def table(title: str, rows: Sequence[Row], page: Path | None) -> list[str]:
    """Return a table as lines of Markdown; with a page, write all rows of a long one to a file beside it."""
    by = RANGES.get(title)
    if by is None or page is None:
        return _table(rows)
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    file = page.parent / page.stem / f"{name}.csv"
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _bare(cell) for name, cell in row.items()} for row in rows)
    return [*_table(ranged(rows, by)), "", f"Least to greatest. [All {len(rows)} rows]({page.stem}/{file.name})."]


def ranged(rows: Sequence[Row], by: Sequence[str]) -> list[Row]:
    """Return a row for each level of some columns, with the range of the others that are numbers."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    numbers = [name for name in rows[0] if name not in by and all(_is_number(row[name]) for row in rows)]
    return [
        dict(zip(by, levels, strict=True)) | {name: _range([row[name] for row in those]) for name in numbers}
        for levels, those in groups.items()
    ]


def _range(cells: Sequence[str]) -> str:
    told = sorted((cell for cell in cells if cell), key=lambda cell: float(_bare(cell)))
    if not told:
        return ""
    return told[0] if _bare(told[0]) == _bare(told[-1]) else f"{told[0]} to {told[-1]}"


def _is_number(cell: str) -> bool:
    return not cell or re.fullmatch(r"-?[\d.]+(e-?\d+)?", _bare(cell)) is not None


def _bare(cell: str) -> str:
    return cell.strip("*")


def _table(rows: Sequence[Row]) -> list[str]:
    head = [f"| {' | '.join(rows[0])} |", "|" + " --- |" * len(rows[0])]
    return head + [f"| {' | '.join(row.values())} |" for row in rows]
