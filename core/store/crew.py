"""Processes that read one state of a store together, whoever writes meanwhile.

They are started anew: a forked process would inherit the locks of the threads of this one. A server of PostgreSQL lets
them read the state that this process reads. SQLite has no name for a state: all begin to read, and begin again if
somebody committed meanwhile.
"""

from __future__ import annotations

import logging
import signal
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from ..contracts.errors import StoreError
from .bulk import table_of
from .snapshots import snapshot
from .store import Store
from .tables import Exchange

Read = Callable[[Store], AbstractContextManager[sa.Connection]]
LOG = logging.getLogger(__name__)
EACH = 50_000
"""Exchanges for which one more process is worth the second that its start takes."""
AHEAD = 2
"""Tasks that a process is given at once, so that it does not wait for the next."""
KEPT = 4
"""Tasks of each process of which the results may wait for those before."""
TRIES, PAUSE = 100, 0.01
"""How often all begin to read, and the seconds between."""
R = TypeVar("R")
BROKEN = (DBAPIError, sqlite3.Error)
"""What reading a damaged store raises."""


def told(error: Exception) -> str:
    """Return an error of `BROKEN` in the words of the database."""
    return " ".join(str(getattr(error, "orig", error)).split())


class _Task:
    """A call, and what came of it."""

    def __init__(self, work: Callable[..., Any], values: tuple[Any, ...]) -> None:
        self.work, self.values = work, values
        self.done = self.left = False
        """Left: another process could not do it. This one does when its turn comes, and meets the error itself."""
        self.found: Any = None
        self.error: Exception | None = None


class _Helper:
    """A process that reads the store, and the tasks that it has."""

    def __init__(self, store: Store, read: Read) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        url = store.url.render_as_string(hide_password=False)
        self._process = context.Process(target=_serve, args=(theirs, url, read), daemon=True)
        self.tasks: deque[_Task] = deque()
        with _uninterrupted():
            self._process.start()
        theirs.close()

    def give(self, task: _Task) -> None:
        self.tasks.append(task)
        with suppress(OSError):  # it ended: that is noticed where its results are read
            self.pipe.send((task.work, task.values))

    def close(self) -> None:
        self.pipe.close()
        self._process.terminate()
        self._process.join()


class Crew:
    """This process and its helpers, each with a connection to the same state of a store."""

    def __init__(self, connection: sa.Connection, helpers: Iterable[_Helper] = ()) -> None:
        self.connection, self._helpers = connection, list(helpers)

    def map(self, work: Callable[..., R], tasks: Iterable[tuple[Any, ...]], kept: int = KEPT) -> Iterator[R]:
        """Yield what `work` returns for a connection and the values of each task, in the order of the tasks.

        `work` is a function of a module. This process works, too. What a task or `tasks` raises is raised after the
        results before it, as if this process had done all.

        Args:
            work: what to do.
            tasks: the values of each call.
            kept: tasks of each process of which the results may wait for those before.
        """
        coming, waiting = _tasks(work, tasks), deque[_Task]()
        most = kept * (1 + len(self._helpers))
        while True:
            for helper in self._helpers:
                while len(helper.tasks) < AHEAD and len(waiting) < most and (task := next(coming, None)) is not None:
                    waiting.append(task)
                    if not task.done:
                        helper.give(task)
            self._collect(0)
            if waiting and (waiting[0].done or waiting[0].left):
                yield self._end(waiting.popleft())
            elif len(waiting) < most and (task := next(coming, None)) is not None:
                waiting.append(task)
                if not task.done:
                    self._do(task)
            elif waiting:
                self._collect(None)
            else:
                return

    def _do(self, task: _Task) -> None:
        # An error ends the transaction of a server, and with it all reading, unless it was in a part of that.
        part = self.connection.begin_nested() if self.connection.dialect.name == "postgresql" else nullcontext()
        try:
            with part:
                task.found = task.work(self.connection, *task.values)
        except Exception as error:
            task.error = error
        task.done = True

    def _end(self, task: _Task) -> Any:
        if not task.done:
            self._do(task)
        if task.error is not None:
            raise task.error
        return task.found

    def _collect(self, seconds: float | None) -> None:
        """Take the results that helpers have, or wait for some."""
        busy = {helper.pipe: helper for helper in self._helpers if helper.tasks}
        for pipe in wait(list(busy), seconds) if busy else ():
            helper = busy[pipe]  # type: ignore[index]
            try:
                done, found = helper.pipe.recv()
            except (EOFError, OSError):
                LOG.info("a process that reads the store ended; its part is read by this one")
                self._helpers.remove(helper)
                for task in helper.tasks:
                    task.left = True
            else:
                task = helper.tasks.popleft()
                task.found, task.done, task.left = found, done, not done


