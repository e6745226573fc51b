"""`prejudge cache batches`: what is with providers, and how to end it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import click
from rich.table import Table

from ..catalogue.study import Catalogue
from ..contracts.canonical import encode_identity
from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.words import counted
from ..engine.foreign import ensure_own
from ..engine.manifest import manifest_of
from ..store import Store, get_run
from ..store.batches import OPEN, Batches, BatchRow
from .outlet import echo
from .shared import ensure_there, registry_option, store_option
from .terminal import terminal


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Also show batches that were collected or lost.")
@click.option("--cancel", type=int, metavar="NUMBER", help="Cancel this batch. What was answered can be collected.")
@click.option(
    "--forget",
    type=int,
    metavar="NUMBER",
    help="Free the requests of this batch, which the provider may still answer and charge.",
)
@registry_option
@store_option
def batches(show_all: bool, cancel: int | None, forget: int | None, registry: str | None, store: str) -> None:
    """List the batches that are with providers; cancel one, or free its requests."""
    ensure_there(store)
    with Store(store, writable=cancel is not None or forget is not None) as opened:
        book = Batches(opened)
        if cancel is not None:
            _cancel(Catalogue.load(registry), opened, book, _open(book, cancel))
        elif forget is not None:
            row = _open(book, forget)
            freed = book.close(row.id, "lost", "lost", "its requests were freed by hand")
            echo(f"Batch {row.id}: {counted(len(freed), 'request')} freed. A run with --batch can ask them again.")
        else:
            _show(book, book.all(only_open=not show_all))


def _open(book: Batches, number: int) -> BatchRow:
    rows = {row.id: row for row in book.all(only_open=True)}
    if number not in rows:
        raise UnknownNameError("open batch", str(number), map(str, rows))
    return rows[number]


def _show(book: Batches, rows: list[BatchRow]) -> None:
    if not rows:
        echo("No batch is with a provider.")
        return
    table = Table("number", "model", "at the provider", "state", "run", "stage", "created (UTC)", "requests")
    for row in rows:
        items = ", ".join(f"{count:,} {state}" for state, count in book.counts(row.id).items())
        state = row.state if row.outcome in ("", "ended") else f"{row.state} ({row.outcome})"
        created = f"{datetime.fromtimestamp(row.created, UTC):%Y-%m-%d %H:%M}"
        table.add_row(str(row.id), row.name, row.provider_id, state, row.run, row.stage, created, items)
    terminal().print(table)
    if any(row.state in OPEN for row in rows):
        echo("Collect what has ended: prejudge resume RUN")


def _cancel(catalogue: Catalogue, store: Store, book: Batches, row: BatchRow) -> None:
    if (freed := book.withdraw(row.id)) is not None:
        echo(f"Batch {row.id} was not handed in: {counted(len(freed), 'request')} freed.")
        return
    if not row.provider_id:
        raise UsageError(
            f"it is not known whether the provider has the batch {row.id}. Find out with prejudge resume {row.run}, or "
            f"cancel it there and free its requests with --forget {row.id}.",
            code="batch.orphan",
        )
    asyncio.run(_tell(catalogue, store, book, row))
    echo(f"Batch {row.id} ({row.provider_id}) is cancelled. Collect what was answered: prejudge resume {row.run}")


async def _tell(catalogue: Catalogue, store: Store, book: Batches, row: BatchRow) -> None:
    ensure_own(catalogue, store, manifest_of(get_run(store, row.run)), [row.name])
    adapter = catalogue.adapter(row.name)
    try:
        if adapter.batch_api is None or encode_identity(adapter.identity).decode() != book.identity(row):
            raise UsageError(
                f"the model {row.name!r} of the registry is not the one that the batch {row.id} was handed in for. "
                "Name its registry with --registry.",
                code="batch.other-model",
            )
        await adapter.batch_api.cancel(row.provider_id)
    finally:
        await adapter.aclose()
