"""Claims of keys by process, so that processes that share a store ask no key twice.

A process that asks is a row of the table `worker`, which it updates regularly. A single process claims nothing. With a
second process, both write the keys they are about to ask into `claim`; the new process waits until all earlier ones
have seen it. A claim is valid while its worker lives: a process of this machine is dead as soon as its process id is
gone, and any process after `LEASE_SECONDS` without an update (`processes.lease`). A process that was halted for longer
finds out at its next claim or update, and registers again.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

import sqlalchemy as sa

from ..contracts.errors import StoreError
from . import processes
from .bulk import LOOKUP, batched, rows_where, table_of
from .engine import translated
from .patience import Patience, enduring
from .processes import clock, elapsed, horizon, host, lease, runs
from .store import Found, Store
from .tables import BatchItem, Claim, Worker

BEAT_SECONDS = 5.0
BATCH = -1
"""The owner of a key that a batch holds; no worker has this number."""


def endpoint_digest(name: str) -> str:
    """Return the name of an endpoint as the store has it."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


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

    def __init__(self, store: Store, endpoints: Collection[str] = ()) -> None:
        """`endpoints` are names of those that this process asks."""
        self._store, self._endpoints = store, {endpoint_digest(name): name for name in endpoints}
        self._writer = store.engine.execution_options(immediate=True)
        self._id = 0
        self.lost = False
        """Whether this process was ever considered dead: others may have asked what it had claimed, and be gone."""
        self._beaten = 0.0

    @property
    def patience(self) -> Patience:
        """Return how long the store waits for its server."""
        return self._store.patience

    @property
    def stale(self) -> bool:
        """Return whether others may soon consider this process dead, or do so already: it was halted."""
        return elapsed() - self._beaten > processes.LEASE_SECONDS / 2

    @enduring
    def join(self, held: Collection[bytes] = ()) -> None:
        """Register as a worker.

        Raises:
            StoreError: the store is a file, and a process of another machine is using it.
        """
        self._watch_machines()
        with translated(self._store.url), self._writer.begin() as connection:
            self._bury(connection)
            self._refuse_machines(connection)
            self._register(connection)
            self._write(connection, held)
        self._beaten = elapsed()
        self._living.add(self)

    def _watch_machines(self) -> None:
        """Look at the workers of other machines until it is known whether they live; their clocks tell nothing here."""

        def unknown() -> str | None:
            with translated(self._store.url), self._store.engine.connect() as connection:
                rows, since = connection.execute(sa.select(table_of(Worker))).all(), horizon(connection)
            for row in rows:
                if processes.is_elsewhere(row.host) and self.lives(self._store, row, since) is None:
                    return f"the machine {row.host.split()[0]!r} still uses the store"
            return None

        processes.until_known(unknown)

    def _refuse_machines(self, connection: sa.Connection) -> None:
        if connection.dialect.name != "sqlite":
            return
        others = connection.execute(sa.select(table_of(Worker).c.host)).scalars()
        if (other := next(filter(processes.is_elsewhere, others), None)) is not None:
            name = other.split()[0]
            raise StoreError(
                f"the machine {name!r} is using the store {self._store.url}, which is a SQLite file: only processes of "
                "one machine can share it without damage. Give each machine a store of its own and merge them, or use "
                "PostgreSQL.",
                code="store.machines",
                machine=name,
            )

    def _register(self, connection: sa.Connection) -> None:
        table, row = table_of(Worker), {"host": host(), "pid": os.getpid(), "seen": clock(connection), "met": 0}
        row["endpoints"] = " ".join(sorted(self._endpoints)) or None
        self._id = int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())

    @enduring
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
        return bool(self._store.rows(sa.select(items.c.batch_id).where(items.c.state == "open").limit(1)))

    def is_awaited(self) -> bool:
        """Return whether an earlier worker has not yet seen this one."""
        rows = self._alive()
        return any(row.id < self._id and row.met < self._id for row in rows)

    def others(self) -> tuple[int, dict[str, int]]:
        """Return the newest other worker that is alive (0: none), and how many workers ask each of our endpoints."""
        alive = [row for row in self._alive() if row.id != self._id]
        asked = Counter(digest for row in alive for digest in (row.endpoints or "").split())
        parts = {name: 1 + asked[digest] for digest, name in self._endpoints.items()}
        return max((row.id for row in alive), default=0), parts

    @enduring
    def beat(self, newest: int, held: Collection[bytes], released: Collection[bytes]) -> None:
        """Update this worker, write its claims if there are new workers, and remove dead workers.

        Args:
            newest: the newest other worker, which can then rely on the claims of this one.
            held: keys this process is asking; a new worker learns of them before it asks anything.
            released: keys it no longer asks.
        """
        rows, alive = self._workers()
        worker = next((row for row in rows if row.id == self._id), None)
        if worker is None:
            self.lost = True
            self.join(held)
            return
        dead = not {row.id for row in rows} <= {row.id for row in alive} | {self._id}
        if newest <= worker.met and not released and not dead and elapsed() - self._beaten < BEAT_SECONDS:
            return
        table = table_of(Worker)
        with translated(self._store.url), self._writer.begin() as connection:
            self._bury(connection, but=self._id)
            self._store.holds.beat(connection)
            values = {"seen": clock(connection), "met": max(newest, worker.met)}
            connection.execute(sa.update(table).where(table.c.id == self._id).values(values))
            self._write(connection, held if newest > worker.met else ())
            self._erase(connection, released)
        self._beaten = elapsed()

    @enduring
    def _workers(self) -> tuple[Sequence[sa.Row[Any]], Sequence[sa.Row[Any]]]:
        """Return the workers, and those of them that are alive, as far as is known."""
        with translated(self._store.url), self._store.engine.connect() as connection:
            rows = connection.execute(sa.select(table_of(Worker))).all()
            since = horizon(connection)
        return rows, [row for row in rows if self.lives(self._store, row, since) is not False]

    def _alive(self) -> Sequence[sa.Row[Any]]:
        return self._workers()[1]

    @enduring
    def take(self, keys: Sequence[bytes], released: Collection[bytes]) -> Claimed:
        """Claim the keys without an answer or a claim, in one transaction."""
        with translated(self._store.url), self._writer.begin() as connection:
            table = table_of(Worker)
            if connection.scalar(sa.select(table.c.id).where(table.c.id == self._id)) is None:
                self.lost = True
                self._register(connection)  # the next update claims what is still asked
            self._erase(connection, released)
            answers = self._store.find(keys)  # on a separate connection; no other process can write in the meantime
            open_keys = [key for key in keys if key not in answers]
            owners = _owners(connection, open_keys) | dict.fromkeys(batches_of(connection, open_keys), BATCH)
            new = [key for key in open_keys if key not in owners]
            self._insert(connection, new)
            mine = frozenset(key for key in open_keys if owners.get(key, self._id) == self._id)
        return Claimed(answers, mine)

    def _bury(self, connection: sa.Connection, but: int = 0) -> None:
        rows = connection.execute(sa.select(table_of(Worker))).all()
        since = horizon(connection)
        dead = [row.id for row in rows if row.id != but and self.lives(self._store, row, since) is False]
        _forget(connection, dead)

    @classmethod
    def lives(cls, store: Store, worker: sa.Row[Any], since: float | None) -> bool | None:
        """Return whether the process of a row still runs, and was not halted for long; None if it is not known yet."""
        if worker.host == host():
            if worker.pid == os.getpid():
                return any(c._id == worker.id and c._store.url == store.url for c in cls._living)
            if not runs(worker.pid):
                return False
        return lease(since, (store.url, worker.host, worker.pid, worker.id), worker.seen)

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
    return {row.key: row.worker_id for row in rows_where(connection, query, table.c.key, keys)}


