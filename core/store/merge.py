"""Merging another store into this one, a chunk at a time; a merge that was cut off is taken up again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import closing
from itertools import chain, count
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.errors import UsageError
from .batches import OPEN, is_batch
from .bulk import table_of
from .chunks import Chunks
from .content import (
    Picture,
    Places,
    RunContent,
    ensure_same,
    ensure_sound,
    new_places,
    rename,
    stream_exchanges,
    stream_trials_of,
)
from .crew import Crew, crew
from .damage import damaged
from .exchange_checks import id_ranges
from .intake import ensure_factors, ensure_identity, ensure_picture, ensure_whole
from .names import run_name
from .reachable import READ
from .reading import RunRow, runs_of
from .signatures import attach, signatures_of
from .store import Store
from .tables import Batch, BatchItem, Blob, Exchange, Model, Renewal
from .urls import show


class Merged(NamedTuple):
    """The result of a merge."""

    exchanges: int
    images: int
    runs: int
    same: int
    """Number of runs that this store had already."""
    renamed: tuple[tuple[str, str], ...]
    """Renamed runs, because this store has another run of that name: old name, new name."""


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
        source = readers.connection
        identities = _identities(source)
        _check(readers, identities)
        with Chunks(store, f"merge {show(other.url)}", identities) as chunks:
            chunks.pictures(_pictures(source))
            numbers = _exchanges(source, chunks)
            same, renamed = 0, []
            for run in runs_of(source):
                if (name := _run(readers, chunks, run, numbers)) is None:
                    same += 1
                elif name != run.name:
                    renamed.append((run.name, name))
            _batches(source, chunks, numbers)
        attach(store, signatures_of(source))
        added = {name: chunks.added[name] for name in ("exchanges", "images", "runs")}
        return Merged(**added, same=same, renamed=tuple(renamed))


def free_name(here: sa.Connection, run: RunRow, digest: str) -> str | None:
    """Return the name of a copied run: its own, or with a suffix; None if this store has its content already."""
    known = {found.name: found for found in runs_of(here)}
    if run.name not in known:
        return run.name
    for number in count(1):
        name = run.name if number == 1 else run_name(f"{run.name}-{number}")
        if name not in known:
            return name
        if RunContent(Crew(here), known[name]).digest() == digest:
            return None
    raise AssertionError("a free name always exists")


def _identities(source: sa.Connection) -> dict[bytes, str]:
    model = table_of(Model)
    models = source.execute(sa.select(model.c.digest, model.c.identity).order_by(model.c.id))
    return {bytes(digest): identity for digest, identity in models}


def _check(readers: Crew, identities: Mapping[bytes, str]) -> None:
    """Refuse a store that is damaged, before anything of it is copied."""
    source, models = readers.connection, frozenset(identities)
    for digest, identity in identities.items():
        ensure_identity(digest, identity)
    for picture in _pictures(source):
        ensure_picture(picture)
    runs: list[tuple[Any, ...]] = [(_check_run, run) for run in runs_of(source)]
    exchanges = ((_check_exchanges, *some, models) for some in id_ranges(source))
    # Runs come first: one is checked by one process, while others check exchanges. No result waits for its turn.
    for _ in readers.map(_check_part, chain(runs, exchanges), sys.maxsize):
        pass


def _check_part(source: sa.Connection, check: Callable[..., None], *values: Any) -> None:
    check(source, *values)


def _check_exchanges(source: sa.Connection, first: int, last: int, models: Container[bytes]) -> None:
    number = table_of(Exchange).c.id
    for _, rows, proofs in stream_exchanges(source, number.between(first, last), [number]):
        for row, proof in zip(rows, proofs, strict=True):
            ensure_whole(row, models)
            ensure_same(row, proof)


def _check_run(source: sa.Connection, run: RunRow) -> None:
    head = ensure_sound(source, run)
    if run.head is not None and head != run.head:
        raise damaged(f"run {run.name}", "its trials are not those that were recorded")
    for trials in stream_trials_of(source, run.id, new_places(source)):
        for trial in trials:
            ensure_factors(trial)


def _pictures(source: sa.Connection) -> Iterator[Picture]:
    blob = table_of(Blob)
    query = sa.select(blob.c.sha256, blob.c.media_type, blob.c.data)
    images = source.execute(query, execution_options={"yield_per": 16})
    return (Picture(sha256, media_type, bytes(data)) for sha256, media_type, data in images)


def _exchanges(source: sa.Connection, chunks: Chunks) -> Places:
    """Copy all exchanges, and return the id in this store by the id in the other."""
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
        with closing(stream_exchanges(source, where, order)) as parts:
            every = (one for part in parts for one in zip(*part, strict=True))
            for there, here in chunks.exchanges(every):
                numbers[there] = here
    renewals = source.execute(sa.select(table_of(Renewal)))
    chunks.renewals((int(numbers[number]), outcome) for number, outcome in renewals)
    return numbers


def _run(readers: Crew, chunks: Chunks, run: RunRow, numbers: Places) -> str | None:
    """Copy a run, and return its name here; None if this store has it already."""
    source, content = readers.connection, RunContent(readers, run)
    digest = content.digest()

    def name(here: sa.Connection) -> str | None:
        return free_name(here, run, digest)

    if chunks.read(name) is None:
        return None
    run_id = chunks.begin_run(digest)
    chunks.trials(run_id, (row for rows in stream_trials_of(source, run.id, numbers) for row in rows))
    chunks.failures(run_id, content.failures())
    facts = content.facts

    def values(name: str) -> dict[str, Any]:
        return facts._asdict() | {"manifest": rename(facts.manifest, name)}

    return chunks.end_run(run_id, name, values)


def _batches(source: sa.Connection, chunks: Chunks, numbers: Places) -> None:
    """Copy which batches answers came in. One that is with its provider stays with the store that handed it in."""
    batch, model, items = table_of(Batch), table_of(Model), table_of(BatchItem)
    query = sa.select(batch, model.c.digest).join_from(batch, model).where(is_batch(), batch.c.state.not_in(OPEN))
    for row in source.execute(query.order_by(batch.c.id)).mappings().all():
        own = sa.select(items).where(items.c.batch_id == row["id"])
        fields = {column.name: row[column.name] for column in batch.c if column.name not in ("id", "model_id")}
        with closing(source.execute(own, execution_options={"yield_per": READ})) as found:
            chunks.batch(fields, row["digest"], (_moved(dict(item), numbers) for item in found.mappings()))


def _moved(item: Mapping[str, Any], numbers: Places) -> dict[str, Any]:
    """Return an item of a batch as it is in the other store."""
    answer = item["exchange_id"]
    return {**item, "exchange_id": None if answer is None else int(numbers[answer])}
