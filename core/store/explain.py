"""The parts of a key, and where two keys differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.errors import DataError, UnknownNameError
from . import Store, get_run
from .bulk import table_of
from .engine import translated
from .parts import unpack
from .tables import Exchange, Model, RunTrial

SHORTEST = 6
"""Minimum number of hexadecimal digits to search for a key."""


class Parts(NamedTuple):
    """The parts of a key, and the answer."""

    key: bytes
    identity: dict[str, Any]
    request: dict[str, Any]
    response: dict[str, Any]
    status: str


class Difference(NamedTuple):
    """A difference between the parts of two keys."""

    where: str
    first: Any
    second: Any


def find_parts(store: Store, name: str) -> Parts:
    """Return the exchange behind a key (hexadecimal, or its first digits) or a trial (`RUN/TRIAL`).

    Raises:
        UnknownNameError: there is no such exchange.
        DataError: several keys begin with these digits.
    """
    keys = _keys_of_trial(store, name) if "/" in name else _keys_that_begin(store, name)
    if not keys:
        raise UnknownNameError(
            "key or trial", name, [], "Give a key in hexadecimal, or RUN/TRIAL.", code="unknown-trial"
        )
    if len(keys) > 1:
        raise DataError(f"{len(keys)} keys begin with {name!r}. Give more digits.", code="store.key-ambiguous")
    return _parts(store, keys[0])


def differences(first: Parts, second: Parts) -> list[Difference]:
    """Return every difference between the parts of two keys; none if the keys are equal."""
    flat = [dict(_flatten({"model": parts.identity, "request": parts.request})) for parts in (first, second)]
    places = sorted(flat[0].keys() | flat[1].keys())
    pairs = ((place, flat[0].get(place), flat[1].get(place)) for place in places)
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def nearest(store: Store, parts: Parts) -> Parts | None:
    """Return the most similar exchange with another key: the same request to another model, or the reverse."""
    exchange = table_of(Exchange)
    others = sa.select(exchange.c.key).where(exchange.c.key != parts.key)
    of_key = sa.select(exchange.c.request, exchange.c.model_id).where(exchange.c.key == parts.key).limit(1).subquery()
    request = sa.select(of_key.c.request).scalar_subquery()
    model_of_key = sa.select(of_key.c.model_id).scalar_subquery()
    same_request = others.where(exchange.c.request == request).limit(1)
    same_model = (
        others.where(exchange.c.model_id == model_of_key)
        .order_by(sa.func.abs(sa.func.length(exchange.c.request) - sa.func.length(request)))
        .limit(50)
    )
    keys = [row.key for query in (same_request, same_model) for row in store.rows(query)]
    candidates = [_parts(store, key) for key in keys]
    return min(candidates, key=lambda other: len(differences(parts, other)), default=None)


def _keys_that_begin(store: Store, text: str) -> list[bytes]:
    exchange = table_of(Exchange)
    digits = text.lower()
    if len(digits) < SHORTEST or set(digits) - set("0123456789abcdef") or len(digits) > 64:
        return []
    low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
    query = sa.select(exchange.c.key).where(exchange.c.key.between(low, high)).distinct().limit(20)
    return [row.key for row in store.rows(query)]


def _keys_of_trial(store: Store, name: str) -> list[bytes]:
    run, _, trial = name.partition("/")
    table = table_of(RunTrial)
    query = sa.select(table.c.key).where(table.c.run_id == get_run(store, run).id, table.c.trial == trial).limit(1)
    return [row.key for row in store.rows(query)]


def _parts(store: Store, key: bytes) -> Parts:
    exchange, model = table_of(Exchange), table_of(Model)
    query = (
        sa.select(model.c.identity, exchange.c.request, exchange.c.response, exchange.c.status)
        .join_from(exchange, model)
        .where(exchange.c.key == key)
        .order_by(exchange.c.generation.desc())
        .limit(1)
    )
    with translated(store.url), store.engine.connect() as connection:
        row = connection.execute(query).first()
        if row is None:
            raise DataError(
                f"key {key.hex()} has no answer: the model failed. See the reasons in the run's report.",
                code="store.no-answer",
            )
        identity, stored, response, status = row
        (request,) = unpack(connection, [stored])
    return Parts(key, json.loads(identity), json.loads(request), json.loads(response), status)


def _flatten(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flatten(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _flatten(inner, f"{place}[{number}]")
    else:
        yield place, value
