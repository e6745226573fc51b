"""The answers to the attempts of a trial before its last one, of which its digest contains the digests.

A row of `run_trial` points to its last exchange only. The keys of the others follow from that one's request, and the
digests say which of several answers to such a key the trial had: other runs and copies may have brought others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.canonical import decode_request, encode, request_key
from .bulk import LOOKUP, batched, plain_rows, rows_among, table_of
from .damage import UNREADABLE
from .evidence import DIGEST_BYTES
from .parts import unpack
from .tables import Exchange, Model, RunTrial


class Attempts(NamedTuple):
    """The attempts of a trial that came before its last one, in order."""

    stage: str
    trial: str
    key: bytes
    """Key of the last attempt."""
    keys: tuple[bytes, ...]
    """Keys of the earlier ones, as the request of the last one says; none if it says another number of them."""
    digests: tuple[bytes, ...]
    """Digests of their answers, as the trial's digest says."""

    @property
    def pairs(self) -> list[tuple[bytes, bytes]]:
        """Return the key and the digest of each earlier answer; none if they do not fit."""
        return list(zip(self.keys, self.digests, strict=True)) if self.keys else []


def stream_attempts(connection: sa.Connection, where: sa.ColumnElement[bool]) -> Iterator[list[Attempts]]:
    """Yield the earlier attempts of the trials with this condition that were asked again and answered, in parts.

    Args:
        connection: a connection in a transaction.
        where: a condition on `run_trial`.
    """
    trials, exchange, model = table_of(RunTrial), table_of(Exchange), table_of(Model)
    query = (
        sa.select(trials.c.stage, trials.c.trial, trials.c.key, trials.c.digest, model.c.digest, exchange.c.request)
        .join_from(trials, exchange, trials.c.exchange_id == exchange.c.id)
        .join(model)
        .where(where, sa.func.length(trials.c.digest) > DIGEST_BYTES)
        .order_by(trials.c.stage, trials.c.ordinal)
    )
    with closing(plain_rows(connection, query, LOOKUP)) as parts:
        for rows in parts:
            requests = unpack(connection, (row[-1] if isinstance(row[-1], str) else "" for row in rows))
            yield [_attempts(row, request) for row, request in zip(rows, requests, strict=True)]


def missing_answers(connection: sa.Connection, attempts: Sequence[Attempts]) -> Iterator[tuple[Attempts, int]]:
    """Yield the trials of which an earlier answer is not in the store, each with the number of the attempt, from 1."""
    stored = {(key, digest) for _, key, digest in answers_to(connection, attempts)}
    for trial in attempts:
        present = [pair in stored for pair in trial.pairs] or [False]
        if not all(present):
            yield trial, 1 + present.index(False)


def answers_to(connection: sa.Connection, attempts: Iterable[Attempts]) -> Iterator[tuple[Any, ...]]:
    """Yield the id, key and digest of every answer that has the key of an earlier attempt."""
    query = "SELECT id, key, digest FROM exchange WHERE key"
    for keys in batched({key for trial in attempts for key in trial.keys}, LOOKUP):
        yield from rows_among(connection, query, keys)


def _attempts(row: Sequence[Any], request: str) -> Attempts:
    stage, trial, key, digest, model, _ = row
    starts = range(DIGEST_BYTES, len(digest), DIGEST_BYTES)
    earlier = tuple(digest[start : start + DIGEST_BYTES] for start in starts)
    return Attempts(stage, trial, key, _keys_before(model, request, len(earlier)), earlier)


def _keys_before(model: Any, text: str, number: int) -> tuple[bytes, ...]:
    """Return the keys of so many attempts before a request; none if it cannot be read, or is another attempt."""
    try:
        request = decode_request(text)
        if request.attempt != number:
            return ()
        earlier = (msgspec.structs.replace(request, attempt=attempt) for attempt in range(number))
        return tuple(request_key(bytes(model), encode(attempt)) for attempt in earlier)
    except UNREADABLE:
        return ()


__all__ = ["Attempts", "answers_to", "missing_answers", "stream_attempts"]
