"""`Intake`: copy the content of another store or a bundle into this store, within a transaction.

Existing rows are unchanged. An exchange that this store has already (same key, answer and time) is not copied again.
Another answer to an answered key gets a generation below 0: the run that used it refers to it, and look-ups, which use
the highest generation, still return the existing answer.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.adapter import Identity
from ..contracts.canonical import encode_identity, identity_digest
from ..contracts.errors import DataError
from ..contracts.records import Scalar
from .bulk import LOOKUP, batched, insert_many, rows_among, table_of
from .content import Failed, Picture, Sent, Stored, Tried
from .evidence import tally, trial_digest, weigh, weigh_exchange
from .exchange_checks import fault_of
from .names import run_name
from .parts import Parts
from .tables import Attempt, Blob, Exchange, Model, Renewal, RunTrial

_factors: msgspec.json.Decoder[dict[str, Scalar]] = msgspec.json.Decoder(dict[str, Scalar])
_COLUMNS = ("key", "generation", "model_id", *Sent._fields[2:], "digest")


class _Answer(NamedTuple):
    """An answer that this store has."""

    id: int
    generation: int
    content: tuple[str, str, float]
    """Response, status, time."""


class Intake:
    """Copies into the store within one writing transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.added = {"exchanges": 0, "images": 0, "runs": 0}
        self.models: dict[bytes, int] = {}
        """Id of each model that was copied, by its digest."""
        self._parts = Parts()
        # Rows with a higher id were copied by this intake.
        self._last = connection.scalar(sa.select(sa.func.max(table_of(Exchange).c.id))) or 0

    def identities(self, rows: Iterable[tuple[bytes, str]]) -> None:
        """Copy models, each with its digest.

        Raises:
            DataError: a digest does not match its identity.
        """
        table = table_of(Model)
        for digest, identity in rows:
            ensure_identity(digest, identity)
            found = self.connection.scalar(sa.select(table.c.id).where(table.c.digest == digest))
            if found is None:
                row = {"digest": digest, "identity": identity, "created": time.time()}
                found = self.connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one()
                tally(self.connection, "model", [weigh(digest, row["created"])])
            self.models[digest] = int(found)

    def exchanges(self, rows: Sequence[Stored]) -> list[int]:
        """Copy exchanges that were checked, and return their ids in this store."""
        if len(rows) > LOOKUP:
            return [number for part in batched(rows, LOOKUP) for number in self.exchanges(part)]
        stored = self._stored({row.sent.key for row in rows})
        numbers = {(key, answer.content): answer.id for key, answers in stored.items() for answer in answers}
        new = list({_place(row.sent): row for row in rows if _place(row.sent) not in numbers}.values())
        requests, parts = self._parts.pack(self.connection, [row.sent.request for row in new])
        generations = self._generations([row.sent for row in new], stored)
        values = [
            (sent.key, generation, self.models[sent.identity], sent.operation, request, *sent[4:], digest)
            for (_, sent, digest), generation, request in zip(new, generations, requests, strict=True)
        ]
        insert_many(self.connection, table_of(Exchange), _COLUMNS, values)
        tally(self.connection, "exchange", map(weigh_exchange, (row.digest for row in new), generations))
        self._parts.remember(parts)
        self.added["exchanges"] += len(new)
        ids = self._ids({row.sent.key for row in new})
        for row, generation in zip(new, generations, strict=True):
            numbers[_place(row.sent)] = ids[row.sent.key, generation]
        return [numbers[_place(row.sent)] for row in rows]

    def renewals(self, rows: Iterable[tuple[int, str]]) -> None:
        """Copy why exchanges were asked for; they are ids of this store."""
        table, given = table_of(Renewal), dict(rows)
        known: set[int] = set()
        for some in batched(given, LOOKUP):
            known.update(self.connection.scalars(sa.select(table.c.exchange_id).where(table.c.exchange_id.in_(some))))
        new = [row for row in given.items() if row[0] not in known]
        insert_many(self.connection, table, ("exchange_id", "outcome"), new)
        tally(self.connection, "renewal", (weigh(*row) for row in new))

    def pictures(self, rows: Iterable[Picture]) -> None:
        """Copy images.

        Raises:
            DataError: bytes do not match their sha256.
        """
        table = table_of(Blob)
        for picture in rows:
            ensure_picture(picture)
            if self.connection.scalar(sa.select(table.c.sha256).where(table.c.sha256 == picture.sha256)) is None:
                row = picture._asdict() | {"created": time.time()}
                self.connection.execute(sa.insert(table).values(row))
                tally(self.connection, "blob", [weigh(picture.sha256, picture.media_type, row["created"])])
                self.added["images"] += 1

    def trials(self, run_id: int, rows: Iterable[Tried]) -> None:
        """Copy trials; their exchanges are ids of this store.

        Raises:
            DataError: factors are not a flat JSON object.
        """
        rows = list(rows)
        for row in rows:
            ensure_factors(row)
        columns = ("run_id", *Tried._fields[:5], "exchange_id", "digest")
        answers = self._digests({row.exchange for row in rows if row.exchange is not None})
        fresh = [(run_id, *row[:6], trial_digest(*row[:5], answers.get(row.exchange), row.earlier)) for row in rows]
        insert_many(self.connection, table_of(RunTrial), columns, fresh)

    def _digests(self, numbers: set[int]) -> dict[int | None, bytes]:
        table = table_of(Exchange)
        query, found = sa.select(table.c.id, table.c.digest), dict[int | None, bytes]()
        for some in batched(numbers, LOOKUP):
            found.update((number, bytes(d)) for number, d in self.connection.execute(query.where(table.c.id.in_(some))))
        return found

    def failures(self, run_id: int, rows: Iterable[Failed]) -> None:
        """Copy failed calls."""
        insert_many(self.connection, table_of(Attempt), ("run_id", *Failed._fields), [(run_id, *row) for row in rows])

    def _stored(self, keys: set[bytes]) -> dict[bytes, list[_Answer]]:
        query = "SELECT key, id, generation, response, status, created FROM exchange WHERE key"
        answers: dict[bytes, list[_Answer]] = {}
        for key, number, generation, *content in rows_among(self.connection, query, list(keys)) if keys else ():
            answers.setdefault(bytes(key), []).append(_Answer(number, generation, tuple(content)))
        return answers

    def _ids(self, keys: set[bytes]) -> dict[tuple[bytes, int], int]:
        query = "SELECT key, generation, id FROM exchange WHERE key"
        rows = rows_among(self.connection, query, list(keys)) if keys else ()
        return {(bytes(key), generation): number for key, generation, number in rows}

    def _generations(self, new: Sequence[Sent], stored: dict[bytes, list[_Answer]]) -> list[int]:
        """Return a generation per new answer: from 0 upwards, or downwards if the key was answered before."""
        taken = {key: [answer.generation for answer in answers] for key, answers in stored.items()}
        before = {key for key, answers in stored.items() if any(answer.id <= self._last for answer in answers)}
        generations = []
        for row in new:
            of_key = taken.setdefault(row.key, [])
            of_key.append(min(0, *of_key) - 1 if row.key in before else max(of_key, default=-1) + 1)
            generations.append(of_key[-1])
        return generations


