"""`prejudge doctor`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..catalogue.needs import ensure_roles, ensure_suitable
from ..catalogue.study import Catalogue
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import ModelAdapter, Services
from ..contracts.errors import UnsupportedOperationError, UsageError
from ..contracts.records import Request
from ..contracts.steps import step
from ..doctor.installation import Fact, look_around
from ..doctor.model import Check, examine
from ..doctor.pace import Timed
from ..doctor.studies import StudyRow, study_rows
from ..doctor.study import examine_study
from ..pictures.shown import ShownPictures
from ..store import Store
from .completing import complete_model, complete_study
from .shared import (
    data_option,
    model_option,
    read_assignments,
    read_models,
    registry_option,
    set_option,
    store_option,
)
from .steps import shown_steps
from .table_options import table_options
from .terminal import terminal

BY_NAME = {name: operation for operation, name in OPERATIONS.items()}
MARKS = {"pass": "pass", "fail": "FAIL", "skip": "-"}
TIMES = (
    "Times are those of the checks, longer requests in proportion to their tokens, answers as long as they may be. To "
    "measure: prejudge plan STUDY --time MODEL."
)


@click.command()
@click.argument("model", required=False, shell_complete=complete_model)
@click.option(
    "--operation",
    "operations",
    multiple=True,
    type=click.Choice(sorted(BY_NAME)),
    help="Check only this operation. Repeatable. Default: all operations of the model.",
)
@click.option("--study", shell_complete=complete_study, help="Check only what this study needs of its models.")
@model_option
@table_options
@data_option
@set_option
@store_option
@registry_option
def doctor(model: str | None, study: str | None, registry: str | None, **given: Any) -> int:
    """Ask MODEL a few questions with known answers, to check it before a run. Exit code 1 if a check fails.

    A last table says which studies the model can answer, with which settings, and in about what time.

    With --study, ask what that study needs, and only that: its operations, a few of its own questions, its longest
    prompt, and draws with its settings. --model [ROLE=]NAME names the models of other roles.

    Nothing is written to the store. Without MODEL, check the installation: packages, extras, devices and the store;
    exit code 1 if something must be fixed.
    """
    operations, named = given["operations"], (*((model,) if model is not None else ()), *given["models"])
    if study is not None and named and not operations:
        return _check_study(Catalogue.load(registry), study, named, given)
    if study is not None or given["models"] or given["assignments"] or given["data"]:
        raise UsageError(
            "--study needs a model and takes no --operation, and --model, --data and --set belong to it: "
            "prejudge doctor MODEL --study STUDY",
            code="options.conflict",
        )
    if model is None:
        if operations:
            raise UsageError(
                "--operation needs a model: prejudge doctor MODEL --operation NAME", code="options.conflict"
            )
        return _show_installation(look_around(Catalogue.load(registry).plugins, given["store"]))
    with shown_steps():
        return _check_model(Catalogue.load(registry), model, [BY_NAME[name] for name in operations])


def _check_model(catalogue: Catalogue, name: str, operations: list[type[Request]]) -> int:
    model = catalogue.named(name)
    with step(f"read the files of {model}"):
        adapter = catalogue.adapter(model)
    timed, checks = asyncio.run(_examine(adapter, operations))
    rows = []
    if not operations:
        with step("look which studies it can answer"):
            rows = list(study_rows(catalogue, model, timed, checks))
    code = _show(f"doctor: {model}", checks)
    if rows:
        terminal().print(_table_of(model, rows))
    return code


def _check_study(catalogue: Catalogue, name: str, models: tuple[str, ...], given: Mapping[str, Any]) -> int:
    study = catalogue.study(name, read_models(models), read_assignments(given["assignments"], given["data"]))
    instrument = catalogue.instrument(study)
    ensure_roles(study, instrument)
    try:
        ensure_suitable(catalogue, study, instrument, planned=True)
    except UnsupportedOperationError as error:
        return _show(f"doctor: {study.name}", [Check("it can answer the study", "fail", str(error))])
    with shown_steps():
        adapters = {role: catalogue.adapter(model) for role, model in study.roles.items()}
        instrument.place(adapters)
        checks = asyncio.run(_bound(list(adapters.values()), lambda: examine_study(instrument, adapters)))
    return _show(f"doctor: {study.name}", checks)


def _show(title: str, checks: list[Check]) -> int:
    """Print the checks; return 1 if one failed."""
    table = Table(title=title, title_justify="left")
    for name in ("check", "result", "details"):
        table.add_column(name, overflow="fold")
    said: dict[str, str] = {}
    for check in checks:
        # What keeps a model from answering keeps it from answering every check.
        first = said.setdefault(check.detail, check.name) if check.verdict == "fail" else check.name
        table.add_row(check.name, MARKS[check.verdict], check.detail if first == check.name else f"as of {first!r}")
    terminal().print(table)
    return 1 if any(check.verdict == "fail" for check in checks) else 0


def _show_installation(facts: list[Fact]) -> int:
    """Print the state of this installation; return 1 if something is wrong."""
    table = Table(title="doctor: this installation", title_justify="left")
    for name in ("part", "name", "details"):
        table.add_column(name, overflow="fold")
    for fact in facts:
        table.add_row(fact.part, fact.name, f"{'WRONG: ' if fact.wrong else ''}{fact.detail}")
    terminal().print(table)
    return 1 if any(fact.wrong for fact in facts) else 0


def _table_of(model: str, rows: Sequence[StudyRow]) -> Table:
    """Return which studies the model can answer."""
    table = Table(title=f"What {model} can answer", title_justify="left", caption=TIMES, caption_justify="left")
    for name in ("study", "can answer", "how, or why not", "with its defaults"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


async def _examine(adapter: ModelAdapter, operations: list[type[Request]]) -> tuple[Timed, list[Check]]:
    timed: list[Timed] = []

    async def work() -> list[Check]:
        timed.append(Timed(adapter))  # after it is bound to a store for images
        return await examine(timed[0], operations)

    checks = await _bound([adapter], work)
    return timed[0], checks


async def _bound(adapters: Sequence[ModelAdapter], work: Callable[[], Awaitable[list[Check]]]) -> list[Check]:
    """Return checks of adapters that have a store of their own for images, and close them."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "doctor.db") as store:
        for adapter in adapters:
            adapter.services = Services(blobs=ShownPictures(store.blob, store.keep).get, keep=store.keep)
        try:
            return await work()
        finally:
            for adapter in adapters:
                await adapter.aclose()
