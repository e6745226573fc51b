"""`prejudge doctor`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click
from rich.table import Table

from ..catalogue.study import Catalogue
from ..contracts.adapter import OPERATIONS, ModelAdapter, Services
from ..contracts.errors import UsageError
from ..contracts.records import Request
from ..doctor.installation import Fact, look_around
from ..doctor.model import Check, examine
from ..store import Store
from .completing import complete_model
from .shared import registry_option, store_option
from .terminal import terminal

BY_NAME = {name: operation for operation, name in OPERATIONS.items()}
MARKS = {"pass": "pass", "fail": "FAIL", "skip": "-"}


@click.command()
@click.argument("model", required=False, shell_complete=complete_model)
@click.option(
    "--operation",
    "operations",
    multiple=True,
    type=click.Choice(sorted(BY_NAME)),
    help="Check only this operation. Repeatable. Default: all operations of the model.",
)
@store_option
@registry_option
def doctor(model: str | None, operations: tuple[str, ...], store: str, registry: str | None) -> int:
    """Ask MODEL a few questions with known answers, to check it before a run. Exit code 1 if a check fails.

    Nothing is written to the store. Without MODEL, check the installation: packages, extras, devices and the store;
    exit code 1 if something must be fixed.
    """
    if model is None:
        if operations:
            raise UsageError(
                "--operation needs a model: prejudge doctor MODEL --operation NAME", code="options.conflict"
            )
        return _show_installation(look_around(Catalogue.load(registry).plugins, store))
    catalogue = Catalogue.load(registry)
    model = catalogue.named(model)
    checks = asyncio.run(_examine(catalogue.adapter(model), [BY_NAME[name] for name in operations]))
    table = Table(title=f"doctor: {model}", title_justify="left")
    for name in ("check", "result", "details"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(check.name, MARKS[check.verdict], check.detail)
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


async def _examine(adapter: ModelAdapter, operations: list[type[Request]]) -> list[Check]:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "doctor.db") as store:
        adapter.bind(Services(blobs=store.blob, keep=store.keep))
        try:
            return await examine(adapter, operations)
        finally:
            await adapter.aclose()
