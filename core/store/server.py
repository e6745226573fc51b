"""What a store on a PostgreSQL server needs beyond SQL: its sessions, the line of its writers, bulk statements, ids.

A session ends sooner than the process that uses it: a server is started again, a connection is cut, a machine goes
silent. `is_lost` tells this from an error of the store; `patience.py` then tries again. A session that is silent within
a writing transaction is ended by the server after `SILENT_SECONDS`, so that it holds up no other writer for longer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

WRITERS = int.from_bytes(b"prejudge")
"""Number of the advisory lock of writers, per database."""
SILENT_SECONDS = 10
"""Seconds after which a writer that says nothing is given up; less than a lease, so that no other loses its own."""
IDLE_SECONDS = 1.0
"""Seconds without use after which a connection is tried before it is used."""
LIBPQ = {
    "connect_timeout": ("PGCONNECT_TIMEOUT", 10),
    "keepalives_idle": ("", 30),
    "keepalives_interval": ("", 10),
    "keepalives_count": ("", 3),
    "tcp_user_timeout": ("PGTCPUSERTIMEOUT", 60_000),
}
"""Settings of a connection, with the variable of the environment that sets the same: a server that went away without a
word is noticed within a minute. Those in the URL or the environment stay."""
PASSING = ("57P", "08", "25P03", "53300", "40001", "40P01")
"""Beginnings of SQLSTATEs after which the same may succeed: the server ends or starts, the connection was cut or ended
for its silence, there are too many, two transactions were in each other's way."""
LASTING = ("authentication failed", "no pg_hba.conf entry", "does not exist", "not permitted to log in", "no password")
"""Parts of the messages of connections that are refused for good; the driver gives no SQLSTATE there."""
_TYPES = ((sa.LargeBinary, "bytea"), (sa.Float, "float8"), (sa.Integer, "int8"), (sa.Text, "text"))


def connect_args(url: sa.URL) -> dict[str, Any]:
    """Return the settings of connections that neither the URL nor the environment sets."""
    if url.get_driver_name() not in ("psycopg", "psycopg2"):
        return {}
    return {
        name: value
        for name, (variable, value) in LIBPQ.items()
        if name not in url.query and not (variable and variable in os.environ)
    }


def listen(engine: sa.Engine, lock_seconds: int) -> None:
    """Prepare the sessions of an engine: one writer at a time, and no dead connection is handed out."""

    def prepare(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET lock_timeout = '{lock_seconds}s'")
        cursor.close()
        connection.commit()

    def rest(_: Any, record: Any) -> None:
        record.info["rested"] = time.monotonic()

    def wake(connection: Any, record: Any, _: Any) -> None:
        idle = time.monotonic() - record.info.get("rested", time.monotonic())
        if idle > IDLE_SECONDS:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.dbapi.Error as error:  # type: ignore[union-attr]  # an engine has a driver
                raise sa.exc.DisconnectionError(str(error)) from error

    sa.event.listen(engine, "connect", prepare)
    sa.event.listen(engine, "checkin", rest)
    sa.event.listen(engine, "checkout", wake)
    sa.event.listen(engine, "begin", _stand_in_line)


def _stand_in_line(connection: sa.Connection) -> None:
    # A server allows concurrent writers. As with SQLite, one writes at a time, so that each sees all earlier writes.
    if connection.get_execution_options().get("immediate", False):
        connection.exec_driver_sql(
            f"SELECT set_config('idle_in_transaction_session_timeout', '{SILENT_SECONDS}s', true), "
            f"pg_advisory_xact_lock({WRITERS})"
        )


def is_lost(error: DBAPIError) -> bool:
    """Return whether the connection or its server went away, and the same may succeed later."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    if state is not None:
        return str(state).startswith(PASSING)
    return isinstance(error, OperationalError) and not any(sign in str(error.orig) for sign in LASTING)


def was_reached(error: DBAPIError) -> bool:
    """Return whether a lost server had been there: it ended a connection, or said that it lets nobody in for now."""
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return error.connection_invalidated or state is not None or "FATAL" in str(error.orig)


def horizon(connection: sa.Connection, seconds: float) -> float:
    """Return the time before which a last sign of life is too old.

    Nobody can give one while the server is away, so after its start everybody has so many seconds again.
    """
    query = "SELECT extract(epoch FROM clock_timestamp()), extract(epoch FROM pg_postmaster_start_time())"
    now, started = connection.exec_driver_sql(query).one()
    return float(now) - seconds if float(now) - float(started) > seconds else 0.0


def insert_arrays(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Insert rows by one statement, a parameter for each column.

    A statement for each row takes three times as long. `COPY` would be as fast, and a writer that is halted within one
    cannot be told from a slow one.
    """
    types = [_type_of(table.c[name]) for name in names]
    columns = zip(zip(*rows, strict=True), types, strict=True)
    values = [_floats(column) if kind == "float8" else list(column) for column, kind in columns]
    arrays = ", ".join(f"%b::{kind}[]" for kind in types)
    written = ", ".join(connection.dialect.identifier_preparer.quote(name) for name in names)
    cursor = connection.connection.cursor()
    cursor.execute(f"INSERT INTO {table.name} ({written}) SELECT * FROM unnest({arrays})", values)
    cursor.close()


def _floats(column: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else float(value) for value in column]  # an array has values of one type


def _type_of(column: sa.Column[Any]) -> str:
    return next(name for kind, name in _TYPES if isinstance(column.type, kind))
