"""A store as somebody may hand it on: changed, with all digests made anew."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import msgspec

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


ANSWER = "key, operation, response, status, input_tokens, output_tokens, latency, created"


def rewrite(store: sqlite3.Connection, where: str, **changes: str) -> None:
    """Change an answer, and make its digest and the tally anew as `docs/store.md` describes them; the trials stay."""
    ((number, generation, before),) = store.execute(f"SELECT id, generation, digest FROM exchange WHERE {where}")
    for column, value in changes.items():
        store.execute(f"UPDATE exchange SET {column} = ? WHERE id = ?", (value, number))
    (fields,) = store.execute(f"SELECT {ANSWER} FROM exchange WHERE id = ?", (number,)).fetchall()
    after = hashlib.sha256(msgspec.msgpack.encode(fields)).digest()
    weights = [int.from_bytes(d[:4], "big") + generation * int.from_bytes(d[4:6], "big") for d in (before, after)]
    store.execute("UPDATE exchange SET digest = ? WHERE id = ?", (after, number))
    store.execute("UPDATE tally SET weight = weight + ? WHERE kind = 'exchange'", (weights[1] - weights[0],))
