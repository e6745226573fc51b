"""Claims of keys by process, so that processes that share a store ask no key twice.

A process that asks is a row of the table `worker`, which it updates regularly. A single process claims nothing. With a
second process, both write the keys they are about to ask into `claim`; the new process waits until all earlier ones
have seen it. A claim is valid while its worker lives: a process of this machine is looked up by its process id, any
other is considered dead after `LEASE_SECONDS` without an update.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, NamedTuple
from weakref import WeakSet

import sqlalchemy as sa

from .bulk import LOOKUP, batched, table_of
from .engine import translated
from .processes import LEASE_SECONDS, clock, host, runs
from .store import Found, Store
from .tables import BatchItem, Claim, Worker

BEAT_SECONDS = 5.0
BATCH = -1
"""The owner of a key that a batch holds; no worker has this number."""


class Claimed(NamedTuple):
    """Result of claiming keys."""

    found: dict[bytes, Found]
    """Keys answered in the meantime."""
    mine: frozenset[bytes]
    """Keys that only this process asks."""


class Claims:
    """The claims of one run. All calls block, and must come from one thread."""

    _living: ClassVar[WeakSet[Claims]] = WeakSet()
    """Workers of this process: the process id alone does not show whether a run has ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer = store.engine.execution_options(immediate=True)
        self._id = 0
        self._beaten = 0.0

    def join(self, held: Collection[bytes] = ()) -> None:
        """Register as a worker."""
        with translated(self._store.url), self._writer.begin() as connection:
            self._bury(connection)
            row = {"host": host(), "pid": os.getpid(), "seen": clock(connection), "met": 0}
            table = table_of(Worker)
            self._id = int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())
            self._write(connection, held)
        self._beaten = time.monotonic()
        self._living.add(self)

    def leave(self) -> None:
        """Remove all claims and the worker."""
        self._living.discard(self)
        with translated(self._store.url), self._writer.begin() as connection:
            _forget(connection, [self._id])

    @property
    def id(self) -> int:
        """Return the number of this worker."""
        return self._id

    def batches_open(self) -> bool:
        """Return whether a batch holds keys, whose process may have gone."""
        items = table_of(BatchItem)
        with translated(self._store.url), self._store.engine.connect() as connection:
            query = sa.select(items.c.batch_id).where(items.c.state == "open").limit(1)
            return connection.scalar(query) is not None

    def is_awaited(self) -> bool:
        """Return whether an earlier worker has not yet seen this one."""
        rows, now = self._workers()
        return any(row.id < self._id and row.met < self._id and self._lives(row, now) for row in rows)

    def newest_other(self) -> int:
        """Return the number of the newest other worker that is alive; 0 if there is none."""
        rows, now = self._workers()
        return max((row.id for row in rows if row.id != self._id and self._lives(row, now)), default=0)

    def beat(self, newest: int, held: Collection[bytes], released: Collection[bytes]) -> None:
        """Update this worker, write its claims if there are new workers, and remove dead workers.

        Args:
            newest: the newest other worker, which can then rely on the claims of this one.
            held: keys this process is asking; a new worker learns of them before it asks anything.
            released: keys it no longer asks.
        """
        rows, now = self._workers()
        own = next((row for row in rows if row.id == self._id), None)
        if own is None:
            self.join(held)  # considered dead: this process was halted for longer than the lease
            return
        dead = any(not self._lives(row, now) for row in rows if row.id != self._id)
        if newest <= own.met and not released and not dead and time.monotonic() - self._beaten < BEAT_SECONDS:
            return
        table = table_of(Worker)
        with translated(self._store.url), self._writer.begin() as connection:
            self._bury(connection, but=self._id)
            self._store.holds.beat(connection)
            values = {"seen": clock(connection), "met": max(newest, own.met)}
            connection.execute(sa.update(table).where(table.c.id == self._id).values(values))
            self._write(connection, held if newest > own.met else ())
            self._erase(connection, released)
        self._beaten = time.monotonic()

    def _workers(self) -> tuple[Sequence[sa.Row[tuple[int, str, int, float, int]]], float]:
        with translated(self._store.url), self._store.engine.connect() as connection:
            return connection.execute(sa.select(table_of(Worker))).all(), clock(connection)

    def take(self, keys: Sequence[bytes], released: Collection[bytes]) -> Claimed:
        """Claim the keys without an answer or a claim, in one transaction."""
        with translated(self._store.url), self._writer.begin() as connection:
            self._erase(connection, released)
            found = self._store.find(keys)  # on a separate connection; no other process can write in the meantime
            open_keys = [key for key in keys if key not in found]
            owners = _owners(connection, open_keys) | dict.fromkeys(_batched(connection, open_keys), BATCH)
            new = [key for key in open_keys if key not in owners]
            self._insert(connection, new)
            mine = frozenset(key for key in open_keys if owners.get(key, self._id) == self._id)
        return Claimed(found, mine)

    def _bury(self, connection: sa.Connection, but: int = 0) -> None:
        now = clock(connection)
        rows = connection.execute(sa.select(table_of(Worker))).all()
        _forget(connection, [row.id for row in rows if row.id != but and not self._lives(row, now)])

    def _lives(self, worker: sa.Row[tuple[int, str, int, float, int]], now: float) -> bool:
        return self.lives(self._store, worker, now)

    @classmethod
    def lives(cls, store: Store, worker: sa.Row[tuple[int, str, int, float, int]], now: float) -> bool:
        """Return whether the process of a row still runs."""
        if now - worker.seen > LEASE_SECONDS:
            return False
        if worker.host != host():
            return True
        if worker.pid != os.getpid():
            return runs(worker.pid)
        return any(c._id == worker.id and c._store.url == store.url for c in cls._living)

    def _write(self, connection: sa.Connection, keys: Collection[bytes]) -> None:
        owners = _owners(connection, keys)
        self._insert(connection, [key for key in keys if key not in owners])

    def _insert(self, connection: sa.Connection, keys: Sequence[bytes]) -> None:
        if keys:
            connection.execute(sa.insert(table_of(Claim)), [{"key": key, "worker_id": self._id} for key in keys])

    def _erase(self, connection: sa.Connection, keys: Collection[bytes]) -> None:
        table = table_of(Claim)
        for some in batched(keys, LOOKUP):
            connection.execute(sa.delete(table).where(table.c.key.in_(some), table.c.worker_id == self._id))


