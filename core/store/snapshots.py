"""Connections to one state of a store, to read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from .engine import translated
from .store import Store


@contextmanager
def snapshot(store: Store) -> Iterator[sa.Connection]:
    """Yield a connection with a snapshot of the store, unaffected by later writes."""
    with translated(store.url), store.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def damaged_snapshot(store: Store) -> Iterator[sa.Connection]:
    """Yield a connection with a snapshot of a store that may be damaged.

    SQLite gives texts that are no UTF-8, too, because bytes of them were changed.
    """
    with snapshot(store) as connection:
        if connection.dialect.name != "sqlite":
            yield connection
            return
        driver: Any = connection.connection.driver_connection
        before, driver.text_factory = driver.text_factory, _decode
        try:
            yield connection
        finally:
            driver.text_factory = before


def _decode(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
