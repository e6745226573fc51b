"""Copying a store into another, a chunk at a time: another store that is merged, or a bundle that is imported.

All of it is checked before the first chunk. A copy that was cut off is taken up again.
"""

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
    Failed,
    Picture,
    Places,
    ensure_same,
    ensure_sound,
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
from .exchange_checks import id_ranges
from .intake import ensure_factors, ensure_identity, ensure_picture, ensure_whole
from .names import run_name
from .reachable import READ, images_in
from .reading import RunRow, runs_of
from .signatures import attach, signatures_of
from .store import Store
from .tables import Batch, BatchItem, Blob, Exchange, Model, Renewal
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
        check(readers)
        added, names = copy(store, readers.connection, f"merge {show(other.url)}", free_name)
    renamed = tuple((run, name) for run, name in names.items() if name is not None and name != run)
    counts = {kind: added[kind] for kind in ("exchanges", "images", "runs")}
    return Merged(**counts, same=list(names.values()).count(None), renamed=renamed)


def check(readers: Crew) -> set[str]:
    """Check all that `copy` copies, and return the images (sha256) that exchanges name, stored or not.

    Raises:
        DataError: something is not as it was stored.
    """
    source, identities = readers.connection, _identities(readers.connection)
    for digest, identity in identities.items():
        ensure_identity(digest, identity)
    for picture in _pictures(source):
        ensure_picture(picture)
    runs: list[tuple[Any, ...]] = [(_check_run, run) for run in runs_of(source)]
    models = frozenset(identities)
    exchanges = ((_check_exchanges, *some, models) for some in id_ranges(source))
    # Runs come first: one is checked by one process, while others check exchanges. No result waits for its turn.
    return set().union(*readers.map(_check_part, chain(runs, exchanges), sys.maxsize))


def copy(store: Store, source: sa.Connection, title: str, name: Name) -> Copied:
    """Copy a store that was checked into another.

    Args:
        store: the store that is written.
        source: a connection to the store that is read.
        title: tells this copy from others into the store; the same when it is taken up again.
        name: chooses the name of a run.

    Raises:
        StoreError: one of the stores cannot be read or written, or another process copies from the same store.
    """
    with Chunks(store, title, _identities(source)) as chunks:
        chunks.pictures(_pictures(source))
        numbers = _exchanges(source, chunks)
        names = {str(run.name): _run(source, chunks, run, numbers, name) for run in runs_of(source)}
        _batches(source, chunks, numbers)
    attach(store, signatures_of(source))
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


def _check_part(source: sa.Connection, check: Callable[..., set[str]], *values: Any) -> set[str]:
    return check(source, *values)


def _check_exchanges(source: sa.Connection, first: int, last: int, models: Container[bytes]) -> set[str]:
    """Check exchanges, and return the images that they name."""
    number, images = table_of(Exchange).c.id, set[str]()
    with closing(stream_exchanges(source, number.between(first, last), [number])) as parts:
        for exchange_id, sent, digest in chain.from_iterable(parts):
            if not sent.identity:
                raise damaged(f"exchange {exchange_id}", "its model is not in the store")
            ensure_same(sent, digest)
            ensure_whole(sent, models)
            images |= images_in(sent.request) | images_in(sent.response)
    return images


def _check_run(source: sa.Connection, run: RunRow) -> set[str]:
    head = ensure_sound(source, run)
    if run.head is not None and head != run.head:
        raise damaged(f"run {run.name}", "its trials are not those that were recorded")
    for trials in stream_trials_of(source, run.id, new_places(source)):
        for trial in trials:
            ensure_factors(trial)
    return set()


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
            for theirs, ours in chunks.exchanges(chain.from_iterable(parts)):
                numbers[theirs] = ours
    renewals = source.execute(sa.select(table_of(Renewal)))
    chunks.renewals((int(numbers[number]), outcome) for number, outcome in renewals)
    return numbers


def _run(source: sa.Connection, chunks: Chunks, run: RunRow, numbers: Places, name: Name) -> str | None:
    """Copy a run, and return its name in the store; None if that has it already."""
    facts, digest = facts_of(run), run_digest(source, run)

    def chosen(here: sa.Connection) -> str | None:
        return name(here, run, digest)

    if chunks.read(chosen) is None:
        return None
    run_id = chunks.begin_run(digest)
    chunks.trials(run_id, (row for rows in stream_trials_of(source, run.id, numbers) for row in rows))
    chunks.failures(run_id, [Failed(bytes(key), *values) for key, *values in failures_of(source, run.id)])

    def values(name: str) -> dict[str, Any]:
        return facts._asdict() | {"manifest": rename(facts.manifest, name)}

    return chunks.end_run(run_id, chosen, values)


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
