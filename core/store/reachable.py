"""Rows that a run uses: the exchanges of its trials, earlier unreadable attempts, and their images.

Ids are collected in temporary tables, so that memory does not grow with the run and one statement handles a whole set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
import sqlalchemy as sa

from ..contracts.canonical import decode_request, encode, request_key
from .bulk import LOOKUP, batched, table_of
from .parts import unpack
from .tables import Exchange, Model, RunTrial

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
    for keys in batched(_earlier_keys(connection, used), LOOKUP):
        _add_keys(connection, used, keys)
    return used


def new_ids(connection: sa.Connection, name: str) -> sa.Table:
    """Return an empty temporary table of ids."""
    ids = sa.Table(name, sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), prefixes=["TEMPORARY"])
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
    ids.create(connection, checkfirst=False)
    return ids


def images_in(text: str) -> set[str]:
    """Return the images (sha256, hex) in canonical requests or responses."""
    return set(_IMAGE.findall(text))


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


def _earlier_keys(connection: sa.Connection, used: sa.Table) -> list[bytes]:
    """Return the keys of the attempts before those in `used`, because a trial's row has only its last attempt."""
    exchange, model = table_of(Exchange), table_of(Model)
    query = (
        sa.select(model.c.digest, exchange.c.request)
        .join_from(exchange, model)
        .where(exchange.c.id.in_(sa.select(used.c.id)), exchange.c.request.like('{"attempt":%'))
    )
    keys: list[bytes] = []
    for rows in connection.execute(query, execution_options={"yield_per": READ}).partitions():
        requests = unpack(connection, (request for _, request in rows))
        keys.extend(key for (digest, _), text in zip(rows, requests, strict=True) for key in _before(digest, text))
    return keys


def _before(digest: bytes, text: str) -> Iterator[bytes]:
    request = decode_request(text)
    for attempt in range(request.attempt):
        yield request_key(bytes(digest), encode(msgspec.structs.replace(request, attempt=attempt)))


def _add_keys(connection: sa.Connection, used: sa.Table, keys: Iterable[bytes]) -> None:
    exchange = table_of(Exchange)
    found = sa.select(exchange.c.id).where(exchange.c.key.in_(list(keys)), exchange.c.id.not_in(sa.select(used.c.id)))
    connection.execute(sa.insert(used).from_select(["id"], found))
