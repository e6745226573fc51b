"""Copying a store into another, a chunk at a time: another store that is merged, or a bundle that is imported.

All of it is checked before the first chunk. A copy that was cut off is taken up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from itertools import chain, count
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.errors import UsageError
from .batches import OPEN, is_batch
from .bulk import LOOKUP, batched, table_of
from .checks import ROWS, Checks
from .chunks import Chunks
from .content import (
    Failed,
    Picture,
    Places,
    facts_of,
    new_places,
    rename,
    run_digest,
    stream_exchanges,
    stream_trials_of,
)
from .crew import Crew, crew
from .damage import damaged
from .evidence import failures_of
from .intake import ensure_identity
from .names import run_name
from .reachable import READ, gather_uses, images_in
from .reading import RunRow, runs_of
from .signatures import attach, signatures_of
from .store import Store
from .tables import Batch, BatchItem, Blob, Exchange, Model, Renewal, RunTrial
from .urls import show

Name = Callable[[sa.Connection, RunRow, str], str | None]
"""Chooses the name of a run with this digest in a store; None if the store has it already."""


class Merged(NamedTuple):
    """The result of a merge."""

    exchanges: int
    images: int
    runs: int
    same: int
    """Number of runs that this store had already."""
    renamed: tuple[tuple[str, str], ...]
    """Renamed runs, because this store has another run of that name: old name, new name."""


class Copied(NamedTuple):
    """What a copy has added to a store."""

    added: Mapping[str, int]
    """Number of new exchanges, images and runs."""
    names: Mapping[str, str | None]
    """Name of each run in the store by its name in the other; None for one that the store had already."""


def merge(store: Store, other: Store, processes: int = 1) -> Merged:
    """Copy everything from another store in chunks; merging again changes nothing, and goes on where it was cut off.

    All of the other store is checked before the first chunk, by at most so many processes. A run is there from its
    last chunk on.

    Raises:
        UsageError: both are the same store.
        StoreError: one of the stores cannot be read or written, or another process copies from the same store.
        DataError: the other store is damaged; nothing was copied.
    """
    if store.url == other.url:
        raise UsageError(
            "a store cannot be merged into itself. Name the store to merge into with --store.", code="store.same"
        )
    with crew(other, processes) as readers:
        check(readers, Checks(other))
        added, names = copy(store, readers.connection, f"merge {show(other.url)}", free_name)
    renamed = tuple((run, name) for run, name in names.items() if name is not None and name != run)
    counts = {kind: added[kind] for kind in ("exchanges", "images", "runs")}
    return Merged(**counts, same=list(names.values()).count(None), renamed=renamed)


def check(readers: Crew, checks: Checks) -> None:
    """Refuse a store of which anything that `copy` copies is not as it was stored; rows may have been removed.

    Raises:
        DataError: naming it.
    """
    for digest, identity in _identities(readers.connection).items():
        ensure_identity(digest, identity)
    with closing(checks.problems_read_by(readers)) as problems:
        for problem in problems:
            if problem.field != ROWS:
                raise damaged(problem.where, problem.problem)


def copy(store: Store, source: sa.Connection, title: str, name: Name, run: RunRow | None = None) -> Copied:
    """Copy a store that was checked, or one run of it, into another.

    Args:
        store: the store that is written.
        source: a connection to the store that is read.
        title: tells this copy from others into the store; the same when it is taken up again.
        name: chooses the name of a run.
        run: copy only this run and what it uses; None: all runs, answers, images and batches.

    Raises:
        StoreError: one of the stores cannot be read or written, or another process copies from the same store.
    """
    exchange, used = table_of(Exchange), None
    if run is not None:
        used = gather_uses(source, "used_by_run", table_of(RunTrial).c.run_id == run.id)
    with Chunks(store, title, _identities(source)) as chunks:
        if run is None or used is None:
            chunks.pictures(_pictures(source))
            numbers = _exchanges(source, chunks, sa.true(), set())
            _renewals(source, chunks, numbers)
        else:
            images = set[str]()
            numbers = _exchanges(source, chunks, exchange.c.id.in_(sa.select(used.c.id)), images)
            chunks.pictures(_pictures(source, images))
        runs = runs_of(source) if run is None else [run]
        names = {str(row.name): _run(source, chunks, row, numbers, name) for row in runs}
        if run is None:
            _batches(source, chunks, numbers)
    attach(store, signatures_of(source, None if run is None else run.id))
    return Copied(chunks.added, names)


def free_name(here: sa.Connection, run: RunRow, digest: str) -> str | None:
    """Return the name of a copied run: its own, or with a suffix; None if this store has its content already."""
    names = {stored.name: stored for stored in runs_of(here)}
    if run.name not in names:
        return run.name
    for number in count(1):
        name = run.name if number == 1 else run_name(f"{run.name}-{number}")
        if name not in names:
            return name
        if run_digest(here, names[name]) == digest:
            return None
    raise AssertionError("a free name always exists")


def _identities(source: sa.Connection) -> dict[bytes, str]:
    model = table_of(Model)
    models = source.execute(sa.select(model.c.digest, model.c.identity).order_by(model.c.id))
    return {bytes(digest): identity for digest, identity in models}


def _pictures(source: sa.Connection, names: Collection[str] | None = None) -> Iterator[Picture]:
    """Yield the images of a store, or those of these names."""
    blob = table_of(Blob)
    every = sa.select(blob.c.sha256, blob.c.media_type, blob.c.data)
    parts = batched(sorted(names), LOOKUP) if names is not None else ()
    for query in [every] if names is None else [every.where(blob.c.sha256.in_(part)) for part in parts]:
        for row in source.execute(query, execution_options={"yield_per": 16}):
            yield Picture(*row)


def _exchanges(source: sa.Connection, chunks: Chunks, wanted: sa.ColumnElement[bool], images: set[str]) -> Places:
    """Copy exchanges, add the images that they name, and return the id in this store by the id in the other."""
    exchange = table_of(Exchange)
    numbers = new_places(source)
    # All answers to a key come in one chunk, so that a chunk finds either all of them or none. Keys of one answer,
    # which are nearly all, come in order of id, so that neighbours stay neighbours.
    several = sa.select(exchange.c.key).group_by(exchange.c.key).having(sa.func.count() > 1)
    orders = {
        exchange.c.key.not_in(several): [exchange.c.id],
        exchange.c.key.in_(several): [exchange.c.key, exchange.c.generation],
    }
    for where, order in orders.items():
        with closing(stream_exchanges(source, sa.and_(wanted, where), order)) as parts:
            for rows, ours in chunks.exchanges(chain.from_iterable(parts)):
                numbers[[row.id for row in rows]] = ours
                for row in rows:
                    images.update(images_in(row.sent.request), images_in(row.sent.response))
    return numbers


def _renewals(source: sa.Connection, chunks: Chunks, numbers: Places) -> None:
    renewals = source.execute(sa.select(table_of(Renewal)))
    chunks.renewals((int(numbers[number]), outcome) for number, outcome in renewals)


def _run(source: sa.Connection, chunks: Chunks, run: RunRow, numbers: Places, name: Name) -> str | None:
    """Copy a run, and return its name in the store; None if that has it already."""
    facts, digest = facts_of(run), run_digest(source, run)

    def chosen(here: sa.Connection) -> str | None:
        return name(here, run, digest)

    if chunks.read(chosen) is None:
        return None
    run_id = chunks.begin_run(digest)
    chunks.trials(run_id, (row for rows in stream_trials_of(source, run.id, numbers) for row in rows))
    chunks.failures(run_id, [Failed(*row) for row in failures_of(source, run.id)])

    def values(name: str) -> dict[str, Any]:
        return facts._asdict() | {"manifest": rename(facts.manifest, name)}

    return chunks.end_run(run_id, chosen, values)


def _batches(source: sa.Connection, chunks: Chunks, numbers: Places) -> None:
    """Copy which batches answers came in. One that is with its provider stays with the store that handed it in."""
    batch, model, items = table_of(Batch), table_of(Model), table_of(BatchItem)
    query = sa.select(batch, model.c.digest).join_from(batch, model).where(is_batch(), batch.c.state.not_in(OPEN))
    for row in source.execute(query.order_by(batch.c.id)).mappings().all():
        of_batch = sa.select(items).where(items.c.batch_id == row["id"])
        fields = {column.name: row[column.name] for column in batch.c if column.name not in ("id", "model_id")}
        with closing(source.execute(of_batch, execution_options={"yield_per": READ})) as rows:
            chunks.batch(fields, row["digest"], (_moved(dict(item), numbers) for item in rows.mappings()))


def _moved(item: Mapping[str, Any], numbers: Places) -> dict[str, Any]:
    """Return an item of a batch as it is in the other store."""
    answer = item["exchange_id"]
    return {**item, "exchange_id": None if answer is None else int(numbers[answer])}
