"""Rows that a run uses: the exchanges of its trials, of their earlier attempts, and their images.

Ids are collected in temporary tables, so that memory does not grow with the run and one statement handles a whole set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import sqlalchemy as sa

from .attempts import answers_to, stream_attempts
from .bulk import LOOKUP, batched, table_of
from .tables import Exchange, RunTrial

READ = 10_000
"""Rows read at a time."""
# Quotes inside a JSON string are escaped, so these patterns cannot match within a text.
_IMAGE = re.compile(r'"(?:sha256|image)":"([0-9a-f]{64})"')
_NAMES_IMAGE = ('%"sha256":"%', '%"image":"%')


def gather_uses(connection: sa.Connection, name: str, run: sa.ColumnElement[bool]) -> sa.Table:
    """Return a temporary table `name` of the ids of all exchanges that the runs with this condition use.

    Args:
        connection: a connection in a transaction.
        name: the table's name; an existing table is replaced.
        run: a condition on `run_trial`.
    """
    used = new_ids(connection, name)
    trials = table_of(RunTrial)
    pointed = sa.select(trials.c.exchange_id).where(run, trials.c.exchange_id.is_not(None)).distinct()
    connection.execute(sa.insert(used).from_select(["id"], pointed))
    for attempts in stream_attempts(connection, run):
        wanted = {pair for trial in attempts for pair in trial.pairs}
        _add(connection, used, (row[0] for row in answers_to(connection, attempts) if row[1:] in wanted))
    return used


def new_ids(connection: sa.Connection, name: str) -> sa.Table:
    """Return an empty temporary table of ids."""
    ids = sa.Table(name, sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), prefixes=["TEMPORARY"])
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
    ids.create(connection, checkfirst=False)
    return ids


def images_in(text: str) -> set[str]:
    """Return the images (sha256, hex) in canonical requests or responses."""
    return set(_IMAGE.findall(text)) if '"sha256":"' in text or '"image":"' in text else set()


def names_image() -> sa.ColumnElement[bool]:
    """Return the condition for exchanges that may contain an image."""
    exchange = table_of(Exchange)
    columns = (exchange.c.request, exchange.c.response)
    return sa.or_(*(column.like(text) for column, text in zip(columns, _NAMES_IMAGE, strict=True)))


def stream_texts(connection: sa.Connection, where: sa.ColumnElement[bool]) -> Iterator[str]:
    """Yield stored request and response of exchanges."""
    exchange = table_of(Exchange)
    query = sa.select(exchange.c.request, exchange.c.response).where(where)
    for request, response in connection.execute(query, execution_options={"yield_per": READ}):
        yield f"{request} {response}"


def _add(connection: sa.Connection, ids: sa.Table, numbers: Iterable[int]) -> None:
    """Add ids that are not there yet."""
    for some in batched(numbers, LOOKUP):
        present = set(connection.scalars(sa.select(ids.c.id).where(ids.c.id.in_(some))))
        if new := [{"id": number} for number in dict.fromkeys(some) if number not in present]:
            connection.execute(sa.insert(ids), new)
