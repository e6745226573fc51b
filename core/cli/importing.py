"""`prejudge import`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, get_args

import click

from ..catalogue.study import Catalogue
from ..importing.imported import ImportOptions, import_answers
from ..importing.settling import Disagreeing, Duplicates
from ..report.output import ensure_writable
from ..store import Store
from ..store.urls import hide_password
from ..tables.faults import BadRows
from ..tables.names import parse_columns
from .results import finish
from .shared import (
    data_option,
    orders_option,
    read_assignments,
    registry_option,
    runs_option,
    set_option,
    store_option,
    study_argument,
)
from .table_options import BAD_ROWS_HELP, ENCODING_HELP


@click.command("import")
@study_argument
@click.option(
    "--responses",
    "paths",
    required=True,
    multiple=True,
    metavar="FILE",
    help="One answer per row: CSV, JSON, JSON Lines, Parquet, xlsx, or a log of inspect_ai (.json). Repeatable.",
)
@click.option("--model", required=True, metavar="NAME", help="The name of the model that gave the answers.")
@click.option(
    "--columns",
    multiple=True,
    metavar="FIELD=COLUMN,...",
    help="The columns of fields with other names, or paths in them: response=resps.0.0,scenario=Scenario. Repeatable.",
)
@click.option("--allow-unmatched", is_flag=True, default=None, help="Skip rows that do not match exactly one trial.")
@click.option(
    "--duplicates",
    type=click.Choice(get_args(Duplicates)),
    help="Several answers to one question: which one counts; `all` counts each. `refuse` (default; with --bad-rows "
    "skip: `first`) allows them only if they are the same.",
)
@click.option(
    "--disagreeing",
    type=click.Choice(get_args(Disagreeing)),
    help="Rows whose other columns contradict the data: keep them as they state it, drop them (default with --bad-rows "
    "skip), or refuse the file.",
)
@click.option(
    "--bad-rows", type=click.Choice(get_args(BadRows)), default="refuse", show_default=True, help=BAD_ROWS_HELP
)
@click.option("--encoding", default="", metavar="NAME", help=ENCODING_HELP)
@data_option
@orders_option
@set_option
@store_option
@runs_option
@registry_option
def import_responses(
    study: str,
    paths: tuple[str, ...],
    columns: tuple[str, ...],
    assignments: tuple[str, ...],
    allow_unmatched: bool | None,
    duplicates: Duplicates | None,
    disagreeing: Disagreeing | None,
    **where: Any,
) -> int:
    """Import answers to STUDY that somebody else collected as a run, and score it."""
    catalogue = Catalogue.load(where["registry"])
    # A row of the study's file that cannot be used is treated as one of the answers.
    skip = "skip" if where["data"] is not None and where["bad_rows"] == "skip" else None
    values = read_assignments(assignments, where["data"], orders=where["orders"], bad_rows=skip)
    chosen = catalogue.study(study, {}, values)
    options = ImportOptions(
        paths=paths,
        model=where["model"],
        columns=parse_columns(columns),
        allow_unmatched=allow_unmatched,
        duplicates=duplicates,
        disagreeing=disagreeing,
        bad_rows=where["bad_rows"],
        encoding=where["encoding"],
        command=hide_password(shlex.join(["prejudge", *sys.argv[1:]])),
    )
    ensure_writable(Path(where["runs"]))
    with Store(where["store"], later=True) as store:
        return finish(catalogue, store, import_answers(catalogue, chosen, store, options), where["runs"])
