"""`RunContent`: all content of a run in a fixed order, without the ids of the store.

Two stores with the same run give the same content and digest, whatever else they contain. The run's name is not part
of it, because another store may have the run under another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from ..contracts.canonical import request_key
from .bulk import batched, plain_rows, table_of
from .crew import Crew
from .damage import damaged
from .evidence import answer_digest, bytewise, earlier_answers_in, plan_order
from .parts import unpack
from .reachable import READ, gather_uses, images_in
from .reading import RunRow, runs_of
from .run_checks import TrialCheck, record_fault
from .store import Store
from .tables import Attempt, Blob, Exchange, Model, RunTrial

R = TypeVar("R")
_pack = msgspec.msgpack.Encoder().encode
Places = NDArray[np.int64]
"""Id of an exchange in the other store, by its id here; 8 bytes each, where a dictionary needs a hundred."""


class Facts(NamedTuple):
    """Fields of a run besides its trials."""

    study: str
    state: str
    manifest: str
    """JSON, without the run's name."""
    started: float
    finished: float | None


class Sent(NamedTuple):
    """An exchange with its full texts."""

    key: bytes
    identity: bytes
    """Digest of the model's identity."""
    operation: str
    request: str
    response: str
    status: str
    input_tokens: int
    output_tokens: int
    latency: float
    created: float


class Proof(NamedTuple):
    """What shows that an exchange is as it was stored."""

    digest: bytes | None
    """None: there is none, as in a bundle, which has digests of its own."""


class Tried(NamedTuple):
    """A trial, and the index of its exchange in the content."""

    stage: str
    ordinal: int
    trial: str
    factors: str
    key: bytes
    exchange: int | None
    earlier: bytes = b""
    """Digests of the answers to the attempts before the last one."""

    @property
    def fields(self) -> tuple[Any, ...]:
        """Return what is added to a digest of the content."""
        return tuple(self) if self.earlier else self[:-1]


class Failed(NamedTuple):
    """A call that failed."""

    key: bytes
    decision: str
    message: str
    created: float


class Picture(NamedTuple):
    """An image."""

    sha256: str
    media_type: str
    data: bytes


