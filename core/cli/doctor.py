"""`prejudge doctor`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click
from rich.table import Table

from ..adapter import OPERATIONS, ModelAdapter
from ..doctor import Check, examine
from ..records import Request
from ..store import Store
from ..study import Catalogue
from .results import terminal
from .shared import registry_option

BY_NAME = {name: operation for operation, name in OPERATIONS.items()}
MARKS = {"pass": "pass", "fail": "FAIL", "skip": "-"}


@click.command()
@click.argument("model")
@click.option(
    "--operation",
    "operations",
    multiple=True,
    type=click.Choice(sorted(BY_NAME)),
    help="Try this operation only. Repeatable. Default: what the model offers.",
)
@registry_option
def doctor(model: str, operations: tuple[str, ...], registry: str | None) -> int:
    """Ask MODEL a few questions with known answers, before money is spent. Exit code 1 if one fails.

    Nothing of it goes into your store.
    """
    checks = asyncio.run(_examine(Catalogue.load(registry).adapter(model), [BY_NAME[name] for name in operations]))
    table = Table(title=f"doctor: {model}", title_justify="left")
    for name in ("check", "", "what was seen"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(check.name, MARKS[check.verdict], check.detail)
    terminal().print(table)
    return 1 if any(check.verdict == "fail" for check in checks) else 0


async def _examine(adapter: ModelAdapter, operations: list[type[Request]]) -> list[Check]:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "doctor.db") as store:
        adapter.blobs, adapter.keep = store.blob, store.keep
        try:
            return await examine(adapter, operations)
        finally:
            await adapter.aclose()
