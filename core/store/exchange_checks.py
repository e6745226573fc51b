"""Whether exchanges are those that were stored, a range of ids at a time, so that several processes can share them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.abilities import OPERATIONS
from ..contracts.canonical import decode_request, decode_response, request_key
from .bulk import table_of
from .content import Sent, stream_exchanges
from .damage import UNREADABLE
from .evidence import READ, answer_digest, weigh_exchange
from .reachable import images_in
from .tables import Exchange

NO_DIGEST = "it has no digest: it was added, or its digest removed"


class Problem(NamedTuple):
    """A row that is not as it was written, or a table that has other rows."""

    where: str
    """The row, for people."""
    problem: str
    table: str
    field: str
    """What is damaged, such as `response`, `request`, `factors`, `manifest` or `data`."""
    row: int | str | None = None
    """Id of a model, part or exchange; sha256 of an image; None for a whole table."""
    run_id: int | None = None
    """The run that a damaged trial or manifest belongs to."""
    key: str = ""
    """Key of an exchange, hexadecimal."""


class ExchangesChecked(NamedTuple):
    """What was found of a range of exchanges."""

    problems: list[Problem]
    rows: int
    digests: int
    """Rows that have a digest."""
    weight: int
    """Of those, see `evidence.weigh`."""
    images: set[str]
    """Those that sound exchanges name."""


def id_ranges(connection: sa.Connection) -> Iterator[tuple[int, int]]:
    """Yield ranges of ids, both ends included, which hold all exchanges: at most `READ` each, and at least one."""
    ids, last = table_of(Exchange).c.id, None
    while True:
        query = sa.select(sa.func.min(ids)).where(sa.true() if last is None else ids > last)
        if (first := connection.scalar(query)) is None:
            return
        last = first + READ - 1
        yield first, last


def check_exchanges(connection: sa.Connection, first: int, last: int) -> ExchangesChecked:
    """Check the exchanges of a range of ids of `id_ranges`."""
    ids, problems, images = table_of(Exchange).c.id, list[Problem](), set[str]()
    rows = digests = weight = 0
    with closing(stream_exchanges(connection, ids.between(first, last), [ids])) as parts:
        for row in chain.from_iterable(parts):
            rows += 1
            if isinstance(row.digest, bytes):
                digests, weight = digests + 1, weight + _weight(row.digest, row.generation)
            if (fault := exchange_fault(row.sent, row.digest)) is not None:
                field, problem = fault
                key = row.sent.key.hex() if isinstance(row.sent.key, bytes) else repr(row.sent.key)
                problems.append(Problem(f"exchange {row.id}", problem, "exchange", field, row.id, None, key))
            else:
                images |= images_in(row.sent.request) | images_in(row.sent.response)
    return ExchangesChecked(problems, rows, digests, weight, images)


def _weight(digest: bytes, generation: Any) -> int:
    try:
        return weigh_exchange(digest, generation)
    except UNREADABLE:
        return 1


def exchange_fault(row: Sent, digest: Any) -> tuple[str, str] | None:
    """Return what is damaged of an exchange, and the problem; None if nothing is."""
    try:
        if (fault := _contradiction(row)) is not None:
            return fault
        if digest is None:
            return "digest", NO_DIGEST
        if answer_digest(row.key, row.operation, *row[4:]) == digest:
            return None
        usage = decode_response(row.response).usage
        if (usage.input_tokens, usage.output_tokens) != (row.input_tokens, row.output_tokens):
            return "usage", "its counts of tokens are not those of its response"
    except UNREADABLE as error:
        return "response", f"it cannot be read: {error}"
    return "response", "its response, tokens, latency or time do not match its digest"


def _contradiction(row: Sent) -> tuple[str, str] | None:
    if not row.identity:
        return "model", "its model is not in the store"
    try:
        if request_key(row.identity, row.request.encode()) != row.key:
            return "request", "its key does not follow from its model and request"
        operation = OPERATIONS[type(decode_request(row.request))]
    except UNREADABLE as error:
        return "request", f"it cannot be read: {error}"
    try:
        status = decode_response(row.response).status
    except UNREADABLE as error:
        return "response", f"it cannot be read: {error}"
    if (operation, status) != (row.operation, row.status):
        problem = f"its columns have {row.operation}, {row.status}, but its texts have {operation}, {status}"
        return "status", problem
    if not (math.isfinite(row.created) and math.isfinite(row.latency)):
        return "response", f"its time {row.created} or its latency {row.latency} is no number"
    return None
