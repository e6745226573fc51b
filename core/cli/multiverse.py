"""`prejudge multiverse`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.study import Catalogue, Study
from ..contracts.words import interval, number
from ..multiverse import Found, MultiverseOptions, conclusion, frame, write_multiverse
from ..multiverse import multiverse as analyse
from ..report.output import ensure_writable
from ..scoring.score import score
from ..store import Store
from .shared import (
    read_models,
    read_pairs,
    read_study_options,
    registry_option,
    runs_option,
    store_option,
    study_options,
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
    help="A choice and its values, the study's own first: an option, METRIC.option, role.ROLE, group.FACTOR or measure."
    " Repeatable; adds to those of the study file.",
)
@click.option("--measure", default="", help="The measure. Default: that of the study file, or of its first question.")
@click.option("--group", "groups", multiple=True, metavar="FACTOR=LEVEL", help="Its group. Repeatable.")
@store_option
@runs_option
@registry_option
def multiverse(
    study: str,
    models: tuple[str, ...],
    data: str | None,
    assignments: tuple[str, ...],
    given: tuple[str, ...],
    groups: tuple[str, ...],
    **where: Any,
) -> None:
    """Show the result of STUDY under every defensible choice, from the runs of the store.

    No model is asked: what a universe lacks is planned, and `prejudge run` asks it.
    """
    catalogue = Catalogue.load(where["registry"])
    ensure_writable(Path(where["runs"]))
    part = (where[name] for name in ("orders", "limit", "quick"))
    choices = {name: values.split(",") for name, values in read_pairs("--choice", given).items()}
    options = MultiverseOptions(measure=where["measure"], group=read_pairs("--group", groups), choices=choices)
    values = read_study_options(assignments, data, *part)
    with Store(where["store"], writable=False) as store:
        found = analyse(catalogue, store, study, read_models(models), values, options)
        page = write_multiverse(found, score(catalogue, store, found.own.run), Path(where["runs"]))
    show(found, page)


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
            f"To ask ({one.requests:,} requests, {one.universes} universes): {_command(one.study)}",
            soft_wrap=True,
        )
    console.print(f"Report: {page}", soft_wrap=True)


def _command(study: Study) -> str:
    options = {name: value for name, value in study.options.items() if name not in study.followed}
    sets = [f"{name}={','.join(map(str, v)) if isinstance(v, list | tuple) else v}" for name, v in options.items()]
    models = [word for role, model in study.roles.items() for word in ("--model", f"{role}={model}")]
    return shlex.join(["prejudge", "run", study.name, *models, *(word for one in sets for word in ("--set", one))])
