"""A store as somebody may hand it on: changed, with all digests made anew."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import msgspec
import sqlalchemy as sa

from prejudge.core.store import Store
from prejudge.core.store.bulk import table_of
from prejudge.core.store.evidence import (
    ANSWER,
    DIGEST_BYTES,
    answer_digest,
    earlier_answers_in,
    recount,
    seal,
    trial_digest,
)
from prejudge.core.store.tables import Exchange, Run, RunTrial


def reseal(store: Store | Path | str) -> None:
    """Make every digest of a store anew from its rows as they are."""
    if not isinstance(store, Store):
        with Store(store) as opened:
            return reseal(opened)
    exchange, trial, run = map(table_of, (Exchange, RunTrial, Run))
    fields = ("stage", "ordinal", "trial", "factors", "key")
    with store.engine.begin() as connection:
        digests, renewed = {}, {}
        answers = sa.select(exchange.c.id, exchange.c.digest, *(exchange.c[name] for name in ANSWER))
        for number, before, *answer in connection.execute(answers).all():
            digests[number] = renewed[before] = answer_digest(*answer)
            connection.execute(sa.update(exchange).where(exchange.c.id == number).values(digest=digests[number]))
        for row in connection.execute(sa.select(trial)).all():
            place = (getattr(trial.c, name) == getattr(row, name) for name in ("run_id", "stage", "ordinal"))
            before = earlier_answers_in(row.digest)
            starts = range(0, len(before), DIGEST_BYTES)
            earlier = b"".join(renewed[before[start : start + DIGEST_BYTES]] for start in starts)
            values = (getattr(row, name) for name in fields)
            digest = trial_digest(*values, digests.get(row.exchange_id), earlier)
            connection.execute(sa.update(trial).where(*place).values(digest=digest))
        recount(connection)
        for number in connection.scalars(sa.select(run.c.id)).all():
            seal(connection, number)
    return None


COLUMNS = "key, operation, response, status, input_tokens, output_tokens, latency, created"


def rewrite(store: sqlite3.Connection, where: str, **changes: str) -> None:
    """Change an answer, and make its digest and the tally anew as `docs/store.md` describes them; the trials stay."""
    ((number, generation, before),) = store.execute(f"SELECT id, generation, digest FROM exchange WHERE {where}")
    for column, value in changes.items():
        store.execute(f"UPDATE exchange SET {column} = ? WHERE id = ?", (value, number))
    (fields,) = store.execute(f"SELECT {COLUMNS} FROM exchange WHERE id = ?", (number,)).fetchall()
    after = hashlib.sha256(msgspec.msgpack.encode(fields)).digest()
    weights = [int.from_bytes(d[:4], "big") + generation * int.from_bytes(d[4:6], "big") for d in (before, after)]
    store.execute("UPDATE exchange SET digest = ? WHERE id = ?", (after, number))
    store.execute("UPDATE tally SET weight = weight + ? WHERE kind = 'exchange'", (weights[1] - weights[0],))
