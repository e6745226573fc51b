"""Bulk reads and inserts: lists split to the size that a query can take, and inserts without per-row statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlmodel import SQLModel

LOOKUP = 5_000
"""Keys per query; SQLite allows 32,766 parameters."""
T = TypeVar("T")


def insert_many(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows with these columns, without building a statement per row."""
    if not rows:
        return
    statement = sa.insert(table).compile(dialect=connection.dialect, column_keys=list(names))
    order = statement.positiontup
    values: Any
    if order is None:
        values = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        places = [names.index(name) for name in order]
        values = [tuple(row[place] for place in places) for row in rows]
    connection.exec_driver_sql(str(statement), values)


def plain_rows(connection: sa.Connection, query: sa.Select[Any], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a query as the driver gives them, at most `size` at a time."""
    statement = str(query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))
    # SQLite's own cursor streams too, and its plain tuples take a third of the time of named rows.
    plain = connection.dialect.name == "sqlite"
    options = {} if plain else {"stream_results": True}
    result = connection.exec_driver_sql(statement, execution_options=options)
    source: Any = result.cursor if plain else result
    try:
        while rows := source.fetchmany(size):
            yield rows
    finally:
        result.close()


def table_of(kind: type[SQLModel]) -> sa.Table:
    """Return the SQLAlchemy table of a SQLModel class."""
    return SQLModel.metadata.tables[str(kind.__tablename__)]


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part