def rename(manifest: str, name: str) -> str:
    """Return the manifest with this run name.

    Raises:
        DataError: the manifest is damaged.
    """
    try:
        fields = msgspec.json.decode(manifest, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise damaged("a manifest", f"it cannot be read ({error})") from None
    return msgspec.json.encode(fields | {"run": name}, order="sorted").decode()


def facts_of(run: RunRow) -> Facts:
    """Return the state and times of a run; a running run is copied as an interrupted one."""
    state = "interrupted" if run.state == "running" else run.state
    return Facts(run.study, state, rename(run.manifest, ""), run.started, run.finished)


class ContentDigest:
    """A running sha256 of the content."""

    def __init__(self, facts: Facts) -> None:
        self._hash = hashlib.sha256()
        self.add("run", [facts])

    def add(self, kind: str, rows: Iterable[Any]) -> None:
        """Add rows."""
        for row in rows:
            self._hash.update(_pack((kind, *row)))

    def add_packed(self, rows: bytes) -> None:
        """Add rows as `packed` gives them."""
        self._hash.update(rows)

    def hexdigest(self) -> str:
        """Return the digest so far."""
        return self._hash.hexdigest()


def packed(kind: str, rows: Iterable[Any]) -> bytes:
    """Return rows as they are added to a digest of content."""
    return b"".join(_pack((kind, *row)) for row in rows)


def packed_exchanges(rows: Iterable[Sent]) -> bytes:
    """Return exchanges as they are added to a digest of content."""
    return packed("exchange", rows)


class RunContent:
    """The content of one run; `exchanges` must be read to the end before `trials`, `images` and `pictures`."""

    def __init__(self, readers: Crew, run: RunRow) -> None:
        self._readers, self.connection, self.run, self.facts = readers, readers.connection, run, facts_of(run)
        self._used = gather_uses(self.connection, "used_by_run", table_of(RunTrial).c.run_id == run.id)
        exchange = table_of(Exchange)
        self._uses = exchange.c.id.in_(sa.select(self._used.c.id))
        self._places = new_places(self.connection)
        self.images: set[str] = set()
        """The sha256 of each image that the run names, stored or not."""

    def identities(self) -> list[tuple[bytes, str]]:
        """Return (digest, canonical identity) of each model that answered."""
        exchange, model = table_of(Exchange), table_of(Model)
        answered = sa.select(exchange.c.model_id).where(self._uses)
        query = sa.select(model.c.digest, model.c.identity).where(model.c.id.in_(answered)).order_by(model.c.digest)
        found = [(bytes(digest), identity) for digest, identity in self.connection.execute(query)]
        for digest, identity in found:
            if hashlib.sha256(identity.encode()).digest() != digest:
                raise damaged(f"model {digest.hex()[:12]}", "its digest does not follow from its identity")
        return found

    def exchanges(self, pack: Callable[[list[Sent]], R]) -> Iterator[R]:
        """Yield what `pack`, a function of a module, makes of `READ` exchanges at a time, by key and then by time."""
        exchange, model, place = table_of(Exchange), table_of(Model), 0
        response = sa.collate(exchange.c.response, bytewise(self.connection))
        order = (exchange.c.key, exchange.c.created, response, exchange.c.id)
        query = sa.select(exchange.c.id).join_from(exchange, model).where(self._uses).order_by(*order)

        def parts(ids: Iterable[int]) -> Iterator[tuple[list[int], Callable[[list[Sent]], R]]]:
            nonlocal place
            for numbers in batched(ids, READ):
                self._places[numbers] = np.arange(place, place + len(numbers))
                place += len(numbers)
                yield numbers, pack

        # Closed at once: after an error, a cursor left to the garbage collection would be closed in a transaction that
        # the connection has begun since, and end that.
        with closing(plain_rows(self.connection, query, READ)) as found:
            ids = (number for rows in found for (number,) in rows)
            for part, images in self._readers.map(_part, parts(ids)):
                self.images |= images
                yield part
        used = self.connection.scalar(sa.select(sa.func.count()).select_from(exchange).where(self._uses)) or 0
        if used != place:
            raise damaged(f"{used - place:,} exchanges of run {self.run.name}", "their model is not in the store")

    def trials(self) -> Iterator[list[Tried]]:
        """Yield the trials in parts, by stage and then in plan order."""
        yield from stream_trials_of(self.connection, self.run.id, self._places)

    def failures(self) -> list[Failed]:
        """Return the failed calls, in order of time."""
        table = table_of(Attempt)
        columns = [table.c[name] for name in Failed._fields]
        query = sa.select(*columns).where(table.c.run_id == self.run.id).order_by(table.c.created, table.c.id)
        return [Failed(bytes(row[0]), *row[1:]) for row in self.connection.execute(query)]

    def pictures(self) -> Iterator[Picture]:
        """Yield the stored images, one at a time."""
        table = table_of(Blob)
        for image in sorted(self.images):
            query = sa.select(table.c.sha256, table.c.media_type, table.c.data).where(table.c.sha256 == image)
            if (found := self.connection.execute(query).first()) is not None:
                yield Picture(found[0], found[1], bytes(found[2]))

    def digest(self) -> str:
        """Return the sha256 of the content."""
        digest = ContentDigest(self.facts)
        digest.add("identity", self.identities())
        for rows in self.exchanges(packed_exchanges):
            digest.add_packed(rows)
        for tried in self.trials():
            digest.add("trial", (row.fields for row in tried))
        digest.add("failure", self.failures())
        digest.add("picture", ((sha256, media_type) for sha256, media_type, _ in self.pictures()))
        return digest.hexdigest()


def ensure_sound(connection: sa.Connection, run: RunRow) -> bytes:
    """Check a run's record and trials, and return its head; `sent_of` checks the answers.

    Raises:
        DataError: something was changed.
    """
    trials = TrialCheck(connection, run)
    if faults := list(trials.faults()):
        raise damaged(f"run {run.name}, {faults[0].where}", faults[0].problem)
    if (problem := record_fault(connection, run)) is not None:
        raise damaged(f"run {run.name}", problem)
    return trials.head


def ensure_recorded(store: Store, name: str) -> None:
    """Check the record of a run, if there is one of this name: its manifest, state, times and failed calls.

    Raises:
        DataError: something was changed.
    """
    with store.reading() as connection:
        for run in runs_of(connection):
            if run.name == name and (problem := record_fault(connection, run)) is not None:
                raise damaged(f"run {run.name}", problem)


def _part(connection: sa.Connection, numbers: Sequence[int], pack: Callable[[list[Sent]], R]) -> tuple[R, set[str]]:
    """Return what `pack` makes of the exchanges with these ids, and the images that they name."""
    rows = sent_of(connection, numbers)
    images = {image for row in rows for text in (row.request, row.response) for image in images_in(text)}
    return pack(rows), images


def sent_of(connection: sa.Connection, numbers: Sequence[int]) -> list[Sent]:
    """Return the exchanges with these ids, in their order.

    Raises:
        DataError: one was changed.
    """
    # Numbers as a text: SQLAlchemy takes longer for thousands of parameters than the database for the answer.
    query = _whole_exchanges().where(sa.text(f"exchange.id IN ({', '.join(map(str, numbers))})"))
    found = {row[0]: row for rows in plain_rows(connection, query, READ) for row in rows}
    if lost := [number for number in numbers if number not in found]:
        raise damaged(f"the exchange {lost[0]}", "an index of the store has it, but the table has not")
    _, sent, proofs = _whole(connection, [found[number] for number in numbers])
    for row, proof in zip(sent, proofs, strict=True):
        ensure_same(row, proof)
        if request_key(row.identity, row.request.encode()) != row.key:
            problem = "its key does not follow from its model and request"
            raise damaged(f"the exchange with the key {row.key.hex()[:12]}", problem)
    return sent


def new_places(connection: sa.Connection) -> Places:
    """Return an index for every exchange of a store, all unknown (-1)."""
    most = connection.scalar(sa.select(sa.func.max(table_of(Exchange).c.id))) or 0
    return np.full(most + 1, -1, dtype=np.int64)


def ensure_same(row: Sent, proof: Proof) -> None:
    """Refuse an exchange that is not as it was stored.

    Raises:
        DataError: it was changed.
    """
    if proof.digest is not None and answer_digest(row.key, row.operation, *row[4:]) != proof.digest:
        raise damaged(f"the answer to the key {row.key.hex()[:12]}", "it does not match its digest")


def stream_exchanges(
    connection: sa.Connection, where: sa.ColumnElement[bool], order: Iterable[sa.ColumnElement[Any]]
) -> Generator[tuple[list[int], list[Sent], list[Proof]]]:
    """Yield the ids, full rows and proofs of exchanges, in parts."""
    query = _whole_exchanges().where(where).order_by(*order)
    with closing(connection.execute(query, execution_options={"yield_per": READ})) as result:
        for rows in result.partitions():
            yield _whole(connection, rows)


def _whole_exchanges() -> sa.Select[Any]:
    exchange, model = table_of(Exchange), table_of(Model)
    columns = [model.c.digest if name == "identity" else exchange.c[name] for name in Sent._fields]
    proof = [exchange.c[name] for name in Proof._fields]
    return sa.select(exchange.c.id, *columns, *proof).join_from(exchange, model)


def _whole(connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> tuple[list[int], list[Sent], list[Proof]]:
    """Return what rows of `_whole_exchanges` hold."""
    # What was damaged into bytes has no key that follows from it, and is refused by that.
    requests = unpack(connection, (row[4] if isinstance(row[4], str) else "" for row in rows))
    sent = [
        Sent(bytes(row[1]), bytes(row[2]), row[3], request, *row[5:-1])
        for row, request in zip(rows, requests, strict=True)
    ]
    return [row[0] for row in rows], sent, [Proof(row[-1] or b"") for row in rows]


def stream_trials_of(connection: sa.Connection, run_id: int, places: Places) -> Iterator[list[Tried]]:
    """Yield a run's trials with the indexes of their exchanges."""
    trials = table_of(RunTrial)
    columns = [trials.c[name] for name in ("stage", "ordinal", "trial", "factors", "key", "exchange_id", "digest")]
    query = sa.select(*columns).where(trials.c.run_id == run_id).order_by(*plan_order(connection))
    for rows in connection.execute(query, execution_options={"yield_per": READ}).partitions():
        yield [
            Tried(stage, ordinal, trial, factors, bytes(key), _place_of(number, places), earlier_answers_in(digest))
            for stage, ordinal, trial, factors, key, number, digest in rows
        ]


def _place_of(number: int | None, places: Places) -> int | None:
    return None if number is None else int(places[number])
