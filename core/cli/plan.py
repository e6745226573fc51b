"""`prejudge plan`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ..plan import StagePlan
from ..plan import plan as plan_study
from ..store import Store
from ..study import Catalogue
from .results import terminal
from .shared import (
    data_option,
    model_option,
    read_assignments,
    read_models,
    registry_option,
    set_option,
    store_option,
)


@click.command()
@click.argument("study")
@model_option
@data_option
@set_option
@store_option
@registry_option
def plan(
    study: str,
    models: tuple[str, ...],
    data: str | None,
    assignments: tuple[str, ...],
    store: str,
    registry: str | None,
) -> None:
    """Count what STUDY would ask, cell by cell, beside the paper's counts; with a model, how much is cached."""
    catalogue = Catalogue.load(registry)
    chosen = catalogue.study(study, read_models(models), read_assignments(assignments, data))
    if models and ("://" in store or Path(store).exists()):
        with Store(store, writable=False) as opened:
            stages = plan_study(catalogue, chosen, opened)
    else:
        stages = plan_study(catalogue, chosen)
    for stage in stages:
        _show(stage)


def _show(stage: StagePlan) -> None:
    console = terminal()
    table = Table(title=f"stage {stage.stage}, asked of: {stage.role}")
    names = list(stage.cells[0].group) if stage.cells else []
    for name in names:
        table.add_column(name)
    table.add_column(f"{stage.unit}s", justify="right")
    table.add_column("paper", justify="right")
    for cell in stage.cells:
        table.add_row(*(str(cell.group[name]) for name in names), f"{cell.units:,}", _count(cell.published))
    table.add_section()
    table.add_row(*(["total"] + [""] * len(names))[: len(names)], f"{stage.units:,}", _count(stage.published_total))
    console.print(table)
    cached = "" if stage.cached is None else f", {stage.cached:,} of them cached"
    console.print(f"{stage.trials:,} requests{cached}.")


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
