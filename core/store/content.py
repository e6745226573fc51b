"""What is copied of a store, without its ids: the rows of other tables that a run needs, and the digest of a run.

A run has the same digest in every store, whatever else the store contains. The run's name is not part of it, because
another store may have the run under another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from .bulk import single_rows, table_of
from .damage import damaged
from .evidence import plan_order, sums_of
from .parts import PartLengths, unpack
from .reachable import READ
from .reading import RunRow, runs_of
from .run_checks import TrialCheck, record_fault
from .store import Store
from .tables import Exchange, Model, RunTrial

SLICE_BYTES = 16 << 20
"""Bytes of the texts of exchanges that are in memory at a time."""
Places = NDArray[np.int64]
"""Id of an exchange in the other store, by its id here; 8 bytes each, where a dictionary needs a hundred."""


class Facts(NamedTuple):
    """Fields of a run besides its trials."""

    study: str
    state: str
    manifest: str
    """JSON, without the run's name."""
    started: float
    finished: float | None


class Sent(NamedTuple):
    """An exchange with its full texts."""

    key: bytes
    identity: bytes
    """Digest of the model's identity."""
    operation: str
    request: str
    response: str
    status: str
    input_tokens: int
    output_tokens: int
    latency: float
    created: float


class Stored(NamedTuple):
    """An exchange of a store or of a file."""

    id: int
    sent: Sent
    digest: bytes
    """See `evidence.answer_digest`."""
    generation: int = 0


class Tried(NamedTuple):
    """A trial, and the id of its exchange."""

    stage: str
    ordinal: int
    trial: str
    factors: str
    key: bytes
    exchange: int | None
    digest: bytes
    """See `evidence.trial_digest`; it is the same in every store."""


class Failed(NamedTuple):
    """A call that failed."""

    key: bytes
    decision: str
    message: str
    created: float


class Picture(NamedTuple):
    """An image."""

    sha256: str
    media_type: str
    data: bytes


def rename(manifest: str, name: str) -> str:
    """Return the manifest with this run name.

    Raises:
        DataError: the manifest is damaged.
    """
    try:
        fields = msgspec.json.decode(manifest, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise damaged("a manifest", f"it cannot be read ({error})") from None
    return msgspec.json.encode(fields | {"run": name}, order="sorted").decode()


def facts_of(run: RunRow) -> Facts:
    """Return the state and times of a run; a running run is copied as an interrupted one."""
    state = "interrupted" if run.state == "running" else run.state
    return Facts(run.study, state, rename(run.manifest, ""), run.started, run.finished)


def run_digest(connection: sa.Connection, run: RunRow) -> str:
    """Return the digest of a run's trials, answers and record without its name, as their own digests state them."""
    sums = sums_of(connection, run.id, facts_of(run))
    return hashlib.sha256(sums["head"] + sums["record"]).hexdigest()


def ensure_sound(connection: sa.Connection, run: RunRow) -> None:
    """Check a run's record and trials; `exchange_checks` checks its answers.

    Raises:
        DataError: something was changed.
    """
    if (fault := next(TrialCheck(connection, run).faults(), None)) is not None:
        raise damaged(f"run {run.name}, {fault.where}", fault.problem)
    if (problem := record_fault(connection, run)) is not None:
        raise damaged(f"run {run.name}", problem)


def ensure_recorded(store: Store, name: str) -> None:
    """Check the record of a run, if there is one of this name: its manifest, state, times and failed calls.

    Raises:
        DataError: something was changed.
    """
    with store.reading() as connection:
        for run in runs_of(connection):
            if run.name == name and (problem := record_fault(connection, run)) is not None:
                raise damaged(f"run {run.name}", problem)


def new_places(connection: sa.Connection) -> Places:
    """Return an index for every exchange of a store, all unknown (-1)."""
    most = connection.scalar(sa.select(sa.func.max(table_of(Exchange).c.id))) or 0
    return np.full(most + 1, -1, dtype=np.int64)


def stream_exchanges(
    connection: sa.Connection, where: sa.ColumnElement[bool], order: Iterable[sa.ColumnElement[Any]]
) -> Generator[list[Stored]]:
    """Yield exchanges, at most `READ` and about `SLICE_BYTES` of texts at a time.

    A text that many requests share is stored once, and is in memory once for each of them.
    """
    exchange, model = table_of(Exchange), table_of(Model)
    columns = [model.c.digest if name == "identity" else exchange.c[name] for name in Sent._fields]
    query = sa.select(exchange.c.id, *columns, exchange.c.digest, exchange.c.generation)
    query = query.join_from(exchange, model, isouter=True)
    # Closed at once: after an error, a cursor left to the garbage collection would be closed in a transaction that
    # the connection has begun since, and end that.
    with closing(_slices(connection, query.where(where).order_by(*order))) as slices:
        for rows in slices:
            # What was damaged into bytes has no key that follows from it, and is refused by that.
            requests = unpack(connection, (row[4] if isinstance(row[4], str) else "" for row in rows))
            yield [
                Stored(row[0], Sent(row[1], row[2] or b"", row[3], request, *row[5:-2]), *row[-2:])
                for row, request in zip(rows, requests, strict=True)
            ]


def _slices(connection: sa.Connection, query: sa.Select[Any]) -> Generator[list[tuple[Any, ...]]]:
    """Yield the rows of a query of exchanges in parts whose requests are small when they are written out."""
    rows, total, parts = list[tuple[Any, ...]](), 0, PartLengths(connection)
    with closing(single_rows(connection, query)) as answers:
        for row in answers:
            request, response = row[4:6]
            size = len(request or "") + len(response or "") + (parts.of(request) if isinstance(request, str) else 0)
            if rows and (len(rows) == READ or total + size > SLICE_BYTES):
                yield rows
                rows, total = [], 0
            rows.append(row)
            total += size
    if rows:
        yield rows


def stream_trials_of(connection: sa.Connection, run_id: int, places: Places) -> Iterator[list[Tried]]:
    """Yield a run's trials with the ids that their exchanges have in the other store."""
    trials = table_of(RunTrial)
    columns = [trials.c[name] for name in ("stage", "ordinal", "trial", "factors", "key", "exchange_id", "digest")]
    query = sa.select(*columns).where(trials.c.run_id == run_id).order_by(*plan_order(connection))
    for rows in connection.execute(query, execution_options={"yield_per": READ}).partitions():
        yield [
            Tried(stage, ordinal, trial, factors, key, _place_of(number, places), digest)
            for stage, ordinal, trial, factors, key, number, digest in rows
        ]


def _place_of(number: int | None, places: Places) -> int | None:
    return None if number is None else int(places[number])
