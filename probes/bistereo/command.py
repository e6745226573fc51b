"""`prejudge study tuples`: drafted tuples as annotation sheets, and annotated sheets as data of `bistereo-tuples`."""

from __future__ import annotations

import click

from ... import Settings, observe
from ...core.cli.console import echo, registry_option, run_argument, store_option, write_new
from ...core.contracts.errors import UsageError
from ...core.tables import csv_text
from .tuples_agreement import tuple_agreement
from .tuples_columns import complete as complete_rows
from .tuples_columns import without
from .tuples_file import COLUMNS, read_tuples, tidy_rows
from .tuples_sheet import advice, draft_rows, long_ratings, read_sheets, sheet_text, tuples_text
from .tuples_tests import build

PROBE = "bistereo-tuples-draft"
PARTS = ("descriptor", "term", "attribute")


@click.group()
def tuples() -> None:
    """Write and read annotation sheets for tuples that a model drafted, and draft missing columns of a file of tuples.

    First run `prejudge run bistereo-tuples-draft --model NAME`, then `tuples sheet`. When the sheets are completed, run
    `tuples agree`, and then `prejudge run bistereo-tuples --data FILE`.
    """


@tuples.command()
@run_argument
@click.option("--out", default="sheet.csv", show_default=True, metavar="FILE", help="The file to write.")
@click.option("--seed", default=0, show_default=True, help="Seed of the order of the rows.")
@store_option
@registry_option
def sheet(name: str, out: str, seed: int, store: str, registry: str | None) -> None:
    """Write the tuples that the run NAME (default: the latest) drafted as an annotation sheet.

    Every annotator completes a copy. The column `stereotype` is 1 if the tuple is a stereotype, 0 if it is not, and
    empty if the annotator cannot decide. The author of the study completes `opposite` and `standing`.
    """
    found = observe(name, Settings(store=store, registry=registry))
    if found.study.probe != PROBE:
        raise UsageError(
            f"the run {found.run} has no drafted tuples. Name a run of the study {PROBE}.", code="run.other-study"
        )
    rows = draft_rows(row for row in found.last.iter_rows(named=True) if row["status"] == "ok")
    write_new(sheet_text(rows, seed), out)
    echo(f"{len(rows)} tuples. Give every annotator a copy, then: prejudge study tuples agree COPY...")


@tuples.command()
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET...")
@click.option(
    "--least",
    default=2,
    show_default=True,
    type=click.IntRange(min=0),
    help="Minimum number of annotators who must agree.",
)
@click.option("--out", default="tuples.csv", show_default=True, metavar="FILE", help="The file of tuples to write.")
def agree(sheets: tuple[str, ...], least: int, out: str) -> None:
    """Report the agreement of annotators, and write the tuples that at least --least of them call stereotypes.

    Each SHEET is the copy of one annotator; the name of the file, or the column `annotator`, names the annotator.
    """
    annotated = read_sheets(sheets)
    for line in tuple_agreement(long_ratings(annotated)).lines():
        echo(line)
    write_new(tuples_text(annotated, least), out)
    for line in advice(annotated, least):
        echo(line)


@tuples.command()
@click.argument("file", metavar="FILE")
@click.option("--out", default="tuples.csv", show_default=True, metavar="OUT", help="The file of tuples to write.")
def complete(file: str, out: str) -> None:
    """Draft the columns of FILE that analogy tests need, such as `standing` and `opposite`, for a person to check.

    FILE has at least the columns `descriptor`, `term` and `attribute`. Cells that are not empty stay. In OUT, the
    column `drafted` names the drafted cells of each row: correct them, then empty it.
    """
    read_tuples(file)  # a row that cannot be used is named before anything is written
    rows = complete_rows(tidy_rows(file))
    more = [name for name in rows[0] if name not in COLUMNS and name != "drafted"]
    write_new(csv_text((*COLUMNS, *more, "drafted"), rows), out)
    drafted = [name for cells in rows for name in cells["drafted"].split()]
    for column, empty in without(rows).items():
        such = f", such as ({', '.join(empty[0][part] for part in PARTS)})" if empty else ""
        echo(f"{column}: {drafted.count(column)} of {len(rows)} drafted, {len(empty)} missing{such}")
    tests = build(read_tuples(out), 0, unscored=True).where({"validated": [True]})
    echo(f"With these drafts the tuples make {len(tests)} analogy tests, whatever their scores.")
    echo(f"Check each cell that `drafted` names, then: prejudge plan bistereo-tuples --data {out}")
