"""Check that a store is consistent, a limited number of rows at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.adapter import OPERATIONS, Identity
from ..contracts.canonical import decode_request, decode_response, identity_digest, request_key
from ..contracts.secrets import secret_place
from .bulk import table_of
from .content import Sent, snapshot, stream_exchanges
from .reachable import READ, images_in
from .reading import runs_of
from .store import Store
from .tables import Blob, Exchange, Model, Part, RunTrial


class Problem(NamedTuple):
    """An inconsistency."""

    where: str
    problem: str


class Checked(NamedTuple):
    """Numbers of checked rows."""

    models: int
    exchanges: int
    images: int
    parts: int
    trials: int
    absent: int
    """Images of exchanges that the store does not have: not an error, because whoever showed them may have them."""


class Checks:
    """One check of a store; `counts` is complete when `problems` is exhausted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: set[str] = set()
        self._named: set[str] = set()
        self._seen = dict.fromkeys(Checked._fields, 0)

    @property
    def counts(self) -> Checked:
        """Return the numbers of rows checked so far."""
        return Checked(**self._seen | {"absent": len(self._named - self._kept)})

    def problems(self) -> Iterator[Problem]:
        """Check everything, and yield the problems."""
        with snapshot(self._store) as connection:
            yield from self._models(connection)
            yield from self._parts(connection)
            yield from self._images(connection)
            yield from self._exchanges(connection)
            yield from self._trials(connection)

    def _models(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Model)
        for number, digest, identity in connection.execute(sa.select(table.c.id, table.c.digest, table.c.identity)):
            self._seen["models"] += 1
            if _digest(identity) != bytes(digest):
                yield Problem(f"model {number}", "its digest does not follow from its identity")

    def _parts(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Part)
        query = sa.select(table.c.id, table.c.digest, table.c.literal)
        for number, digest, literal in connection.execute(query, execution_options={"yield_per": READ}):
            self._seen["parts"] += 1
            if hashlib.sha256(literal.encode()).digest() != bytes(digest):
                yield Problem(f"part {number}", "its text does not match its digest")

    def _images(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Blob)
        query = sa.select(table.c.sha256, table.c.data)
        for sha256, data in connection.execute(query, execution_options={"yield_per": 16}):
            self._seen["images"] += 1
            self._kept.add(sha256)
            if hashlib.sha256(data).hexdigest() != sha256:
                yield Problem(f"image {sha256[:12]}", "its bytes do not match its name (sha256)")

    def _exchanges(self, connection: sa.Connection) -> Iterator[Problem]:
        for numbers, rows in stream_exchanges(connection, sa.true(), [table_of(Exchange).c.id]):
            self._seen["exchanges"] += len(rows)
            for number, row in zip(numbers, rows, strict=True):
                if (problem := fault_of(row)) is not None:
                    yield Problem(f"exchange {number}", problem)
                if '"sha256":' in row.request or '"image":' in row.response:
                    self._named |= images_in(row.request) | images_in(row.response)

    def _trials(self, connection: sa.Connection) -> Iterator[Problem]:
        trials, exchange = table_of(RunTrial), table_of(Exchange)
        self._seen["trials"] = connection.scalar(sa.select(sa.func.count()).select_from(trials)) or 0
        names = {run.id: run.name for run in runs_of(connection)}
        answered = trials.c.exchange_id.is_not(None)
        query = (
            sa.select(trials.c.run_id, trials.c.stage, trials.c.trial, exchange.c.id)
            .join_from(trials, exchange, trials.c.exchange_id == exchange.c.id, isouter=True)
            .where(answered, sa.or_(exchange.c.id.is_(None), exchange.c.key != trials.c.key))
        )
        for run_id, stage, trial, found in connection.execute(query, execution_options={"yield_per": READ}):
            problem = "its exchange is not in the store" if found is None else "its exchange has another key"
            yield Problem(f"trial {trial!r} of stage {stage!r} of run {names.get(run_id, run_id)}", problem)


def secrets_in(store: Store) -> list[str]:
    """Return a sentence per model and run of a store that holds what looks like a secret, which is not shown."""
    table = table_of(Model)
    with snapshot(store) as connection:
        models = connection.execute(sa.select(table.c.id, table.c.identity)).all()
        texts = [(f"model {number}", identity) for number, identity in models]
        texts += [(f"run {run.name}", run.manifest) for run in runs_of(connection)]
    advice = "looks like a secret. Do not share it, and replace the secret."
    places = [(owner, secret_place(_stored(text))) for owner, text in texts]
    return [f"{place!r} of {owner} {advice}" for owner, place in places if place is not None]


def _stored(text: str) -> Any:
    """Return an identity, or what a manifest records of settings: not links to papers, which have digests in them."""
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if not isinstance(fields, dict) or not isinstance(study := fields.get("study"), dict):
        return fields
    return {"identities": fields.get("identities"), "options": study.get("options"), "command": fields.get("command")}


def _digest(identity: str) -> bytes | None:
    try:
        return identity_digest(msgspec.json.decode(identity, type=Identity))
    except msgspec.MsgspecError:
        return None


def fault_of(row: Sent) -> str | None:
    """Return the problem of an exchange; empty if there is none."""
    if request_key(row.identity, row.request.encode()) != row.key:
        return "its key does not follow from its model and request"
    try:
        operation = OPERATIONS[type(decode_request(row.request))]
        status = decode_response(row.response).status
    except msgspec.MsgspecError as error:
        return f"it cannot be read: {error}"
    if (operation, status) != (row.operation, row.status):
        return f"its columns have {row.operation}, {row.status}, but its texts have {operation}, {status}"
    return None
