"""A store as somebody may hand it on: changed, with all digests made anew."""

from __future__ import annotations

from pathlib import Path

from prejudge.core.store import Store
from prejudge.core.store.fill import fill


def reseal(store: Store | Path | str) -> None:
    """Make every digest of a store anew from its rows as they are."""
    if not isinstance(store, Store):
        with Store(store) as opened:
            return reseal(opened)
    with store.engine.begin() as connection:
        for table, columns in {"exchange": ("digest",), "run_trial": ("digest",), "run": ("head", "record")}.items():
            for column in columns:
                connection.exec_driver_sql(f"UPDATE {table} SET {column} = NULL")
        connection.exec_driver_sql("INSERT INTO tally VALUES ('filling', 0, 0)")
    fill(store.engine.execution_options(immediate=True))
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exchange SET filled = NULL")
        connection.exec_driver_sql("UPDATE run SET unproved = NULL")
        connection.exec_driver_sql("UPDATE tally SET rows = 0 WHERE kind = 'unproved'")
    return None
