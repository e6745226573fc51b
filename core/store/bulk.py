"""Bulk reads and inserts: lists split to the size that a query can take, and inserts without per-row statements."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlmodel import SQLModel

from .server import insert_arrays

LOOKUP = 5_000
"""Keys per query; SQLite allows 32,766 parameters."""
T = TypeVar("T")
_INSERTIONS: dict[tuple[str, str, str, tuple[str, ...]], tuple[str, tuple[str, ...] | None]] = {}


def insert_many(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows with these columns, without building a statement per row."""
    if not rows:
        return
    if connection.dialect.driver == "psycopg":
        insert_arrays(connection, table, names, rows)
        return
    statement, order = _insertion(connection.dialect, table, tuple(names))
    values: Any = rows
    if order is None:
        values = [dict(zip(names, row, strict=True)) for row in rows]
    elif order != tuple(names):
        values = list(map(itemgetter(*(names.index(name) for name in order)), rows))
    if connection.dialect.name == "sqlite":
        connection.connection.cursor().executemany(statement, values)
    else:
        connection.exec_driver_sql(statement, values)


def run_plain(connection: sa.Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run a statement with `marks`, and return its rows.

    SQLite's own cursor does it: for the few statements of a commit, SQLAlchemy takes longer than the database. Its
    errors are `sqlite3.Error`.
    """
    if connection.dialect.name != "sqlite":
        result = connection.exec_driver_sql(statement, tuple(values))
        return [tuple(row) for row in result] if result.returns_rows else []
    cursor = connection.connection.cursor()
    cursor.execute(statement, tuple(values))
    return list(cursor.fetchall())


def _insertion(dialect: sa.Dialect, table: sa.Table, names: tuple[str, ...]) -> tuple[str, tuple[str, ...] | None]:
    """Return an insert statement, and the order of its values; None: they are named."""
    key = (dialect.name, dialect.driver, table.name, names)
    if key not in _INSERTIONS:  # to compile one takes as long as to insert a hundred rows
        compiled = sa.insert(table).compile(dialect=dialect, column_keys=list(names))
        _INSERTIONS[key] = str(compiled), None if compiled.positiontup is None else tuple(compiled.positiontup)
    return _INSERTIONS[key]


def rows_among(connection: sa.Connection, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a query that ends with a column, for the rows where that is one of the values.

    Plain SQL: SQLAlchemy builds a statement with thousands of parameters more slowly than it is answered.
    """
    if connection.dialect.driver == "psycopg":
        return run_plain(connection, f"{query} = ANY(%b)", [list(values)])
    return run_plain(connection, f"{query} IN ({marks(connection, len(values))})", values)


def rows_where(
    connection: sa.Connection, query: sa.Select[Any], column: sa.ColumnElement[Any], values: Iterable[Any]
) -> Iterator[Any]:
    """Yield the rows of a query in which a column is one of the values, however many these are."""
    for some in batched(values, LOOKUP):
        yield from connection.execute(query.where(column.in_(some)))


def plain_rows(
    connection: sa.Connection, query: sa.Select[Any], size: int, *, few: bool = False
) -> Generator[list[tuple[Any, ...]]]:
    """Yield the rows of a query as the driver gives them, at most `size` at a time.

    `few`: a server may send all of them at once, so that no cursor of it is left where the connection is cut.
    """
    with _plain_cursor(connection, query, few) as cursor:
        while rows := cursor.fetchmany(size):
            yield rows


def single_rows(connection: sa.Connection, query: sa.Select[Any]) -> Generator[tuple[Any, ...]]:
    """Yield the rows of a query as the driver gives them, where a few of them may fill the memory."""
    with _plain_cursor(connection, query, few=False) as cursor:
        yield from cursor


@contextmanager
def _plain_cursor(connection: sa.Connection, query: sa.Select[Any], few: bool) -> Iterator[Any]:
    statement = str(query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))
    # SQLite's own cursor streams too, and its plain tuples take a third of the time of named rows.
    plain = connection.dialect.name == "sqlite"
    options = {} if plain or few else {"stream_results": True}
    result = connection.exec_driver_sql(statement, execution_options=options)
    try:
        yield result.cursor if plain else result
    finally:
        result.close()


def byte_length(connection: sa.Connection, column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return the length in bytes of a text."""
    if connection.dialect.name == "sqlite":
        return sa.func.length(sa.cast(column, sa.LargeBinary))
    return sa.func.octet_length(column)


def marks(connection: sa.Connection, number: int) -> str:
    """Return so many placeholders of a plain statement, with commas between."""
    return ", ".join(["?" if connection.dialect.paramstyle == "qmark" else "%s"] * number)


def table_of(kind: type[SQLModel]) -> sa.Table:
    """Return the SQLAlchemy table of a SQLModel class."""
    return kind.metadata.tables[str(kind.__tablename__)]


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part
