"""Who is at work on a run: one process at a time, so that no other deletes or rewrites what it records.

The holder of a run is a row of the table `holder`, written in the transaction that begins the run and removed when the
run ends. It holds while its process lives: on this machine a process with that id and that start time, elsewhere one
that has updated the row within `LEASE_SECONDS` (see `processes.lease`). So a run whose process was killed, or whose
machine was started again, is free.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager

import sqlalchemy as sa

from ..contracts.errors import StoreError
from . import processes
from .bulk import table_of
from .tables import Holder, Run

_living: set[str] = set()
"""Marks of the holders in this process: its id alone does not show whether a run of it has ended."""


class Holds:
    """The runs that one open store holds."""

    def __init__(self) -> None:
        self._marks: dict[int, str] = {}

    def take(self, connection: sa.Connection, run_id: int) -> None:
        """Hold a run from now on, which must be free."""
        table, mark = table_of(Holder), secrets.token_hex(16)
        connection.execute(sa.delete(table).where(table.c.run_id == run_id))
        pid, seen = os.getpid(), processes.clock(connection)
        row = {"run_id": run_id, "mark": mark, "host": _here(), "pid": pid, "born": processes.born(pid) or ""}
        connection.execute(sa.insert(table).values(row | {"seen": seen}))
        self._marks[run_id] = mark
        _living.add(mark)

    def has(self, connection: sa.Connection, run_id: int) -> bool:
        """Return whether the store says that this one holds a run."""
        table, mark = table_of(Holder), self._marks.get(run_id)
        return mark is not None and connection.scalar(sa.select(table.c.mark).where(table.c.run_id == run_id)) == mark

    def ensure(self, connection: sa.Connection, run_id: int) -> None:
        """Refuse to write to a run that this store held, and another process took over.

        Raises:
            StoreError: this process was halted for longer than the lease, or the run was removed.
        """
        if run_id in self._marks and not self.has(connection, run_id):
            raise StoreError(
                "another process has taken over this run while this one was halted. All answers are stored; let the "
                "other process finish.",
                code="run.running",
            )

    def beat(self, connection: sa.Connection) -> None:
        """Show other machines that this process lives."""
        if self._marks:
            table = table_of(Holder)
            ours = table.c.mark.in_(list(self._marks.values()))
            connection.execute(sa.update(table).where(ours).values(seen=processes.clock(connection)))

    def leave(self, connection: sa.Connection, run_id: int) -> None:
        """Let go of a run in the transaction that records its end."""
        if (mark := self._marks.get(run_id)) is not None:
            table = table_of(Holder)
            connection.execute(sa.delete(table).where(table.c.mark == mark))

    def drop(self, run_id: int) -> None:
        """Let go of a run whose end is recorded."""
        _living.discard(self._marks.pop(run_id, ""))

    def forget(self) -> None:
        """Let go of all runs, without a record of their ends."""
        _living.difference_update(self._marks.values())
        self._marks.clear()


def held(connection: sa.Connection) -> list[str]:
    """Return the names of the runs that a living process is at work on."""
    holder, run = table_of(Holder), table_of(Run)
    rows = connection.execute(sa.select(holder, run.c.name).join_from(holder, run)).all()
    since = processes.horizon(connection)
    return [row.name for row in rows if _lives(row, since) is not False]


def watch(
    reading: Callable[[], AbstractContextManager[sa.Connection]], wanted: Callable[[str], bool] = lambda _: True
) -> None:
    """Look at the holders of runs until it is known which of them live.

    Args:
        reading: gives a connection.
        wanted: which runs, by name.
    """
    holder, run = table_of(Holder), table_of(Run)
    query = sa.select(holder, run.c.name).join_from(holder, run)

    def unknown() -> str | None:
        with reading() as connection:
            rows = [row for row in connection.execute(query) if wanted(row.name)]
            since = processes.horizon(connection)
        undecided = any(_lives(row, since) is None for row in rows)
        return "a process elsewhere is still at work on a run" if undecided else None

    processes.until_known(unknown)


def ensure_free(connection: sa.Connection, run_id: int) -> None:
    """Refuse a run that a process is at work on.

    Raises:
        StoreError: naming the process.
    """
    holder, run = table_of(Holder), table_of(Run)
    query = sa.select(holder, run.c.name).join_from(holder, run).where(holder.c.run_id == run_id)
    row = connection.execute(query).first()
    if row is None or _lives(row, processes.horizon(connection)) is False:
        return
    if row.host == _here():
        who, mend = f"process {row.pid} of this machine", "Wait until it ends, or stop it with Ctrl-C."
    else:
        who = "a process of another machine"
        mend = f"Wait until it ends; if it was killed, try again in {processes.LEASE_SECONDS:.0f} s."
    raise StoreError(f"{who} is at work on the run {row.name}. {mend}", code="run.running", pid=row.pid)


def _lives(holder: sa.Row[tuple[object, ...]], since: float | None) -> bool | None:
    """Return whether the process of a holder lives; None if it is not known yet."""
    if holder.host == _here():
        if holder.mark in _living:
            return True
        born = processes.born(holder.pid)
        if holder.pid == os.getpid() or born is None:
            return False
        if born and holder.born:
            return bool(born == holder.born)
    return processes.lease(since, holder.mark, holder.seen)


def _here() -> str:
    """Return a digest of this machine and boot: a store that is handed on names no machine."""
    return hashlib.sha256(processes.host().encode()).hexdigest()[:16]