@contextmanager
def crew(store: Store, processes: int, read: Read = snapshot) -> Iterator[Crew]:
    """Yield at most so many processes, this one among them, that read one state of a store, each by `read`."""
    helpers: list[_Helper] = []
    try:
        with read(store) as connection:
            while len(helpers) + 1 < min(processes, _worth(connection)):
                helpers.append(_Helper(store, read))
            yield Crew(connection, _together(store, connection, helpers))
    finally:
        for helper in helpers:
            helper.close()


def _worth(connection: sa.Connection) -> int:
    try:
        return int(connection.scalar(sa.select(sa.func.max(table_of(Exchange).c.id))) or 0) // EACH
    except BROKEN:
        return 1  # whoever checks the store says so


def _together(store: Store, connection: sa.Connection, helpers: list[_Helper]) -> list[_Helper]:
    """Return the helpers that read the state that this process reads: all that could be started, or none."""
    ready = [helper for helper in helpers if _answers(helper)]
    if not ready:
        return []
    if connection.dialect.name == "postgresql":
        number = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
        return [helper for helper in ready if _begins(helper, f"SET TRANSACTION SNAPSHOT '{number}'")]
    with store.engine.connect() as watcher:
        for _ in range(TRIES):
            before, begin = _version(watcher), "SELECT count(*) FROM sqlite_master"
            _begin(connection, begin)
            ready = [helper for helper in ready if _begins(helper, begin)]
            if _version(watcher) == before:
                return ready
            time.sleep(PAUSE)
    LOG.info("others write to the store all the time: one process checks it")
    return []


def _version(watcher: sa.Connection) -> int:
    """Return a number that changes whenever somebody commits."""
    watcher.rollback()
    return int(watcher.exec_driver_sql("PRAGMA data_version").scalar_one())


def _begin(connection: sa.Connection, statement: str) -> None:
    """Begin to read the present state."""
    connection.rollback()
    connection.exec_driver_sql(statement)


def _begins(helper: _Helper, statement: str) -> bool:
    with suppress(OSError):
        helper.pipe.send((_begin, (statement,)))
        return _answers(helper)
    return False


def _answers(helper: _Helper) -> bool:
    try:
        return bool(helper.pipe.recv()[0])
    except (EOFError, OSError):
        return False


def _tasks(work: Callable[..., Any], every: Iterable[tuple[Any, ...]]) -> Iterator[_Task]:
    try:
        for values in every:
            yield _Task(work, values)
    except Exception as error:
        task = _Task(work, ())
        task.error, task.done = error, True
        yield task


def _result(connection: sa.Connection, work: Callable[..., Any], values: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, work(connection, *values)
    except Exception:
        return False, None


def _serve(pipe: Connection, url: str, read: Read) -> None:
    """Be a helper, until the other end of the pipe is closed: also if the process there was killed."""
    with suppress(EOFError, OSError, StoreError), Store(url, writable=False) as store, read(store) as connection:
        pipe.send((True, None))
        while True:
            work, values = pipe.recv()
            pipe.send(_result(connection, work, values))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a process that is started here never see Ctrl-C, which ends this one, and it with it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, which unblocks the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
