"""Making the digests of a store that is older than they are, in parts: after an interruption, the next opening goes on.

What was changed before cannot be found, so every answer filled here is marked with the time (`exchange.filled`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from .bulk import table_of
from .evidence import READ, answer_digest, recount, seal, trial_digest
from .tables import Exchange, Run, RunTrial, Tally
from .urls import show

LOG = logging.getLogger(__name__)
ANNOUNCED = 20_000
"""Answers from which on the wait is announced: some seconds."""


def is_filling(engine: Engine) -> bool:
    """Return whether digests are still to be made."""
    with engine.connect() as connection:
        return _is_filling(connection)


def fill(engine: Engine) -> None:
    """Make all digests that are missing; `engine` takes the write lock at the start of a transaction."""
    if not is_filling(engine):
        return
    with engine.connect() as connection:
        count = connection.scalar(sa.select(sa.func.count()).select_from(table_of(Exchange))) or 0
        runs = _open_runs(connection)
    level = logging.WARNING if count >= ANNOUNCED else logging.INFO
    LOG.log(level, "store %s: making digests of %s answers, once; an interruption is harmless", show(engine.url), count)
    _in_parts(engine, partial(_answers, time.time()))
    for run_id in runs:
        _in_parts(engine, partial(_trials, run_id))
    with engine.begin() as connection:
        if _is_filling(connection):  # else another process was faster
            recount(connection)
            for run_id in _open_runs(connection):
                seal(connection, run_id)
            table = table_of(Tally)
            connection.execute(sa.delete(table).where(table.c.kind == "filling"))


def _open_runs(connection: Connection) -> list[int]:
    table = table_of(Run)
    return list(connection.scalars(sa.select(table.c.id).where(table.c.record.is_(None)).order_by(table.c.id)))


def _is_filling(connection: Connection) -> bool:
    table = table_of(Tally)
    return connection.scalar(sa.select(table.c.kind).where(table.c.kind == "filling")) is not None


def _in_parts(engine: Engine, part: Callable[[Connection, Any], Any]) -> None:
    """Call `part` with the place where the last call ended, each in a transaction, until it returns None."""
    after: Any = None
    while True:
        with engine.begin() as connection:
            after = part(connection, after)
        if after is None:
            return


def _answers(now: float, connection: Connection, after: int | None) -> int | None:
    table = table_of(Exchange)
    names = ("key", "operation", "response", "status", "input_tokens", "output_tokens", "latency", "created")
    query = (
        sa.select(table.c.id, *(table.c[name] for name in names))
        .where(table.c.id > (after or 0), table.c.digest.is_(None))
        .order_by(table.c.id)
        .limit(READ)
    )
    rows = connection.execute(query).all()
    made = [{"at": row[0], "new": answer_digest(*row[1:]), "now": now} for row in rows]
    if made:
        update = sa.update(table).where(table.c.id == sa.bindparam("at"))
        connection.execute(update.values(digest=sa.bindparam("new"), filled=sa.bindparam("now")), made)
    return rows[-1][0] if rows else None


def _trials(run_id: int, connection: Connection, after: tuple[str, int] | None) -> tuple[str, int] | None:
    table, exchange = table_of(RunTrial), table_of(Exchange)
    stage, ordinal = after or ("", -1)
    place = sa.or_(table.c.stage > stage, sa.and_(table.c.stage == stage, table.c.ordinal > ordinal))
    query = (
        sa.select(table.c.stage, table.c.ordinal, table.c.trial, table.c.factors, table.c.key, exchange.c.digest)
        .join_from(table, exchange, table.c.exchange_id == exchange.c.id, isouter=True)
        .where(table.c.run_id == run_id, table.c.digest.is_(None), place)
        .order_by(table.c.stage, table.c.ordinal)
        .limit(READ)
    )
    rows = connection.execute(query).all()
    made = [{"s": row[0], "o": row[1], "new": trial_digest(*row)} for row in rows]
    own = (table.c.run_id == run_id, table.c.stage == sa.bindparam("s"), table.c.ordinal == sa.bindparam("o"))
    if made:
        connection.execute(sa.update(table).where(*own).values(digest=sa.bindparam("new")), made)
    return (rows[-1][0], rows[-1][1]) if rows else None
