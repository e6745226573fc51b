"""`prejudge plan`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..catalogue.study import Catalogue, Study
from ..catalogue.variants import read_varied
from ..contracts.options import parse_assignments
from ..contracts.words import UNDEFINED, percent
from ..engine.plan import StagePlan
from ..engine.plan import plan as plan_study
from ..engine.timing import FIRST, time_first
from ..engine.varying import varied_studies
from ..scoring.score import score
from ..scoring.sensitivity import Assumed, Detectable, ensure_apart, smallest_effects
from ..store import Store
from ..store.urls import hide_password
from .completing import complete_model, complete_run
from .ending import ended_gently
from .outlet import echo
from .shared import (
    read_models,
    read_study_options,
    registry_option,
    store_option,
    study_options,
    vary_option,
)
from .terminal import terminal


@click.command()
@study_options
@vary_option
@click.option(
    "--time",
    "timed",
    metavar="MODEL",
    shell_complete=complete_model,
    help=f"Ask this model the first {FIRST} requests of each stage, and estimate the time of the study. The answers "
    "are stored, and the run can be resumed.",
)
@store_option
@registry_option
@click.option(
    "--pilot",
    metavar="RUN",
    shell_complete=complete_run,
    help="Estimate standard deviations and correlations from this run.",
)
@click.option(
    "--spread",
    type=click.FloatRange(min=0, min_open=True),
    help="Without a pilot: the standard deviation of a unit, for measures without limits.",
)
@click.option(
    "--icc", type=click.FloatRange(0, 1), help="Intraclass correlation within clusters, if no pilot run gives it."
)
@click.option(
    "--row-icc",
    type=click.FloatRange(0, 1),
    help="Intraclass correlation within rows (scenarios, templates), if rows and clusters are crossed.",
)
@click.option(
    "--power",
    type=click.FloatRange(0.05, 1, min_open=True, max_open=True),
    help="Power: the probability of detecting the effects.  [default: 0.8]",
)
@click.option(
    "--effect",
    "effects",
    multiple=True,
    metavar="MEASURE=SIZE",
    help="Also the number of templates, words ... that would detect this effect, if two facets are crossed.",
)
def plan(
    study: str,
    models: tuple[str, ...],
    data: str | None,
    orders: str | None,
    limit: int | None,
    quick: bool,
    assignments: tuple[str, ...],
    varied: tuple[str, ...],
    timed: str | None,
    store: str,
    registry: str | None,
    **known: Any,
) -> None:
    """Count the questions of STUDY by cell, next to the paper's counts; with --model, also stored answers and cost.

    With --pilot, --spread, --icc, --row-icc, --power or --effect: also the smallest effects that the design can detect.
    """
    known["effects"] = parse_assignments(known["effects"])
    ensure_apart(known["pilot"], known["spread"])
    catalogue = Catalogue.load(registry)
    roles = read_models((*models, *([timed] if timed else [])))
    values = read_study_options(assignments, data, orders, limit, quick)
    if varied:
        studies = varied_studies(catalogue, study, roles, read_varied(varied), values)
    else:
        studies = [catalogue.study(study, roles, values)]
    asked = any(value not in (None, {}) for value in known.values())
    for chosen in studies:
        stages = planned(catalogue, chosen, store)
        effects = _smallest(catalogue, chosen, store, **known).lines if asked else ()
        for stage in stages:
            _show(stage)
        for line in effects:
            echo(line)
        if timed is not None:
            _show_time(catalogue, chosen, store, stages[0])


def _show_time(catalogue: Catalogue, study: Study, store: str, stage: StagePlan) -> None:
    command = hide_password(shlex.join(["prejudge", *sys.argv[1:]]))
    with ended_gently(), Store(store, later=True) as opened:
        found = asyncio.run(time_first(catalogue, study, opened, stage, command))
    for line in found.lines():
        echo(line)
    if not found.whole:
        echo(f"The answers are stored: `prejudge run` uses them, or `prejudge resume {found.run}`.")


def planned(catalogue: Catalogue, study: Study, store: str) -> list[StagePlan]:
    """Return the plan of a study, with its stored answers where there is a store."""
    if study.roles and ("://" in store or Path(store).exists()):
        with Store(store, writable=False) as opened:
            return plan_study(catalogue, study, opened)
    return plan_study(catalogue, study)


def _smallest(catalogue: Catalogue, study: Study, store: str, *, pilot: str | None, **stated: Any) -> Detectable:
    """Return the smallest effects; a pilot is read from the store."""
    scores = None
    if pilot is not None:
        with Store(store, writable=False) as opened:
            scores = score(catalogue, opened, pilot)
    known = {name: value for name, value in stated.items() if value is not None}
    return smallest_effects(catalogue, study, Assumed(pilot=scores, **known))


def _show(stage: StagePlan) -> None:
    console = terminal()
    # Rich wraps a table's title at the table's width, so the heading is printed separately.
    console.print(f"Stage {stage.stage}, role {stage.role}")
    table = Table()
    names = list(stage.cells[0].group) if stage.cells else []
    for name in names:
        table.add_column(name)
    table.add_column(f"{stage.unit}s", justify="right")
    beside = any(cell.published is not None for cell in stage.cells)
    if beside:
        table.add_column("paper", justify="right")
    for cell in stage.cells:
        paper = [_count(cell.published)] if beside else []
        table.add_row(*(str(cell.group[name]) for name in names), f"{cell.units:,}", *paper)
    table.add_section()
    paper = [_count(stage.published_total)] if beside else []
    table.add_row(*(["total"] + [""] * len(names))[: len(names)], f"{stage.units:,}", *paper)
    console.print(table)
    for cell in stage.coarser:
        group = ", ".join(map(str, cell.group.values()))
        console.print(f"{group}: {cell.units:,} {stage.unit}s, {_count(cell.published)} in the paper")
    console.print(_spending(stage))
    if stage.first:
        console.print(
            f"Of these, up to {stage.first} are asked first. If they show that the model cannot do the task, the run "
            "stops with exit code 5."
        )
    if stage.canary:
        console.print(f"{stage.canary} further draws come first: they show whether the endpoint samples.")
    if stage.batch_cost is not None:
        console.print(f"In batches (prejudge run --batch): ~{stage.batch_cost:,.4f} USD.")
    if stage.attempts > 1:
        most = f"{stage.attempts} requests per trial at most, {stage.attempts * stage.requests:,} in total"
        again = ", ".join(stage.asks_again).capitalize()
        console.print(f"{again} answers are requested again: {most}.")
    for note in stage.notes:
        console.print(note)
    for name, role in stage.later:
        console.print(f"Stage {name} ({role}) follows; its requests depend on these answers.")


def _spending(stage: StagePlan) -> Table:
    """Return the rows on requests, tokens and cost of a stage."""
    table = Table(caption=f"Tokens: {stage.basis}", caption_justify="left")
    for name in ("role", "model"):
        table.add_column(name)
    for name in ("trials", "cached", "to ask", "input tokens", "output tokens", "cost (USD)"):
        table.add_column(name, justify="right")
    table.add_row(
        stage.role,
        stage.model or "none given",
        f"{stage.trials:,}",
        _cached(stage),
        f"{stage.requests:,}",
        f"~{stage.input_tokens:,.0f}",
        f"~{stage.output_tokens:,.0f}",
        "no price known" if stage.cost is None else f"~{stage.cost:,.4f}",
    )
    return table


def _cached(stage: StagePlan) -> str:
    if stage.cached is None:
        return UNDEFINED
    return f"{stage.cached:,} ({percent(stage.cached / max(1, stage.trials), 0)})"


def _count(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:,.0f}"
