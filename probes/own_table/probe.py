"""A table of outcomes as a study: its rows are observations, and nobody is asked.

What a table cannot tell is said with its numbers: what was asked, in which order, and which outcomes were refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import polars as pl

from ...core.contracts import PROMPT_KEY, Counting, Imported, Options, Probe, Stage, Trial, Unreadable, harmless
from ...core.contracts.errors import DataError
from ...core.contracts.records import AnyResponse, Generate, Scalar
from ...core.tables import Form, Parsed, Row, TableOptions, parse_file
from .declared import table_form, usual_measures, usual_questions
from .incidence import outermost, sentences

UNKNOWN = (
    "A table does not say what was asked, in which order, or what was refused: an empty outcome counts as missing, for "
    "whatever reason."
)
YES, NO = ("1", "true", "yes"), ("0", "false", "no")
MOSTLY = 0.5
"""Outcomes are numbers if at least this share of those that are filled in are; the others could not be read."""


class OwnTableOptions(TableOptions, frozen=True, kw_only=True):
    """Columns of a table of outcomes."""

    option_effects = {"data": "file", **harmless("outcome factors sampled group positive")}

    data: str = ""
    """The file."""
    outcome: str = "outcome"
    """The column of outcomes."""
    factors: tuple[str, ...] = ()
    """The columns that rows are kept apart by."""
    sampled: tuple[str, ...] = ()
    """Those whose levels are examples of a larger population."""
    group: str = ""
    """The column whose levels are compared."""
    positive: tuple[str, ...] = ()
    """Outcomes that count as 1, all others as 0; empty: they are numbers."""


class TableStage(Stage):
    """The rows of a table. It has no trials: nobody is asked."""

    operation = Generate
    outcomes: ClassVar[tuple[str, ...]] = ("outcome", "label")

    def __init__(self, options: OwnTableOptions) -> None:
        """Take the columns of the table as factors."""
        self.factors = options.factors  # type: ignore[misc]
        about = (options.group,) if options.group else ()
        self.counting = Counting(unit="row", about=about)  # type: ignore[misc]

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield nothing."""
        return iter(())

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read nothing: rows of a table are read as they are imported."""
        return Unreadable("a table has no responses")


class OwnTable(Probe):
    """The probe of `prejudge measure`."""

    options: ClassVar[type[Options]] = OwnTableOptions

    def stages(self, options: OwnTableOptions) -> Sequence[Stage]:
        """Return the one stage."""
        return [TableStage(options)]

    def study_of_table(self, path: str, declared: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a study that measures a table.

        Args:
            path: the file.
            declared: what is said of it, as `TableForm`, and `TableOptions` of how it is read.

        Raises:
            DataError: the file cannot be used.
            UsageError: what is said of it contradicts itself.
        """
        reading = {name: declared[name] for name in TableOptions.__struct_fields__ if name in declared}
        form = table_form({name: value for name, value in declared.items() if name not in reading})
        chosen = {"outcome": form.outcome, "factors": form.factors, "sampled": form.sampled, "group": form.group}
        options = msgspec.convert(chosen | reading | {"positive": form.positive}, OwnTableOptions)
        parsed = read_table(path, options)
        positive, yes_no = form.positive, bool(form.positive)
        if not positive and not _are_numbers(parsed.values):
            positive, yes_no = _affirmative(path, form.outcome, parsed.values), True
        yes_no = yes_no or {cell.strip() for cell, _ in parsed.values} <= {"0", "1", ""}
        frame = pl.DataFrame([cells for _, cells in parsed.values], schema=dict.fromkeys(form.factors, pl.String))
        levels = list(form.between) or sorted(frame[form.group].drop_nulls().unique()) if form.group else []
        measures = {
            "measures": list(form.measures) or usual_measures(form, yes_no=yes_no),
            "within": [*dict.fromkeys([*form.sampled, *form.by, *form.within])],
            "over": outermost(frame, form.sampled),
            "independent": form.independent,
        }
        title = form.title or f"{form.outcome} in {Path(path).name}"
        return {
            "probe": "own-table",
            "title": title,
            "summary": f"{title}, by {form.group}." if form.group else f"{title}.",
            "options": msgspec.to_builtins(msgspec.structs.replace(options, positive=positive)),
            "metrics": {"measures": measures},
            "questions": [question.entry for question in form.questions] or usual_questions(form, levels),
        }

    def import_scores(self, path: str, options: Any) -> Imported:
        """Read the rows of a table as observations.

        Raises:
            DataError: the file cannot be used.
        """
        parsed = read_table(path, options)
        records = [_observation(cell, options.positive) for cell, _ in parsed.values]
        schema = {"outcome": pl.Float64, "label": pl.String, "status": pl.String, "reason": pl.String}
        frame = pl.DataFrame(records, schema=schema, orient="row")
        cells = pl.DataFrame([row for _, row in parsed.values], schema=dict.fromkeys(options.factors, pl.String))
        texts = sentences(cells, options.sampled, options.group)
        frame = pl.concat([cells.select(map(_typed, cells.get_columns())), frame], how="horizontal").with_columns(
            # Rows of one condition are repeats of one question; where nothing is sampled, no row repeats another.
            pl.Series(PROMPT_KEY, _names(parsed.values, rows=not options.sampled), dtype=pl.String),
            pl.Series("trial", _names(parsed.values), dtype=pl.String),
            key=pl.lit(None, pl.Binary),
        )
        return Imported(frame, (*parsed.notes(), *texts, UNKNOWN))


