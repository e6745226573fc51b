"""Which keys are being asked by which process, so that processes that share a store ask no key twice.

A process that asks joins the table `worker` and says from time to time that it lives. One that is alone claims
nothing. Once another joins, both write the keys they are about to ask into `claim`; the newcomer waits until all who
were there have seen it. A claim holds as long as its worker lives: a process of this machine is looked up by its
number, any other is given up after `LEASE_SECONDS` of silence.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple
from weakref import WeakSet

import sqlalchemy as sa

from .bulk import LOOKUP, batched, table_of
from .engine import translated
from .store import Found, Store
from .tables import Claim, Worker

LEASE_SECONDS = 20.0
"""Seconds of silence after which a worker of another machine is taken for dead."""
BEAT_SECONDS = 5.0


class Claimed(NamedTuple):
    """What became of keys that a process wants to ask."""

    found: dict[bytes, Found]
    """Answered meanwhile."""
    mine: frozenset[bytes]
    """To be asked by this process and no other."""


class Claims:
    """The claims of one run. All calls block, and are made from one thread."""

    _living: ClassVar[WeakSet[Claims]] = WeakSet()
    """Those of this process: its number alone does not tell whether a run of it has ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer = store.engine.execution_options(immediate=True)
        self._id = 0
        self._beaten = 0.0

    def join(self, held: Collection[bytes] = ()) -> None:
        """Become a worker that others know of."""
        with translated(self._store.url), self._writer.begin() as connection:
            self._bury(connection)
            row = {"host": _host(), "pid": os.getpid(), "seen": _now(connection), "met": 0}
            table = table_of(Worker)
            self._id = int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())
            self._write(connection, held)
        self._beaten = time.monotonic()
        self._living.add(self)

    def leave(self) -> None:
        """Give up all claims and be no worker any more."""
        self._living.discard(self)
        with translated(self._store.url), self._writer.begin() as connection:
            _forget(connection, [self._id])

    def is_awaited(self) -> bool:
        """Say whether a worker that came before this one has not yet seen it."""
        rows, now = self._workers()
        return any(row.id < self._id and row.met < self._id and self._lives(row, now) for row in rows)

    def newest_other(self) -> int:
        """Return the number of the newest other worker that lives; 0 if there is none."""
        rows, now = self._workers()
        return max((row.id for row in rows if row.id != self._id and self._lives(row, now)), default=0)

    def beat(self, newest: int, held: Collection[bytes], released: Collection[bytes]) -> None:
        """Say that this process lives, greet who is new, bury who is dead.

        Args:
            newest: the newest worker that may be told that this process claims what it asks.
            held: keys this process is asking; a newcomer learns of them before it asks anything.
            released: keys it asks no longer.
        """
        rows, now = self._workers()
        own = next((row for row in rows if row.id == self._id), None)
        if own is None:
            self.join(held)  # taken for dead: this process was halted for longer than the lease
            return
        dead = any(not self._lives(row, now) for row in rows if row.id != self._id)
        if newest <= own.met and not released and not dead and time.monotonic() - self._beaten < BEAT_SECONDS:
            return
        table = table_of(Worker)
        with translated(self._store.url), self._writer.begin() as connection:
            self._bury(connection, but=self._id)
            values = {"seen": _now(connection), "met": max(newest, own.met)}
            connection.execute(sa.update(table).where(table.c.id == self._id).values(values))
            self._write(connection, held if newest > own.met else ())
            self._erase(connection, released)
        self._beaten = time.monotonic()

    def _workers(self) -> tuple[Sequence[sa.Row[tuple[int, str, int, float, int]]], float]:
        with translated(self._store.url), self._store.engine.connect() as connection:
            return connection.execute(sa.select(table_of(Worker))).all(), _now(connection)

    def take(self, keys: Sequence[bytes], released: Collection[bytes]) -> Claimed:
        """Claim the keys that nobody answered or claimed, in one transaction."""
        with translated(self._store.url), self._writer.begin() as connection:
            self._erase(connection, released)
            found = self._store.find(keys)  # on a connection of its own; nobody else can write meanwhile
            open_keys = [key for key in keys if key not in found]
            owners = _owners(connection, open_keys)
            new = [key for key in open_keys if key not in owners]
            self._insert(connection, new)
            mine = frozenset(key for key in open_keys if owners.get(key, self._id) == self._id)
        return Claimed(found, mine)

    def _bury(self, connection: sa.Connection, but: int = 0) -> None:
        now = _now(connection)
        rows = connection.execute(sa.select(table_of(Worker))).all()
        _forget(connection, [row.id for row in rows if row.id != but and not self._lives(row, now)])

    def _lives(self, worker: sa.Row[tuple[int, str, int, float, int]], now: float) -> bool:
        if now - worker.seen > LEASE_SECONDS:
            return False
        if worker.host != _host():
            return True
        if worker.pid != os.getpid():
            return _runs(worker.pid)
        return any(c._id == worker.id and c._store.url == self._store.url for c in self._living)

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


def _forget(connection: sa.Connection, workers: Sequence[int]) -> None:
    if workers:
        claims, table = table_of(Claim), table_of(Worker)
        connection.execute(sa.delete(claims).where(claims.c.worker_id.in_(workers)))
        connection.execute(sa.delete(table).where(table.c.id.in_(workers)))


def _runs(pid: int) -> bool:
    if os.name != "posix":
        return True  # asking for a process elsewhere ends it; its silence will tell
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _host() -> str:
    """Return what tells this machine, since it was started, from all others: process numbers mean something in it."""
    parts = [platform.node()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        pass
    return " ".join(parts)


def _now(connection: sa.Connection) -> float:
    # Machines that share a server may not agree about the time; the server is asked.
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one())
