"""Processes that read one state of a store together, whoever writes meanwhile.

A server of PostgreSQL lets them read the state that this process reads. SQLite has no name for a state: all begin to
read, and begin again if somebody committed meanwhile.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from traceback import clear_frames
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from ..contracts.processes import Helper, ProcessPool, start_helpers
from .bulk import table_of
from .snapshots import snapshot
from .store import Store
from .tables import Exchange

LOG = logging.getLogger(__name__)
EACH = 50_000
"""Exchanges for which one more process is worth the second that its start takes."""
TRIES, PAUSE = 100, 0.01
"""How often all begin to read, and the seconds between."""
BROKEN = (DBAPIError, sqlite3.Error)
"""What reading a damaged store raises."""
Read = Callable[[Store], AbstractContextManager[sa.Connection]]


def told(error: Exception) -> str:
    """Return an error of `BROKEN` in the words of the database."""
    return " ".join(str(getattr(error, "orig", error)).split())


class Crew(ProcessPool):
    """This process and its helpers, each with a connection to the same state of a store.

    The connection comes before the values of each task.
    """

    def __init__(self, connection: sa.Connection, helpers: Iterable[Helper] = ()) -> None:
        super().__init__(helpers)
        self.connection = connection

    def _call(self, work: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        # An error ends the transaction of a server, and with it all reading, unless it was in a part of that.
        part = self.connection.begin_nested() if self.connection.dialect.name == "postgresql" else nullcontext()
        with part:
            try:
                return work(self.connection, *values)
            except Exception as error:
                # What the call was reading ends here: after the part, to close its cursor would be an error.
                clear_frames(error.__traceback__)
                raise


def last_exchange(connection: sa.Connection) -> int:
    """Return the highest id of an exchange: nearly the number of exchanges, and found at once."""
    return int(connection.scalar(sa.select(sa.func.max(table_of(Exchange).c.id))) or 0)


@contextmanager
def crew(
    store: Store, processes: int, read: Read = snapshot, size: Callable[[sa.Connection], int] = last_exchange
) -> Iterator[Crew]:
    """Yield at most so many processes, this one among them, that read one state of a store.

    Args:
        store: the store.
        processes: how many.
        read: how each reads; a function of a module.
        size: how many exchanges are read, for which fewer processes may do.
    """
    with read(store) as connection:
        try:
            exchanges = size(connection)
        except BROKEN:
            exchanges = 0  # whoever reads the store says so
        url = store.engine.url.render_as_string(hide_password=False)  # of the copy, if it is read from one
        with start_helpers(worthwhile(processes, exchanges), _connected, url, read) as helpers:
            yield Crew(connection, _together(store, connection, helpers))


def worthwhile(processes: int, exchanges: int) -> int:
    """Return how many processes besides this one are worth their start, of at most so many with this one."""
    return min(processes, exchanges // EACH) - 1


def _together(store: Store, connection: sa.Connection, ready: list[Helper]) -> list[Helper]:
    """Return the helpers that read the state that this process reads: all that could be started, or none."""
    if not ready:
        return []
    if connection.dialect.name == "postgresql":
        number = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
        return [helper for helper in ready if helper.does(_begin, f"SET TRANSACTION SNAPSHOT '{number}'")]
    with store.engine.connect() as watcher:
        for _ in range(TRIES):
            before, begin = _version(watcher), "SELECT count(*) FROM sqlite_master"
            _begin(connection, begin)
            ready = [helper for helper in ready if helper.does(_begin, begin)]
            if _version(watcher) == before:
                return ready
            time.sleep(PAUSE)
    LOG.info("others write to the store all the time: one process reads it")
    return []


def _version(watcher: sa.Connection) -> int:
    """Return a number that changes whenever somebody commits."""
    watcher.rollback()
    return int(watcher.exec_driver_sql("PRAGMA data_version").scalar_one())


def _begin(connection: sa.Connection, statement: str) -> None:
    """Begin to read the present state."""
    connection.rollback()
    connection.exec_driver_sql(statement)


@contextmanager
def _connected(url: str, read: Read) -> Iterator[tuple[sa.Connection]]:
    with Store(url, writable=False) as store, read(store) as connection:
        yield (connection,)
