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
    """Count what STUDY would ask, cell by cell, beside the paper's counts; with a model, the cached share and cost."""
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
    console.print(_spending(stage))
    for name, role in stage.later:
        console.print(f"Stage {name} ({role}) follows: what it asks depends on these answers.", markup=False)


def _spending(stage: StagePlan) -> Table:
    """Return what the stage would ask of its role, and what that costs."""
    table = Table(caption=f"tokens: {stage.basis}", caption_justify="left")
    for name in ("role", "model"):
        table.add_column(name)
    for name in ("trials", "cached", "to ask", "tokens read", "tokens written", "cost (USD)"):
        table.add_column(name, justify="right")
    table.add_row(
        stage.role,
        stage.model or "none named",
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
        return "–"
    return f"{stage.cached:,} ({stage.cached / max(1, stage.trials):.0%})"


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