def ensure_name(name: str) -> None:
    """Refuse a name that is not valid for a folder.

    Raises:
        DataError: naming it.
    """
    if run_name(name) != name:
        raise DataError(
            f"{name[:100]!r} cannot be the name of a run: use letters, digits, '-', '_', '.' and '+'.",
            code="bundle.run-name",
        )


def ensure_picture(picture: Picture) -> None:
    """Refuse an image whose bytes do not match its sha256.

    Raises:
        DataError: naming it.
    """
    if hashlib.sha256(picture.data).hexdigest() != picture.sha256:
        raise DataError(
            f"the image {picture.sha256} does not match its name (sha256): its bytes were changed.",
            code="bundle.image",
        )


def ensure_identity(digest: bytes, identity: str) -> None:
    """Refuse a model whose digest does not match its identity.

    Raises:
        DataError: the digest does not match.
    """
    try:
        record = msgspec.json.decode(identity, type=Identity)
        same = identity_digest(record) == digest and encode_identity(record).decode() == identity
    except msgspec.MsgspecError:
        same = False
    if not same:
        wrong = f"the digest {digest.hex()[:12]} of a model does not match its identity"
        raise DataError(f"{wrong}: {identity[:200]}. One of them was changed.", code="bundle.identity")


def ensure_whole(row: Sent, models: Container[bytes]) -> None:
    """Refuse an exchange whose parts contradict each other. A changed response cannot be detected here.

    Raises:
        DataError: the exchange is inconsistent.
    """
    name = f"the exchange {row.key.hex()[:12]}"
    if row.identity not in models:
        raise DataError(f"{name} refers to a model that the bundle does not contain.", code="bundle.exchange")
    if (problem := fault_of(row)) is not None:
        raise DataError(f"{name} was changed: {problem}.", code="bundle.exchange")
    if not (math.isfinite(row.created) and math.isfinite(row.latency)):
        raise DataError(f"{name} has no time: {row.created}, {row.latency}.", code="bundle.exchange")


def ensure_factors(row: Tried) -> None:
    """Refuse a trial whose factors are no flat JSON object.

    Raises:
        DataError: naming the trial.
    """
    try:
        _factors.decode(row.factors)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"the factors of trial {row.trial[:100]!r} are not a flat JSON object: {error}.", code="bundle.content"
        ) from None


def _place(row: Sent) -> tuple[bytes, tuple[str, str, float]]:
    """Return what tells an answer from all others of a store."""
    return row.key, (row.response, row.status, row.created)
