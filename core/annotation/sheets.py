"""Labels as tables: one row per label, and completed sheets in the form that a study reads.

A sheet is a CSV file with a row per thing to label and an empty column that people fill in, such as
`prejudge study tuples sheet` writes. It becomes a sample without a design: it has no verdict, and its labels correct
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ..contracts.errors import UsageError
from ..contracts.inputs import file_bytes
from ..tables import csv_text, read_rows
from .design import Item, Sheet
from .drawing import MOST_ITEMS
from .samples import Sample, write_sample

ANNOTATOR = "annotator"
MOST_LABELS = 20


def sample_of_sheet(path: str, samples: Path, labels: Sequence[str], question: str) -> Sample:
    """Return the sample of a sheet: the one made of the same file before, or a new one.

    Raises:
        DataError: the file cannot be read.
        UsageError: it has no empty column or no row, or too many; or there are not two labels.
    """
    distinct = tuple(dict.fromkeys(filter(None, map(str.strip, labels))))
    if not 2 <= len(distinct) <= MOST_LABELS:
        raise UsageError(
            f"{len(distinct)} labels. Name 2 to {MOST_LABELS}, with commas: --labels 1,0.", code="annotation.labels"
        )
    rows = [row.cells for row in read_rows(path, ())]
    empty = [name for name in (rows[0] if rows else {}) if not any(row[name].strip() for row in rows)]
    if not empty or not len(rows) <= MOST_ITEMS:
        raise UsageError(
            f"{path!r} is no sheet to label: it has {len(rows):,} rows (at most {MOST_ITEMS:,}), and "
            f"{'an' if empty else 'no'} empty column that people could fill in.",
            code="annotation.sheet",
        )
    # The same file with the same labels is the same sample: whoever stops goes on.
    digest = hashlib.sha256(repr((file_bytes(Path(path)), distinct)).encode()).hexdigest()
    name, column = f"sheet-{digest[:12]}", empty[0]
    if (samples / name).is_dir():
        return Sample(samples / name)
    items = [
        Item(f"row{number}", tuple((k, v) for k, v in cells.items() if k not in (column, ANNOTATOR)), None)
        for number, cells in enumerate(rows)
    ]
    asked = question.strip()[:2000] or f"{column}?"
    sheet = Sheet(
        sample=name, question=asked, labels=distinct, seed=int(digest[:7], 16), items=tuple(items), column=column
    )
    return write_sample(samples, None, sheet, lambda _: b"")


def completed(sample: Sample) -> str:
    """Return the labels as a completed sheet, as CSV: a row per label, the column that is rated, and who rated.

    Of a drawn sample the column has the name of the verdict, and the others are the factors of the trial: a study whose
    judge was labelled reads it as it reads sheets. Items that look the same are one row.
    """
    sheet = sample.sheet
    column, cells = sheet.column, {item.item: dict(item.asked) for item in sheet.items}
    if not column:
        design = sample.design
        column, cells = design.verdict, {drawn.item: dict(drawn.factors) for drawn in design.items}
    names = list(
        dict.fromkeys(name for by_item in cells.values() for name in by_item if name not in (column, ANNOTATOR))
    )
    labels = sample.labels()
    rows: list[dict[str, Any]] = []
    for item in (sheet.items[group[0]].item for group in sample.same_looking):
        ratings = [(by, by_item[item].label) for by, by_item in labels.items() if item in by_item] or [("", "")]
        for by, label in ratings:
            values = {name: _cell(cells[item].get(name)) for name in names}
            rows.append({column: label, **values, ANNOTATOR: by})
    return csv_text((column, *names, ANNOTATOR), rows)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def labels_frame(sample: Sample) -> pl.DataFrame:
    """Return one row per label that counts, with how its item was drawn."""
    design = sample.design
    by_item = {drawn.item: drawn for drawn in design.items}
    rows = []
    for person, labels_of_person in sample.labels().items():
        for label in labels_of_person.values():
            drawn = by_item[label.item]
            stratum = design.strata[drawn.stratum]
            rows.append(
                {"item": label.item, "trial": drawn.trial, "key": drawn.key, "row": drawn.row, **stratum.cell}
                | {"verdict": stratum.verdict, "stratum": drawn.stratum, "stratum_size": stratum.size}
                | {"probability": drawn.probability, "person": person, "label": label.label, "note": label.note}
                | {"at": label.at}
            )
    return pl.DataFrame(rows or {"item": []}, infer_schema_length=None)
