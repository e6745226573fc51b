"""Detects that the file of an SQLite store was removed or replaced while it was in use.

SQLite would continue to write into the deleted file, and committed answers would be lost. The check costs three `stat`
calls per transaction: some microseconds, compared with milliseconds of a commit.
"""

from __future__ import annotations

import os
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from ..contracts.errors import StoreError

Seen = tuple[tuple[int, int] | None, ...]
"""Device and inode of the database, its log and its shared index; None for a file that does not exist."""
_PARTS = ("", "-wal", "-shm")


def watch(engine: Engine, path: str) -> None:
    """Make every writing transaction of an engine fail if the store's files are no longer those it opened.

    `StoreError` is raised at the start of a transaction, before a commit, and instead of opening a connection, which
    would create a new, empty store.
    """
    path = os.path.abspath(path)
    first: list[Seen] = []

    def connecting(*_: object) -> None:
        if first and _seen(path)[0] != first[0][0]:
            raise _gone(path)

    def connected(_: object, record: Any) -> None:
        record.info["seen"] = _seen(path)
        first.append(record.info["seen"])

    def check(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("immediate") and _seen(path) != connection.info["seen"]:
            raise _gone(path)

    sa.event.listen(engine, "do_connect", connecting)
    sa.event.listen(engine, "connect", connected)
    sa.event.listen(engine, "begin", check)
    sa.event.listen(engine, "commit", check)


def _seen(path: str) -> Seen:
    return tuple(_identity(path + part) for part in _PARTS)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _gone(path: str) -> StoreError:
    return StoreError(
        f"the store {path} was removed or replaced while it was in use. The run stopped. "
        "Restore the file (with its -wal, if it exists) or name another with --store, and resume.",
        code="store.gone",
    )
