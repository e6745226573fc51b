"""The schema of the store: all tables are created together, under one number; a store of another number is refused."""

from __future__ import annotations

import logging
import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from ..contracts.errors import StoreError
from ..contracts.installing import upgrade_line
from ..contracts.version import VERSION
from .bulk import table_of
from .evidence import WEIGHED
from .tables import Migration, StoreTable, Tally
from .urls import show

LOG = logging.getLogger(__name__)
SCHEMA = 1
"""The number of the schema that this version creates and reads."""


def schema_number(engine: Engine) -> int | None:
    """Return the number of a database's schema; None for an empty database.

    Raises:
        StoreError: the database has tables of another program.
    """
    with engine.connect() as connection:
        return _number(connection, engine.url)


def create_schema(engine: Engine) -> None:
    """Create all tables if the database is empty; `engine` takes the write lock at the start of a transaction."""
    with engine.begin() as connection:
        if _number(connection, engine.url) is not None:
            return  # another process was faster
        StoreTable.metadata.create_all(connection)
        connection.execute(sa.insert(table_of(Tally)), [{"kind": kind, "rows": 0, "weight": 0} for kind in WEIGHED])
        first = {"number": SCHEMA, "name": "first", "applied": time.time()}
        connection.execute(sa.insert(table_of(Migration)), first)
    LOG.info("store %s created with schema %d", show(engine.url), SCHEMA)


def refuse_other(number: int, url: sa.URL) -> None:
    """Raise `StoreError` unless a store has the schema of this version."""
    if number != SCHEMA:
        raise StoreError(
            f"the store {show(url)} has schema {number}; prejudge {VERSION} reads schema {SCHEMA} only. Use the "
            f"version that wrote it (the newest: {upgrade_line()}), or name another store with --store.",
            code="store.schema",
        )


def _number(connection: Connection, url: sa.URL) -> int | None:
    names = set(sa.inspect(connection).get_table_names())
    if not names:
        return None
    if Migration.__tablename__ not in names:
        raise StoreError(
            f"{show(url)} is not a prejudge store; it has the tables {', '.join(sorted(names)[:5])}.",
            code="store.foreign",
        )
    number = table_of(Migration).c.number
    return int(connection.scalar(sa.select(sa.func.max(number))) or 0)


__all__ = ["SCHEMA", "create_schema", "refuse_other", "schema_number"]
