"""`prejudge lab converge`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.constructs import find_construct
from ..catalogue.study import Catalogue
from ..contracts.errors import BudgetError, HaltedError, UnsupportedOperationError, UsageError
from ..contracts.options import parse_assignments
from ..contracts.words import UNDEFINED, interval, number, p_value
from ..engine.ending import PENDING, SPENT
from ..engine.plan import StagePlan
from ..engine.roles import ensure_ready
from ..engine.runs import RunOptions
from ..engine.varying import SharedBudget
from ..lab.converge import Case, Convergence, Judged, cases_of, write_convergence
from ..lab.converge import converge as judge
from ..lab.converge.cases import OF_THE_METHOD
from ..lab.converge.words import across_words, certificates, conclusion, verdict_words
from ..report.output import ensure_writable
from ..store import Store
from ..store.urls import hide_password
from .completing import complete_construct, complete_run
from .outlet import echo
from .plan import planned
from .run import ask, read_run_options
from .shared import (
    budget_options,
    ensure_there,
    fault_options,
    many_models_option,
    progress_option,
    quiet_option,
    registry_option,
    runs_option,
    split_models,
    store_option,
    workers_options,
)
from .terminal import terminal


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="CONSTRUCT [CONSTRUCT...]", shell_complete=complete_construct)
@many_models_option
@click.option(
    "--from-run",
    "found",
    multiple=True,
    metavar="RUN",
    shell_complete=complete_run,
    help="Use this run, of any of the methods, instead of asking. Repeatable; without --model nothing is asked.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Only count what would be asked, and say what cannot be.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="METHOD.NAME=VALUE",
    help="Set an option of a method's probe (forced-choice.per_cell=60) or metric. Repeatable.",
)
@budget_options
@workers_options
@fault_options
@store_option
@runs_option
@registry_option
@progress_option
@quiet_option
def converge(
    names: tuple[str, ...],
    models: tuple[str, ...],
    found: tuple[str, ...],
    only_plan: bool,
    assignments: tuple[str, ...],
    **where: Any,
) -> int:
    """Measure each CONSTRUCT on models by every method that they can answer, and judge whether the methods agree.

    A CONSTRUCT is a name of `prejudge list constructs`, or a construct file. All methods and models share one budget.
    """
    if not models and not found:
        raise UsageError("name what to measure: --model NAME, or runs of it: --from-run RUN.", code="converge.nothing")
    catalogue = Catalogue.load(where["registry"])
    constructs = [find_construct(name, catalogue.plugins.constructs) for name in names]
    subjects, roles = split_models(models)
    cases = cases_of(catalogue, constructs, subjects, roles, parse_assignments(assignments))
    if only_plan:
        _show_plan(catalogue, cases, where["store"])
        return 0
    ensure_writable(Path(where["runs"]))
    if found and not subjects:
        ensure_there(where["store"])
    command = hide_password(shlex.join(["prejudge", *sys.argv[1:]]))
    code, cases, asked = ask_all(catalogue, cases, read_run_options(where, command=command), where)
    if code:
        return code
    with Store(where["store"], writable=False) as store:
        done = judge(catalogue, store, constructs, cases, asked, found)
    return show(done, write_convergence(done, Path(where["runs"])))


def ask_all(
    catalogue: Catalogue, cases: Sequence[Case], options: RunOptions, where: Mapping[str, Any]
) -> tuple[int, list[Case], list[str | None]]:
    """Run every case within one budget; return the exit code, the cases, and their runs.

    A case whose answers all fail or cannot be read is no reason to ask no other: it says why in `reason`.
    """
    asyncio.run(ensure_ready(catalogue, (case.study for case in cases if case.study is not None)))
    shared, done, runs = SharedBudget(options.caps), list[Case](), list[str | None]()
    left = sum(case.study is not None for case in cases)
    for case in cases:
        name = None
        if case.study is not None:
            if not where["quiet"]:
                echo(f"{case.model}: {case.name} ({case.study.name}), {left} to go", err=True)
            left -= 1
            try:
                code, name = ask(catalogue, case.study, options, where, shared.budget())
            except BudgetError as spent:
                echo(f"prejudge: {spent}", err=True)
                code = SPENT
            except (HaltedError, UnsupportedOperationError) as error:
                if error.code not in OF_THE_METHOD:
                    raise
                code, case = 0, case.failed(str(error))
            if code in (SPENT, PENDING):
                again = "The same command continues: stored answers are not asked again, and cost nothing."
                echo(f"{len(runs)} of {len(cases)} methods are done. {again}", err=True)
                return code, [], []
        done.append(case)
        runs.append(name)
    return 0, done, runs


def show(found: Convergence, page: Path) -> int:
    """Print notes, a table per construct and model, the conclusions and the page; return 1 if nothing has a value."""
    console = terminal()
    for note in found.notes:
        console.print(f"Note: {note}")
    for judged in found.judged:
        console.print(f"{judged.model}: {found.named(judged.construct).title}", style="bold")
        console.print(_table(found, judged))
        console.print(conclusion(found, judged))
        console.print()
    if found.matrix is not None:
        console.print(across_words(found.matrix))
    if said := certificates(found):
        console.print(said)
    console.print(f"Report: {page}", soft_wrap=True)
    return 0 if found.answered else 1


def _table(found: Convergence, judged: Judged) -> Table:
    table = Table(
        caption="dominance: -1 to 1, 0 is neutral; p: of the row, not corrected",
        caption_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("method")
    for head in ("dominance", "interval", "n", "p"):
        table.add_column(head, justify="right")
    table.add_column("verdict, or what it lacks", overflow="fold")
    for e in judged.evidence:
        placed = e.placed
        about = "~" if placed is not None and placed.approximate else ""
        table.add_row(
            e.method,
            f"{about}{number(placed.value)}" if placed else UNDEFINED,
            interval(placed.low, placed.high) if placed else UNDEFINED,
            str(e.n or UNDEFINED),
            p_value(e.p),
            "; ".join(filter(None, [verdict_words(e), e.lacking])),
        )
    return table


def _show_plan(catalogue: Catalogue, cases: Sequence[Case], store: str) -> None:
    """Print what every method would ask, and the sums."""
    table = Table(box=SIMPLE_HEAD)
    for head in ("model", "method", "study"):
        table.add_column(head)
    for head in ("trials", "cached", "to ask", "tokens", "cost (USD)"):
        table.add_column(head, justify="right")
    stages = [(case, stage) for case in cases if case.study for stage in planned(catalogue, case.study, store)]
    for case, stage in stages:
        assert case.study is not None
        table.add_row(case.model, case.name, case.study.name, *_counts([stage]))
    table.add_section()
    table.add_row("total", "", "", *_counts([stage for _, stage in stages]))
    terminal().print(table)
    for case in cases:
        if case.study is None:
            echo(f"{case.model} cannot answer {case.name}: {case.reason}")
    for case, stage in stages:
        for name, role in stage.later:
            echo(f"{case.model}, {case.name}: stage {name} ({role}) follows; its requests depend on these answers.")


def _counts(stages: Sequence[StagePlan]) -> list[str]:
    cached = [stage.cached for stage in stages]
    costs = [stage.cost for stage in stages]
    tokens = sum(stage.input_tokens + stage.output_tokens for stage in stages)
    return [
        f"{sum(stage.trials for stage in stages):,}",
        UNDEFINED if None in cached else f"{sum(one or 0 for one in cached):,}",
        f"{sum(stage.requests for stage in stages):,}",
        f"~{tokens:,.0f}",
        "no price known" if None in costs else f"~{sum(one or 0 for one in costs):,.4f}",
    ]
