"""Opening a store: SQLite in WAL mode by default, or any SQLAlchemy URL.

A committed answer survives `kill -9` and a power failure (`synchronous=FULL`). Writers wait for each other instead of
failing; readers never wait.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError, NoSuchModuleError

from ..contracts.errors import DataError, StoreError
from . import server
from .file_systems import warn_of_network
from .file_watch import watch
from .patience import LostError, Patience
from .read_only import Source, may_write, read_alone, remove_with, source_of
from .schema import create_schema, refuse_other, schema_number
from .urls import show, store_url

LOG = logging.getLogger(__name__)
BUSY_SECONDS = 60


def open_engine(where: str | Path, *, writable: bool = True) -> Engine:
    """Open a store, create its tables if it is new, and return its engine.

    Raises:
        StoreError: it is not a database, not a store of prejudge, read-only, or of another schema.
    """
    url = store_url(where)
    _check_file(url, writable)

    def opened(_: bool) -> Engine:
        try:
            return _opened(url, writable)
        except LostError as error:
            if error.reached:
                raise
            raise StoreError(str(error), code=error.code) from None  # an address that never answered is not waited for

    engine = Patience().endure(opened)
    LOG.info("store %s opened%s", show(url), "" if writable else " to be read")
    return engine


def _opened(url: sa.URL, writable: bool) -> Engine:
    with translated(url):
        engine = _create(_source(url, writable))
        try:
            if writable:
                create_schema(engine.execution_options(immediate=True))
            _ensure_schema(engine, url)
        except BaseException:
            engine.dispose()
            raise
        return engine


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn the database's errors into `StoreError`: the problem, the store, the fix.

    Raises:
        StoreError: the database failed.
        DataError: the database cannot store a value, such as text with a lone surrogate.
    """
    try:
        yield
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        mend = "Install its SQLAlchemy driver with pip (for PostgreSQL: psycopg), or name a file."
        raise StoreError(f"no driver for the store {show(url)}: {error}. {mend}", code="store.driver") from None
    except DBAPIError as error:
        if url.get_backend_name() == "postgresql" and server.is_lost(error):
            message = " ".join(str(error.orig).split())
            mend = "Check that it runs and that the address is right; all committed answers are kept."
            lost = LostError(f"the server of the store {show(url)} does not answer: {message}. {mend}")
            lost.reached = server.was_reached(error)
            raise lost from None
        raise _explain(url, str(error.orig)) from None
    except sqlite3.Error as error:
        raise _explain(url, str(error)) from None
    except (UnicodeEncodeError, OverflowError) as error:
        raise DataError(f"the store {show(url)} cannot hold a value: {error}.", code="store.value") from None


def _explain(url: sa.URL, problem: str) -> StoreError:
    full = "cannot grow: the disk is full. All answers are kept; free some space and resume."
    locked = f"was locked by another process for over {BUSY_SECONDS} s. Try again when it has finished."
    mends = {
        "not a database": ("store.foreign", "is not a database. Name another file with --store."),
        "readonly": (
            "store.read-only",
            "is read-only. Make the file and its folder writable, or name another with --store.",
        ),
        "unable to open": ("store.unopened", "cannot be opened. Check that its folder exists and is writable."),
        "locked": ("store.locked", locked),
        "lock timeout": ("store.locked", locked),
        "is full": ("store.full", full),
        "No space left": ("store.full", full),
        "disk I/O": (
            "store.disk",
            "cannot be written: the disk failed or is full. All answers are kept; free some space and resume.",
        ),
        "run_trial": (
            "run.running",
            "already has trials of this run: another process resumed it. Let that process finish.",
        ),
        "decode to UTF-8": (
            "store.row-damaged",
            "holds text that is no text. `prejudge cache verify` names the rows; restore them from a copy.",
        ),
        "malformed": ("store.damaged", "is damaged. Restore it from a backup, or name another with --store."),
    }
    failed = ("store.failed", f"failed: {' '.join(problem.split())}")
    code, mend = next((mend for sign, mend in mends.items() if sign in problem), failed)
    return StoreError(f"the store {show(url)} {mend}", code=code)


def _ensure_schema(engine: Engine, url: sa.URL) -> None:
    number = schema_number(engine)
    if number is None:
        raise StoreError(
            f"the store {show(url)} is empty. Run a study first, or name one with --store.", code="store.empty"
        )
    refuse_other(number, url)


def _is_file(url: sa.URL) -> bool:
    name = url.database or ":memory:"
    return url.drivername.startswith("sqlite") and name != ":memory:" and not name.startswith("file:")


def file_of(url: sa.URL) -> Path | None:
    """Return the file of a store that is one by its path."""
    return Path(str(url.database)) if _is_file(url) else None


def lacks_file(url: sa.URL) -> bool:
    """Return whether the store is a file that does not exist, in a folder that exists."""
    return (path := file_of(url)) is not None and path.parent.is_dir() and not path.exists()


def _check_file(url: sa.URL, writable: bool) -> None:
    if (path := file_of(url)) is None:
        return
    if not path.exists():
        if not writable:
            raise StoreError(
                f"the store {path} does not exist. Run a study first, or name a store with --store.",
                code="store.missing",
            )
        return
    if path.is_dir():
        raise StoreError(f"the store {path} is a folder. Name a file with --store.", code="store.folder")
    if not path.is_file():
        raise StoreError(f"the store {path} is a pipe or a device. Name a file with --store.", code="store.foreign")
    if writable and not may_write(path):
        raise _explain(url, "readonly")


def _source(url: sa.URL, writable: bool) -> Source:
    path = file_of(url)
    return Source(url) if writable or path is None or may_write(path) else source_of(url, path)


def _create(source: Source) -> Engine:
    url = source.url
    sqlite = url.drivername.startswith("sqlite")
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS} if sqlite else server.connect_args(url))
    if sqlite:
        sa.event.listen(engine, "connect", _prepare)
        path = file_of(url)
        if path is not None and source.alone:
            read_alone(engine, path)
        elif path is not None:
            warn_of_network(path)
            watch(engine, str(path))
        if source.folder is not None:
            remove_with(engine, source.folder)
        sa.event.listen(engine, "begin", _begin)
    elif engine.dialect.name == "postgresql":
        server.listen(engine, BUSY_SECONDS)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    # The driver's own rules start no transaction before DDL, so `_begin` starts all transactions.
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        _enter_wal(cursor)
        cursor.execute("SELECT 1 FROM sqlite_master").fetchall()  # opens the log, which then stays open
    except UnicodeDecodeError:  # SQLite's message quotes the damaged name of a table
        raise sqlite3.DatabaseError("malformed database schema") from None
    for pragma in (
        "trusted_schema=OFF",
        "cell_size_check=ON",
        "synchronous=FULL",
        "foreign_keys=ON",
        "cache_size=-65536",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _enter_wal(cursor: Any) -> None:
    # If two processes open a new store at the same time, SQLite answers "locked" here without waiting.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "readonly" in str(error):
                return  # on read-only media the journal mode cannot be changed
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin(connection: sa.Connection) -> None:
    # IMMEDIATE takes the write lock at the start, so that two writers wait for each other instead of failing half-way.
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


__all__ = ["file_of", "lacks_file", "open_engine", "translated"]
