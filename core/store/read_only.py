"""Reading an SQLite file that cannot be written: on read-only media, or another user's.

SQLite writes beside a file even to read it: the index of its log. Where it cannot, there are three ways. SQLite itself
reads a log whose index is there, also while another user writes. A log or a journal without an index is copied with
the file, because to read past it would give other numbers. A file without either is read alone (`immutable=1`), and
every transaction checks that it is still the same.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from ..contracts.errors import StoreError

LOG = logging.getLogger(__name__)
_LOGS = ("-wal", "-journal")
State = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and time of change of a file and its logs; None for one that is absent or empty."""


class Source(NamedTuple):
    """Where a store is read."""

    url: sa.URL
    alone: bool = False
    """Whether the file is read without a log."""
    folder: tempfile.TemporaryDirectory[str] | None = None
    """The folder of a copy."""


def may_write(path: Path) -> bool:
    """Return whether this user can write a file and its folder."""
    return bool(path.stat().st_mode & 0o200) and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def source_of(url: sa.URL, path: Path) -> Source:
    """Return where to read a store whose file cannot be written.

    Raises:
        StoreError: its log has to be copied, and there is no space for it.
    """
    if _beside(path, "-wal").exists() and _beside(path, "-shm").exists() and not _size(_beside(path, "-journal")):
        return Source(url)
    if any(_size(_beside(path, log)) for log in _LOGS):
        folder = _copy(path)
        return Source(sa.URL.create("sqlite", database=str(Path(folder.name) / path.name)), folder=folder)
    return Source(url, alone=True)


def read_alone(engine: Engine, path: Path) -> None:
    """Let an engine read a file without its log, as long as the file stays as it is."""
    path = path.absolute()
    before = _state(path)

    def connecting(_: object, __: object, arguments: list[Any], parameters: dict[str, Any]) -> None:
        arguments[0] = f"{path.as_uri()}?immutable=1"
        parameters["uri"] = True

    def check(_: object) -> None:
        if _state(path) != before:
            raise _changed(path)

    sa.event.listen(engine, "do_connect", connecting)
    for event in ("begin", "commit", "rollback"):
        sa.event.listen(engine, event, check)


def remove_with(engine: Engine, folder: tempfile.TemporaryDirectory[str]) -> None:
    """Remove the folder of a copy when its engine is disposed of."""
    sa.event.listen(engine, "engine_disposed", lambda _: folder.cleanup())


def _copy(path: Path) -> tempfile.TemporaryDirectory[str]:
    before = _state(path)
    files = [file for file in (path, *(_beside(path, log) for log in _LOGS)) if file.exists()]
    size, free = sum(map(_size, files)), shutil.disk_usage(tempfile.gettempdir()).free
    log = f"the store {path} cannot be written, and has a log ({', '.join(file.name for file in files[1:])})"
    if size > free:
        raise StoreError(
            f"{log}, so that it is read from a copy; the temporary folder {tempfile.gettempdir()} has no room for its "
            f"{size:,} bytes. Set TMPDIR to a folder that has, or copy all its files and name the copy with --store.",
            code="store.read-only-log",
        )
    LOG.warning("%s: it is read from a copy in a temporary folder.", log)
    folder = tempfile.TemporaryDirectory(prefix="prejudge-store-", ignore_cleanup_errors=True)
    try:
        for file in files:
            shutil.copyfile(file, Path(folder.name) / file.name)
        if _state(path) != before:
            raise _changed(path)
    except BaseException:
        folder.cleanup()
        raise
    return folder


def _beside(path: Path, part: str) -> Path:
    return path.with_name(path.name + part)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _state(path: Path) -> State:
    return tuple(_facts(file) for file in (path, *(_beside(path, log) for log in _LOGS)))


def _facts(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat.st_size else None


def _changed(path: Path) -> StoreError:
    return StoreError(
        f"another process writes to the store {path} while it is read, and this user cannot take part in its log. "
        "Repeat the command; if that does not help, copy the store and name the copy with --store.",
        code="store.changed",
    )


__all__ = ["Source", "may_write", "read_alone", "remove_with", "source_of"]
