"""Whether an unexpected error in the use of a store comes from the store: it may hold anything, where it was damaged.

Readers take rows for what the schema says, and are not all prepared for others: to look at each value would cost every
reading. So the store is looked at when an error has come up that no reader explains.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ..contracts.errors import PrejudgeError
from .damage import damaged
from .engine import translated
from .tables import Run

if TYPE_CHECKING:
    from .store import Store

UNEXPECTED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    SQLAlchemyError,
    sqlite3.Error,
)
"""Errors that reading a damaged row may raise."""
_STORED = (
    (sa.LargeBinary, ("blob",)),
    (sa.Float, ("real", "integer")),
    (sa.Integer, ("integer",)),
    (sa.Text, ("text",)),
)
"""How SQLite says the type of the values of a column, which it does not enforce."""


def blame(store: Store, error: BaseException | None) -> None:
    """Raise an error that has a code if an unexpected one comes from damage of the store.

    Raises:
        DataError: a row is damaged.
        StoreError: the database cannot be read.
    """
    if isinstance(error, PrejudgeError) or not isinstance(error, UNEXPECTED):
        return
    with translated(store.url):
        if (fault := _wrong_type(store) or _checked(store)) is not None:
            raise damaged(*fault) from error
        if isinstance(error, SQLAlchemyError | sqlite3.Error):
            raise error


def _wrong_type(store: Store) -> tuple[str, str] | None:
    """Return the first value that is of another type than its column."""
    if store.engine.dialect.name != "sqlite":
        return None
    with store.engine.connect() as connection:
        for table in Run.metadata.tables.values():
            for column in table.columns:
                query = f'SELECT rowid, typeof("{column.name}") FROM {table.name} WHERE NOT {fits(column)} LIMIT 1'
                if (row := connection.exec_driver_sql(query).first()) is not None:
                    return f"{table.name}.{column.name}, row {row[0]}", f"it holds {row[1]} where it must not"
    return None


def fits(column: sa.Column[object]) -> str:
    """Return the condition in SQL that a column of SQLite has values of its type."""
    kinds = next(kinds for kind, kinds in _STORED if isinstance(column.type, kind))
    nullable = ("null",) if column.nullable and not column.primary_key else ()
    return f'(typeof("{column.name}") IN ({", ".join(repr(kind) for kind in (*kinds, *nullable))}))'


def _checked(store: Store) -> tuple[str, str] | None:
    """Return the first problem that a check of the store finds."""
    from .checks import Checks  # which imports the store

    try:
        problem = next(Checks(store).problems(), None)
    except UNEXPECTED:
        return None  # then the error that led here says more
    return None if problem is None else (problem.where, problem.problem)


__all__ = ["UNEXPECTED", "blame", "fits"]