def read_table(path: str, options: OwnTableOptions) -> Parsed[tuple[str, dict[str, str | None]]]:
    """Return the outcome of each row as it is written, and its factors; an empty factor is None.

    Raises:
        DataError: the file cannot be read, has no rows, or lacks a column.
    """

    def row_of(row: Row) -> tuple[str, dict[str, str | None]]:
        return row.cells[options.outcome], {name: row.cells[name].strip() or None for name in options.factors}

    form = Form((options.outcome, *options.factors), numbers=() if options.positive else (options.outcome,))
    return parse_file(path, form, row_of, options)


Values = Sequence[tuple[str, dict[str, str | None]]]


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _are_numbers(values: Values) -> bool:
    filled = [cell for cell, _ in values if cell.strip()]
    return sum(_number(cell) is not None for cell in filled) >= MOSTLY * len(filled)


def _affirmative(path: str, outcome: str, values: Values) -> tuple[str, ...]:
    """Return which outcomes are yes, of those that are true and false, or yes and no.

    Raises:
        DataError: the outcomes are other texts, of which nobody said which count.
    """
    counts = Counter(cell.strip() for cell, _ in values if cell.strip())
    if {text.lower() for text in counts} <= {*YES, *NO}:
        return tuple(text for text in counts if text.lower() in YES) or ("yes",)
    listed = ", ".join(f"{text!r} ({count:,})" for text, count in counts.most_common(5))
    raise DataError(
        f"{path}: the outcome {outcome!r} has texts, not numbers: {listed}. Say which count: --positive "
        f"{next(iter(counts))!r}.",
        code="data.number",
        column=outcome,
    )


def _observation(cell: str, positive: Sequence[str]) -> tuple[float | None, str | None, str, str | None]:
    """Return the outcome of a row, its label, its status, and why it is missing."""
    text = cell.strip()
    if not text:
        return None, None, "absent", None
    if positive:
        return float(text in positive), text, "ok", None
    number = _number(text)
    return (number, None, "ok", None) if number is not None else (None, None, "unreadable", "no number")


def _typed(column: pl.Series) -> pl.Series:
    """Return a column of numbers as numbers."""
    numbers = column.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() < len(column) else column


def _names(values: Values, *, rows: bool = True) -> list[str]:
    """Return a name for each row: its levels and, of `rows`, which of the rows with these it is."""
    counts: Counter[str] = Counter()
    names = []
    for _, cells in values:
        name = "/".join(cell or "" for cell in cells.values())
        counts[name] += 1
        names.append(f"{name}/{counts[name]}" if rows else name)
    return names
