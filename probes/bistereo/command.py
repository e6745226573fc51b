"""`prejudge tuples`: drafted tuples as annotation sheets, and annotated sheets as data of `bistereo-tuples`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ...core.catalogue.study import Catalogue
from ...core.cli.shared import registry_option, run_argument, store_option
from ...core.contracts.errors import UsageError
from ...core.report.export import write_bytes
from ...core.scoring.score import score
from ...core.store import Store

# Named, not imported: the core does not know its plugins.
SHEETS, AGREEMENT = "prejudge.probes.bistereo.tuples_sheet", "prejudge.metrics.bistereo.tuples_agreement"
PROBE = "bistereo-tuples-draft"


@click.group()
def tuples() -> None:
    """Make annotation sheets of the tuples that a model drafted, and tuples of the sheets that people filled in.

    First `prejudge run bistereo-tuples-draft --model NAME`, then `tuples sheet`; when the sheets are filled in,
    `tuples agree`, and `prejudge run bistereo-tuples --data FILE`.
    """


@tuples.command()
@run_argument
@click.option("--out", default="sheet.csv", show_default=True, metavar="FILE", help="The file to write.")
@click.option("--seed", default=0, show_default=True, help="Seed of the order of the rows.")
@store_option
@registry_option
def sheet(name: str, out: str, seed: int, store: str, registry: str | None) -> None:
    """Write the tuples that the run NAME (default: the latest) drafted as an annotation sheet.

    Every annotator fills in a copy: 1 in the column `stereotype` where the tuple is a stereotype, 0 where it is none,
    nothing where they cannot say. `opposite` and `standing` are for whoever makes the study.
    """
    with Store(store, writable=False) as opened:
        scores = score(Catalogue.load(registry), opened, name)
    if scores.manifest.study.probe != PROBE:
        raise UsageError(
            f"the run {scores.run.name} drafted no tuples. Name a run of the study {PROBE}.", code="run.other-study"
        )
    sheets: Any = import_module(SHEETS)
    rows = sheets.draft_rows(row for row in scores.last.iter_rows(named=True) if row["status"] == "ok")
    _write_new(sheets.sheet_text(rows, seed), out)
    click.echo(f"{len(rows)} tuples. Give every annotator a copy, then: prejudge tuples agree COPY...")


@tuples.command()
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET...")
@click.option("--least", default=2, show_default=True, type=click.IntRange(min=0), help="Annotators who must agree.")
@click.option("--out", default="tuples.csv", show_default=True, metavar="FILE", help="The file of tuples to write.")
def agree(sheets: tuple[str, ...], least: int, out: str) -> None:
    """State how far annotators agree, and write the tuples that at least --least of them call stereotypes.

    Each SHEET is the copy of one annotator, who is named by the file, or by a column `annotator`.
    """
    reading: Any = import_module(SHEETS)
    annotated = reading.read_sheets(sheets)
    for line in import_module(AGREEMENT).tuple_agreement(reading.long_ratings(annotated)).lines():
        click.echo(line)
    _write_new(reading.tuples_text(annotated, least), out)
    for line in reading.advice(annotated, least):
        click.echo(line)


def _write_new(text: str, out: str) -> None:
    """Write a file that is not there yet: a sheet may be hours of somebody's work."""
    if Path(out).exists():
        raise UsageError(
            f"{out!r} is there already. Name another file with --out, or move it away.", code="file.exists"
        )
    click.echo(f"Written: {write_bytes(text.encode(), Path(out))}")
