"""Merging another store into this one, completely or not at all, a limited number of rows at a time."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.errors import UsageError
from .batches import OPEN
from .bulk import insert_many, table_of
from .content import (
    Picture,
    Places,
    RunContent,
    new_places,
    snapshot,
    stream_exchanges,
    stream_trials_of,
    writing,
)
from .intake import Intake
from .names import run_name
from .reading import RunRow, damaged, runs_of
from .store import Store
from .tables import Batch, BatchItem, Blob, Exchange, Model, Renewal


class Merged(NamedTuple):
    """The result of a merge."""

    exchanges: int
    images: int
    runs: int
    same: int
    """Number of runs that this store had already."""
    renamed: tuple[tuple[str, str], ...]
    """Renamed runs, because this store has another run of that name: old name, new name."""


def merge(store: Store, other: Store) -> Merged:
    """Copy everything from another store in one transaction; merging again changes nothing.

    Raises:
        UsageError: both are the same store.
        StoreError: one of the stores cannot be read or written.
        DataError: the other store is damaged.
    """
    if store.url == other.url:
        raise UsageError(
            "a store cannot be merged into itself. Name the store to merge into with --store.", code="store.same"
        )
    with snapshot(other) as source, writing(store) as here:
        intake = Intake(here)
        _pictures(source, intake)
        numbers = _exchanges(source, intake)
        same, renamed = 0, []
        for run in runs_of(source):
            if (name := free_name(here, run, RunContent(source, run))) is None:
                same += 1
                continue
            if name != run.name:
                renamed.append((run.name, name))
            _run(source, intake, run, name, numbers)
        _batches(source, here, numbers)
        return Merged(**intake.added, same=same, renamed=tuple(renamed))


def free_name(here: sa.Connection, run: RunRow, content: RunContent) -> str | None:
    """Return the name of a copied run: its own, or with a suffix; None if this store has its content already."""
    known = {found.name: found for found in runs_of(here)}
    if run.name not in known:
        return run.name
    digest = content.digest()
    for number in count(1):
        name = run.name if number == 1 else run_name(f"{run.name}-{number}")
        if name not in known:
            return name
        if RunContent(here, known[name]).digest() == digest:
            return None
    raise AssertionError("a free name always exists")


def _pictures(source: sa.Connection, intake: Intake) -> None:
    blob = table_of(Blob)
    query = sa.select(blob.c.sha256, blob.c.media_type, blob.c.data)
    images = source.execute(query, execution_options={"yield_per": 16})
    intake.pictures(Picture(sha256, media_type, bytes(data)) for sha256, media_type, data in images)


def _exchanges(source: sa.Connection, intake: Intake) -> Places:
    """Copy all exchanges, and return the id in this store by the id in the other."""
    exchange, model = table_of(Exchange), table_of(Model)
    models = source.execute(sa.select(model.c.digest, model.c.identity).order_by(model.c.id))
    intake.identities((bytes(digest), identity) for digest, identity in models)
    numbers = new_places(source)
    generations = source.scalars(sa.select(exchange.c.generation).distinct().order_by(exchange.c.generation)).all()
    for generation in generations:
        # In order of id, so that answers to one key keep their order.
        with closing(stream_exchanges(source, exchange.c.generation == generation, [exchange.c.id])) as parts:
            for there, rows, proofs in parts:
                numbers[there] = intake.exchanges(rows, proofs)
    intake.renewals((int(numbers[number]), outcome) for number, outcome in source.execute(sa.select(table_of(Renewal))))
    return numbers


def _run(source: sa.Connection, intake: Intake, run: RunRow, name: str, numbers: Places) -> None:
    content = RunContent(source, run)
    content.ensure_sound()
    run_id = intake.begin_run(name, content.facts)
    for rows in stream_trials_of(source, run.id, numbers):
        # The indexes of these trials are ids of this store already.
        intake.trials(run_id, rows)
    intake.failures(run_id, content.failures())
    head = intake.end_run(run_id)
    if run.head is not None and head != run.head:
        raise damaged(f"run {run.name}", "its trials are not those that were recorded")


def _batches(source: sa.Connection, here: sa.Connection, numbers: Places) -> None:
    """Copy which batches answers came in. One that is with its provider stays with the store that handed it in."""
    batch, items, model = table_of(Batch), table_of(BatchItem), table_of(Model)
    known = set(here.scalars(sa.select(batch.c.mark)))
    models = {bytes(digest): number for number, digest in here.execute(sa.select(model.c.id, model.c.digest))}
    query = sa.select(batch, model.c.digest).join_from(batch, model).where(batch.c.state.not_in(OPEN))
    for row in source.execute(query.order_by(batch.c.id)).mappings().all():
        if row["mark"] in known:
            continue
        fields = {column.name: row[column.name] for column in batch.c if column.name != "id"}
        fields |= {"model_id": models[bytes(row["digest"])], "worker_id": 0}
        number = here.execute(sa.insert(batch).values(fields).returning(batch.c.id)).scalar_one()
        names = [column.name for column in items.c]
        of_batch = sa.select(items).where(items.c.batch_id == row["id"])
        rows = [
            tuple(_moved(name, one[name], int(number), numbers) for name in names)
            for one in source.execute(of_batch).mappings()
        ]
        insert_many(here, items, names, rows)


def _moved(name: str, value: Any, batch: int, numbers: Places) -> Any:
    """Return a value of an item as it is in this store."""
    if name == "batch_id":
        return batch
    return int(numbers[value]) if name == "exchange_id" and value is not None else value