def batches_of(connection: sa.Connection, keys: Iterable[bytes]) -> dict[bytes, int]:
    """Return the open batch that holds each of some keys, where one does: also when its process has gone."""
    items = table_of(BatchItem)
    query = sa.select(items.c.key, items.c.batch_id).where(items.c.state == "open")
    return {row.key: row.batch_id for row in rows_where(connection, query, items.c.key, keys)}


def claimed_by_others(connection: sa.Connection, store: Store, keys: Collection[bytes], worker: int) -> set[bytes]:
    """Return the keys that a living process other than this worker is asking."""
    owners = _owners(connection, keys)
    alive = {owner for owner in {*owners.values()} - {worker} if is_alive(connection, store, owner)}
    return {key for key, owner in owners.items() if owner in alive}


def is_alive(connection: sa.Connection, store: Store, worker: int) -> bool:
    """Return whether the process of a worker still runs."""
    table = table_of(Worker)
    row = connection.execute(sa.select(table).where(table.c.id == worker)).first()
    return row is not None and Claims.lives(store, row, horizon(connection)) is not False


def _forget(connection: sa.Connection, workers: Sequence[int]) -> None:
    if workers:
        claims, table = table_of(Claim), table_of(Worker)
        connection.execute(sa.delete(claims).where(claims.c.worker_id.in_(workers)))
        connection.execute(sa.delete(table).where(table.c.id.in_(workers)))
