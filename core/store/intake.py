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
from .bulk import LOOKUP, batched, insert_many, table_of
from .content import Facts, Failed, Picture, Proof, Sent, Tried, ensure_same, rename
from .evidence import answer_digest, seal, tally, trial_digest, weigh, weigh_exchange
from .exchange_checks import fault_of
from .names import run_name
from .parts import Parts
from .store import manifest_columns
from .tables import Attempt, Blob, Exchange, Model, Renewal, Run, RunTrial

_factors: msgspec.json.Decoder[dict[str, Scalar]] = msgspec.json.Decoder(dict[str, Scalar])
_COLUMNS = ("key", "generation", "model_id", *Sent._fields[2:], "digest")


class _Here(NamedTuple):
    """An exchange of this store."""

    id: int
    generation: int
    answer: tuple[str, str, float]
    """Response, status, time."""


class Intake:
    """Copies into the store within one writing transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.added = {"exchanges": 0, "images": 0, "runs": 0}
        self._models: dict[bytes, int] = {}
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
            self._models[digest] = int(found)

    def exchanges(
        self, rows: Sequence[Sent], proofs: Sequence[Proof] | None = None, *, checked: bool = False
    ) -> list[int]:
        """Copy exchanges, and return their ids in this store; without proofs, the digests are made here.

        `checked`: they were checked before.

        Raises:
            DataError: an exchange is inconsistent, or does not match its proof.
        """
        proofs = [Proof(None)] * len(rows) if proofs is None else proofs
        if len(rows) > LOOKUP:
            parts = (slice(start, start + LOOKUP) for start in range(0, len(rows), LOOKUP))
            return [number for part in parts for number in self.exchanges(rows[part], proofs[part], checked=checked)]
        for row, proof in () if checked else zip(rows, proofs, strict=True):
            ensure_whole(row, self._models)
            ensure_same(row, proof)
        here = self._here({row.key for row in rows})
        numbered = {(row.key, known.answer): known.id for row in rows for known in here.get(row.key, ())}
        new = list({(row.key, _answer(row)): row for row in rows if (row.key, _answer(row)) not in numbered}.values())
        requests, met = self._parts.pack(self.connection, [row.request for row in new])
        generations = self._generations(new, here)
        digests = [answer_digest(row.key, row.operation, *row[4:]) for row in new]
        fresh = [
            (row.key, generation, self._models[row.identity], row.operation, request, *row[4:], digest)
            for row, generation, request, digest in zip(new, generations, requests, digests, strict=True)
        ]
        insert_many(self.connection, table_of(Exchange), _COLUMNS, fresh)
        tally(self.connection, "exchange", map(weigh_exchange, digests, generations))
        self._parts.remember(met)
        self.added["exchanges"] += len(new)
        made = self._here({row.key for row in new})
        numbered |= {(key, known.answer): known.id for key, known_all in made.items() for known in known_all}
        return [numbered[row.key, _answer(row)] for row in rows]

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

    def begin_run(self, name: str, facts: Facts) -> int:
        """Copy a run, and return its id.

        Raises:
            DataError: its name is not valid for a folder.
        """
        ensure_name(name)
        table = table_of(Run)
        values = facts._asdict() | {"name": name, "manifest": rename(facts.manifest, name)}
        self.added["runs"] += 1
        tally(self.connection, "run", [weigh(name)])
        return int(self.connection.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one())

    def end_run(self, run_id: int, manifest: str | None = None) -> bytes | None:
        """Seal a run whose trials and failures were copied, with this manifest if given, and return its head."""
        table = table_of(Run)
        if manifest is not None:
            columns = manifest_columns(manifest.encode())
            self.connection.execute(sa.update(table).where(table.c.id == run_id).values(**columns))
        return seal(self.connection, run_id)

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

    def _here(self, keys: set[bytes]) -> dict[bytes, list[_Here]]:
        table = table_of(Exchange)
        columns = (table.c.key, table.c.id, table.c.generation, table.c.response, table.c.status, table.c.created)
        here: dict[bytes, list[_Here]] = {}
        query = sa.select(*columns).where(table.c.key.in_(keys))
        for key, number, generation, *answer in self.connection.execute(query):
            here.setdefault(bytes(key), []).append(_Here(number, generation, tuple(answer)))
        return here

    def _generations(self, new: Sequence[Sent], here: dict[bytes, list[_Here]]) -> list[int]:
        """Return a generation per new answer: from 0 upwards, or downwards if the key was answered before."""
        taken = {key: [known.generation for known in known_all] for key, known_all in here.items()}
        before = {key for key, known_all in here.items() if any(known.id <= self._last for known in known_all)}
        generations = []
        for row in new:
            known = taken.setdefault(row.key, [])
            known.append(min(0, *known) - 1 if row.key in before else max(known, default=-1) + 1)
            generations.append(known[-1])
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


def _answer(row: Sent) -> tuple[str, str, float]:
    return row.response, row.status, row.created
