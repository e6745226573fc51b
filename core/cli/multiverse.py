"""`prejudge lab multiverse`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.limiting import assigned
from ..catalogue.study import Catalogue, Study
from ..contracts.errors import BudgetError, DataError, UsageError
from ..contracts.words import counted, interval, number
from ..engine.ending import SPENT
from ..engine.varying import SharedBudget
from ..lab.multiverse import (
    Found,
    MultiverseOptions,
    Universe,
    conclusion,
    frame,
    priced,
    unasked,
    universes,
    write_multiverse,
)
from ..lab.multiverse import multiverse as analyse
from ..report.output import ensure_writable
from ..scoring.score import score
from ..store import Store
from ..store.urls import hide_password
from .outlet import echo
from .run import ask, read_run_options
from .shared import (
    budget_options,
    fault_options,
    progress_option,
    quiet_option,
    read_models,
    read_pairs,
    read_study_options,
    registry_option,
    runs_option,
    store_option,
    study_options,
    workers_options,
)
from .terminal import terminal

ROWS = 12
"""Universes on the terminal; the page has all."""


@click.command()
@study_options
@click.option(
    "--choice",
    "given",
    multiple=True,
    metavar="NAME=A,B",
    help="A choice and its values, the study's own first: an option, METRIC.option, role.ROLE, model.SETTING, "
    "group.FACTOR or measure. Repeatable; adds to those of the study file.",
)
@click.option("--measure", default="", help="The measure. Default: that of the study file, or of its first question.")
@click.option("--group", "groups", multiple=True, metavar="FACTOR=LEVEL", help="Its group. Repeatable.")
@click.option("--ask", "asks", is_flag=True, help="Ask what no run of the store has asked, within one budget.")
@budget_options
@workers_options
@fault_options
@store_option
@runs_option
@registry_option
@progress_option
@quiet_option
def multiverse(
    study: str,
    models: tuple[str, ...],
    data: str | None,
    assignments: tuple[str, ...],
    given: tuple[str, ...],
    groups: tuple[str, ...],
    asks: bool,
    **where: Any,
) -> int:
    """Show the result of STUDY under every defensible choice, from the runs of the store.

    What a universe lacks is planned. With --ask it is asked, the study's own choices first; where the budget is spent
    before (exit code 3), the rest is named, and the same command continues.
    """
    catalogue = Catalogue.load(where["registry"])
    ensure_writable(Path(where["runs"]))
    part = (where[name] for name in ("orders", "limit", "quick"))
    choices = {name: values.split(",") for name, values in read_pairs("--choice", given).items()}
    options = MultiverseOptions(measure=where["measure"], group=read_pairs("--group", groups), choices=choices)
    values = read_study_options(assignments, data, *part)
    if not asks and read_run_options(where).caps.any:
        raise UsageError("A budget is of what is asked. Add --ask, or leave it out.", code="options.conflict")
    every = universes(catalogue, study, read_models(models), values, options)
    code = _ask(catalogue, every, where) if asks else 0
    with Store(where["store"], writable=False) as store:
        try:
            found = analyse(catalogue, store, every)
        except DataError as error:
            if not code or error.code != "multiverse.nothing":
                raise
            echo(f"prejudge: {error}", err=True)
            return code
        page = write_multiverse(found, score(catalogue, store, found.own.run), Path(where["runs"]))
    show(found, page)
    return code


def _ask(catalogue: Catalogue, every: Sequence[Universe], where: Mapping[str, Any]) -> int:
    """Ask what no run of the store has asked; return the exit code."""
    with Store(where["store"], later=True) as store:
        missing = unasked(catalogue, store, every)
    if missing and not where["quiet"]:
        echo(f"To ask: {priced(missing)}.", err=True)
    options = read_run_options(where, command=hide_password(shlex.join(["prejudge", *sys.argv[1:]])))
    shared = SharedBudget(options.caps)
    for place, one in enumerate(missing, 1):
        if not where["quiet"]:
            echo(f"{place} of {len(missing)}: {priced([one])}: {_command(one.study)}", err=True)
        try:
            # What was begun goes on; what an earlier one asked alike is taken from the store.
            own = msgspec.structs.replace(options, name=one.run)
            code, _ = ask(catalogue, one.study, own, where, shared.budget())
        except BudgetError as spent:
            echo(f"prejudge: {spent}", err=True)
            code = SPENT
        if code:
            echo("The same command continues: stored answers are not asked again, and cost nothing.", err=True)
            return code
    return 0


def show(found: Found, page: Path) -> None:
    """Print the conclusion, the universes at both ends, what is not asked, and the page."""
    console = terminal()
    console.print(conclusion(found))
    rows = list(frame(found).iter_rows(named=True))
    kept = rows if len(rows) <= ROWS else [*rows[: ROWS // 2], *rows[-ROWS // 2 :]]
    told = f"{len(kept)} of {len(rows)} universes, by value; * has the study's own choices"
    table = Table(caption=told, caption_justify="left", box=SIMPLE_HEAD)
    for name in found.own.universe.chosen:
        table.add_column(name, overflow="fold")
    for head in ("value", "interval", "verdict"):
        table.add_column(head, justify="right")
    for row in kept:
        own = "*" if row["own"] else ""
        table.add_row(
            *(row[name] for name in found.own.universe.chosen),
            f"{number(row['value'])}{own}",
            interval(row["low"], row["high"]),
            row["verdict"],
        )
    console.print(table)
    for one in found.missing:
        console.print(
            f"To ask ({priced([one])}; {counted(one.universes, 'universe')}): {_command(one.study)}",
            soft_wrap=True,
        )
    console.print(f"Report: {page}", soft_wrap=True)


def _command(study: Study) -> str:
    options = {name: value for name, value in study.options.items() if name not in study.followed}
    sets = [assigned(name, value) for name, value in options.items()]
    models = [word for role, model in study.roles.items() for word in ("--model", f"{role}={model}")]
    part = study.limit.words.split() if study.limit is not None else []
    return shlex.join(
        ["prejudge", "run", study.name, *models, *part, *(word for one in sets for word in ("--set", one))]
    )