def _owners(connection: sa.Connection, keys: Iterable[bytes]) -> dict[bytes, int]:
    table = table_of(Claim)
    query = sa.select(table.c.key, table.c.worker_id)
    owners: dict[bytes, int] = {}
    for some in batched(keys, LOOKUP):
        owners.update((bytes(key), owner) for key, owner in connection.execute(query.where(table.c.key.in_(some))))
    return owners


def _batched(connection: sa.Connection, keys: Iterable[bytes]) -> list[bytes]:
    """Return the keys that a batch holds, also when the process that handed it in has gone."""
    items = table_of(BatchItem)
    query = sa.select(items.c.key).where(items.c.state == "open")
    return [
        bytes(key) for some in batched(keys, LOOKUP) for key in connection.scalars(query.where(items.c.key.in_(some)))
    ]


def claimed_by_others(connection: sa.Connection, store: Store, keys: Collection[bytes], worker: int) -> set[bytes]:
    """Return the keys that a living process other than this worker is asking."""
    owners = _owners(connection, keys)
    alive = {owner for owner in {*owners.values()} - {worker} if is_alive(connection, store, owner)}
    return {key for key, owner in owners.items() if owner in alive}


def is_alive(connection: sa.Connection, store: Store, worker: int) -> bool:
    """Return whether the process of a worker still runs."""
    table = table_of(Worker)
    row = connection.execute(sa.select(table).where(table.c.id == worker)).first()
    return row is not None and Claims.lives(store, row, clock(connection))


def _forget(connection: sa.Connection, workers: Sequence[int]) -> None:
    if workers:
        claims, table = table_of(Claim), table_of(Worker)
        connection.execute(sa.delete(claims).where(claims.c.worker_id.in_(workers)))
        connection.execute(sa.delete(table).where(table.c.id.in_(workers)))
