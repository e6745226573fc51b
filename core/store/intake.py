"""`Intake`: write the content of another store or a bundle into this store, within a transaction.

Existing rows are unchanged. An exchange that this store has already (same key, same digest) is not copied again.
Another answer to an answered key gets a generation below 0: the run that used it refers to it, and look-ups, which use
the highest generation, still return the existing answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.adapter import Identity
from ..contracts.canonical import encode_identity, identity_digest
from ..contracts.errors import DataError
from .bulk import LOOKUP, batched, insert_many, rows_among, rows_where, table_of
from .content import Failed, Picture, Sent, Stored, Tried
from .evidence import tally, weigh, weigh_exchange
from .names import run_name
from .parts import Parts
from .tables import Attempt, Blob, Exchange, Model, Renewal, RunTrial

_COLUMNS = ("key", "generation", "model_id", *Sent._fields[2:], "digest")


class _Answer(NamedTuple):
    """An answer that this store has."""

    id: int
    generation: int
    digest: bytes


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
            model_id = self.connection.scalar(sa.select(table.c.id).where(table.c.digest == digest))
            if model_id is None:
                row = {"digest": digest, "identity": identity, "created": time.time()}
                model_id = self.connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one()
                tally(self.connection, "model", [weigh(digest, row["created"])])
            self.models[digest] = int(model_id)

    def exchanges(self, rows: Sequence[Stored]) -> list[int]:
        """Copy exchanges that were checked, and return their ids in this store."""
        if len(rows) > LOOKUP:
            return [number for part in batched(rows, LOOKUP) for number in self.exchanges(part)]
        stored = self._stored({row.sent.key for row in rows})
        numbers = {(key, answer.digest): answer.id for key, answers in stored.items() for answer in answers}
        new = list({place: row for row in rows if (place := (row.sent.key, row.digest)) not in numbers}.values())
        requests, parts = self._parts.pack(self.connection, [row.sent.request for row in new])
        generations = self._generations([row.sent.key for row in new], stored)
        values = [
            (sent.key, generation, self.models[sent.identity], sent.operation, request, *sent[4:], digest)
            for (_, sent, digest, _), generation, request in zip(new, generations, requests, strict=True)
        ]
        insert_many(self.connection, table_of(Exchange), _COLUMNS, values)
        tally(self.connection, "exchange", map(weigh_exchange, (row.digest for row in new), generations))
        self._parts.remember(parts)
        self.added["exchanges"] += len(new)
        for key, answers in self._stored({row.sent.key for row in new}).items():
            numbers.update(((key, answer.digest), answer.id) for answer in answers)
        return [numbers[row.sent.key, row.digest] for row in rows]

    def renewals(self, rows: Iterable[tuple[int, str]]) -> None:
        """Copy why exchanges were asked for; they are ids of this store."""
        table, outcomes = table_of(Renewal), dict(rows)
        ids = sa.select(table.c.exchange_id)
        present = {row.exchange_id for row in rows_where(self.connection, ids, table.c.exchange_id, outcomes)}
        new = [row for row in outcomes.items() if row[0] not in present]
        insert_many(self.connection, table, ("exchange_id", "outcome"), new)
        tally(self.connection, "renewal", (weigh(*row) for row in new))

    def pictures(self, rows: Iterable[Picture]) -> None:
        """Copy images whose bytes were checked."""
        table = table_of(Blob)
        for picture in rows:
            if self.connection.scalar(sa.select(table.c.sha256).where(table.c.sha256 == picture.sha256)) is None:
                row = picture._asdict() | {"created": time.time()}
                self.connection.execute(sa.insert(table).values(row))
                tally(self.connection, "blob", [weigh(picture.sha256, picture.media_type, row["created"])])
                self.added["images"] += 1

    def trials(self, run_id: int, rows: Iterable[Tried]) -> None:
        """Copy trials that were checked; their exchanges are ids of this store."""
        columns = ("run_id", *Tried._fields[:5], "exchange_id", "digest")
        insert_many(self.connection, table_of(RunTrial), columns, [(run_id, *row) for row in rows])

    def failures(self, run_id: int, rows: Iterable[Failed]) -> None:
        """Copy failed calls."""
        insert_many(self.connection, table_of(Attempt), ("run_id", *Failed._fields), [(run_id, *row) for row in rows])

    def _stored(self, keys: set[bytes]) -> dict[bytes, list[_Answer]]:
        query = "SELECT key, id, generation, digest FROM exchange WHERE key"
        answers: dict[bytes, list[_Answer]] = {}
        for key, *answer in rows_among(self.connection, query, list(keys)) if keys else ():
            answers.setdefault(key, []).append(_Answer(*answer))
        return answers

    def _generations(self, keys: Sequence[bytes], stored: Mapping[bytes, list[_Answer]]) -> list[int]:
        """Return a generation per new answer: from 0 upwards, or downwards if the key was answered before."""
        taken = {key: [answer.generation for answer in answers] for key, answers in stored.items()}
        before = {key for key, answers in stored.items() if any(answer.id <= self._last for answer in answers)}
        generations = []
        for key in keys:
            of_key = taken.setdefault(key, [])
            of_key.append(min(0, *of_key) - 1 if key in before else max(of_key, default=-1) + 1)
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
