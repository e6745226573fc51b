"""Removing a run and the rows that only it used, with set operations. Rows of other runs stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import sqlalchemy as sa
from sqlmodel import SQLModel

from ..contracts.errors import UsageError
from .batches import OPEN
from .bulk import LOOKUP, batched, table_of
from .chunks import give_up, spared
from .engine import translated
from .evidence import WEIGHED, is_run, tally, weights_of
from .holders import held
from .names import run_name
from .parts import part_numbers
from .reachable import gather_uses, images_in, names_image, new_ids, stream_texts
from .reading import RunRow
from .snapshots import snapshot
from .store import Store
from .tables import (
    Attempt,
    Batch,
    BatchItem,
    Blob,
    Damage,
    Exchange,
    Holder,
    Model,
    Part,
    Renewal,
    Run,
    RunTrial,
    Signature,
)

T = TypeVar("T", int, str)


class Going(NamedTuple):
    """Numbers of removed rows, or of rows to remove."""

    trials: int
    failures: int
    exchanges: int
    images: int
    parts: int
    """Shared texts that no request uses any more."""
    size: int
    """Characters of text and bytes of images."""


class PruneOptions(NamedTuple):
    """What may be removed."""

    killed: bool = False
    """Also remove if a run is marked as running, because its process was killed; and what a merge or an import that was
    killed has copied of runs."""
    unused: bool = False
    """Also remove exchanges that no run uses, such as those of a run that was killed before it recorded its trials."""


class _Plan(NamedTuple):
    """What goes besides the rows of the run."""

    going: Going
    gone: sa.Table
    """Ids of exchanges."""
    images: list[str]
    parts: list[int]


def would_go(store: Store, run: RunRow, options: PruneOptions) -> Going:
    """Return the numbers of rows that `prune` would remove; no lock is held.

    Raises:
        UsageError: a run is running.
    """
    store.watch_holders()
    with snapshot(store) as connection:
        return _plan(connection, run, options).going


def prune(store: Store, run: RunRow, options: PruneOptions) -> Going:
    """Remove a run and the rows that only it used, in one transaction, after what killed copies have left.

    Raises:
        UsageError: a run is running.
    """
    store.watch_holders()
    if options.killed:
        with snapshot(store) as connection:
            _ensure_at_rest(connection, run, options)
        give_up(store)
    with store.writing() as connection:
        plan = _plan(connection, run, options)
        _remove(connection, run, plan)
        return plan.going


def vacuum(store: Store) -> None:
    """Return the free space of an SQLite file to the disk; a server does so by itself."""
    if store.engine.dialect.name != "sqlite":
        return
    with translated(store.url), store.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("VACUUM")
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _plan(connection: sa.Connection, run: RunRow, options: PruneOptions) -> _Plan:
    _ensure_at_rest(connection, run, options)
    exchange, trials, attempts = table_of(Exchange), table_of(RunTrial), table_of(Attempt)
    gone = _gone(connection, run, options)
    goes, stays = exchange.c.id.in_(sa.select(gone.c.id)), exchange.c.id.not_in(sa.select(gone.c.id))
    images = _images(connection, goes, stays)
    parts = _parts(connection, goes, stays)
    size = connection.scalar(
        sa.select(sa.func.sum(sa.func.length(exchange.c.request) + sa.func.length(exchange.c.response))).where(goes)
    )
    size = (size or 0) + sum(_sizes(connection, images))
    rows = ((trials, trials.c.run_id == run.id), (attempts, attempts.c.run_id == run.id), (exchange, goes))
    counts = [sa.select(sa.func.count()).select_from(table).where(where) for table, where in rows]
    tried, failed, answered = (int(connection.scalar(count) or 0) for count in counts)
    return _Plan(Going(tried, failed, answered, len(images), len(parts), int(size)), gone, images, parts)


def _remove(connection: sa.Connection, run: RunRow, plan: _Plan) -> None:
    exchange, damage, renewal = table_of(Exchange), table_of(Damage), table_of(Renewal)
    gone = sa.select(plan.gone.c.id)
    models = connection.scalars(sa.select(exchange.c.model_id).where(exchange.c.id.in_(gone)).distinct()).all()
    _delete(connection, Renewal, renewal.c.exchange_id.in_(gone))
    _remove_batches(connection, run, plan.gone)
    _delete(connection, Damage, sa.or_(damage.c.run_id == run.id, damage.c.exchange_id.in_(gone)))
    for kind in (RunTrial, Attempt, Signature, Holder):
        _delete(connection, kind, table_of(kind).c.run_id == run.id)
    _delete(connection, Exchange, exchange.c.id.in_(gone))
    _remove_models(connection, models)
    _delete(connection, Run, table_of(Run).c.id == run.id)
    for names in batched(plan.images, LOOKUP):
        _delete(connection, Blob, table_of(Blob).c.sha256.in_(names))
    for numbers in batched(plan.parts, LOOKUP):
        _delete(connection, Part, table_of(Part).c.id.in_(numbers))


def _delete(connection: sa.Connection, kind: type[SQLModel], where: sa.ColumnElement[bool]) -> None:
    """Remove rows of a table, and take them out of its tally."""
    table = table_of(kind)
    if table.name in WEIGHED:
        tally(connection, table.name, weights_of(connection, table.name, where), -1)
    connection.execute(sa.delete(table).where(where))


def _remove_batches(connection: sa.Connection, run: RunRow, gone: sa.Table) -> None:
    """Remove what is known of batches about answers that go, and batches of which nothing is left."""
    batch, items = table_of(Batch), table_of(BatchItem)
    of_run = items.c.batch_id.in_(sa.select(batch.c.id).where(batch.c.run == run.name))
    unanswered = sa.and_(of_run, items.c.exchange_id.is_(None))
    _delete(connection, BatchItem, sa.or_(items.c.exchange_id.in_(sa.select(gone.c.id)), unanswered))
    _delete(connection, Batch, batch.c.id.not_in(sa.select(items.c.batch_id)))


def _remove_models(connection: sa.Connection, numbers: Sequence[int]) -> None:
    """Remove models without any remaining answer."""
    model, exchange = table_of(Model), table_of(Exchange)
    still = sa.union(sa.select(exchange.c.model_id), sa.select(table_of(Batch).c.model_id))
    _delete(connection, Model, sa.and_(model.c.id.in_(numbers), model.c.id.not_in(still)))


def _ensure_at_rest(connection: sa.Connection, run: RunRow, options: PruneOptions) -> None:
    """Refuse while any run is running, because a run records the stored answers that it uses only later."""
    table = table_of(Run)
    if connection.scalar(sa.select(table.c.id).where(table.c.id == run.id)) is None:
        raise UsageError(f"run {run.name} was already removed.", code="run.gone")
    batch = table_of(Batch)
    of_run = sa.select(batch.c.id).where(batch.c.run == run.name, batch.c.state.in_(OPEN)).limit(1)
    if (number := connection.scalar(of_run)) is not None:
        raise UsageError(
            f"the batch {number} of run {run.name} is with its provider. Collect it with prejudge resume {run.name}, "
            f"or give it up with prejudge cache batches --forget {number}.",
            code="batch.open",
        )
    alive = held(connection)
    running = [*alive, *connection.scalars(sa.select(table.c.name).where(table.c.state == "running").limit(1))]
    if alive or (running and not options.killed):
        mend = "Wait until it ends." if alive else "Its process seems to be dead: resume it, or add --killed."
        who = "a merge or an import into this store" if running[0].startswith(".") else f"run {run_name(running[0])}"
        raise UsageError(
            f"{who} is running, and may use answers that would be removed. {mend}",
            code="run.running",
        )


def _gone(connection: sa.Connection, run: RunRow, options: PruneOptions) -> sa.Table:
    """Return a temporary table of the exchanges to remove."""
    exchange, trials, runs = table_of(Exchange), table_of(RunTrial), table_of(Run)
    others = trials.c.run_id != run.id
    if options.killed:  # what is still there of killed copies is only looked at here: `give_up` removes it
        others = sa.and_(others, trials.c.run_id.in_(sa.select(runs.c.id).where(is_run())))
    used_by_others = gather_uses(connection, "used_by_others", others)
    gone = new_ids(connection, "gone")
    unused: sa.ColumnElement[bool] = exchange.c.id.not_in(sa.select(used_by_others.c.id))
    if not options.killed and (newest := spared(connection)) is not None:
        unused = sa.and_(unused, exchange.c.id <= newest)
    if not options.unused:
        mine = gather_uses(connection, "used_by_run", trials.c.run_id == run.id)
        unused = sa.and_(unused, exchange.c.id.in_(sa.select(mine.c.id)))
    connection.execute(sa.insert(gone).from_select(["id"], sa.select(exchange.c.id).where(unused)))
    return gone


def _images(connection: sa.Connection, goes: sa.ColumnElement[bool], stays: sa.ColumnElement[bool]) -> list[str]:
    named = (images_in(text) for text in stream_texts(connection, sa.and_(goes, names_image())))
    others = (images_in(text) for text in stream_texts(connection, sa.and_(stays, names_image())))
    return sorted(_only(named, others))


def _parts(connection: sa.Connection, goes: sa.ColumnElement[bool], stays: sa.ColumnElement[bool]) -> list[int]:
    has = table_of(Exchange).c.request.like('%{"part":%')
    named = (part_numbers(text) for text in stream_texts(connection, sa.and_(goes, has)))
    others = (part_numbers(text) for text in stream_texts(connection, sa.and_(stays, has)))
    return sorted(_only(named, others))


def _only(named: Iterator[set[T]], others: Iterator[set[T]]) -> set[T]:
    """Return the items in `named` that are not in `others`."""
    items: set[T] = set().union(*named)
    if items:
        for other in others:
            items -= other
    return items


def _sizes(connection: sa.Connection, images: list[str]) -> Iterator[int]:
    blob = table_of(Blob)
    for names in batched(images, LOOKUP):
        yield (
            connection.scalar(sa.select(sa.func.sum(sa.func.length(blob.c.data))).where(blob.c.sha256.in_(names))) or 0
        )
