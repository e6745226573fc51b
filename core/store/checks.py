"""Check that a store is as it was written, a limited number of rows at a time. Damage ends no check."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from ..contracts.adapter import OPERATIONS
from ..contracts.canonical import decode_request, decode_response, request_key
from ..contracts.secrets import secret_place
from .batches import is_batch
from .bulk import plain_rows, table_of
from .content import Sent, snapshot
from .evidence import READ, WEIGHED, answer_digest, is_run, unproved_before, weigh, weigh_exchange
from .names import run_name
from .parts import unpack
from .reachable import images_in
from .reading import RunRow
from .run_checks import UNREADABLE, TrialCheck, record_fault
from .store import Store
from .tables import Batch, BatchItem, Blob, Exchange, Model, Part, Renewal, Run, Tally

NO_DIGEST = "it has no digest: it was added, or its digest removed"
_RUN = ("id", "name", "study", "state", "manifest", "started", "finished", "head", "unproved")


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


class Checked(NamedTuple):
    """Numbers of checked rows."""

    models: int
    exchanges: int
    images: int
    parts: int
    trials: int
    absent: int
    """Images of exchanges that the store does not have: not an error, because whoever showed them may have them."""
    unproved: int
    """Exchanges that are older than their digests: what was changed before cannot be found."""


class Checks:
    """One check of a store; `counts` and `heads` are complete when `problems` is exhausted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: set[str] = set()
        self._named: set[str] = set()
        self._seen = dict.fromkeys(Checked._fields, 0)
        self._weights = {kind: [0, 0] for kind in WEIGHED}
        self._faulty: set[str] = set()
        self.heads: dict[str, bytes] = {}
        """Head of each run whose trials and record were found as they were written."""
        self.proved_since: float | None = None
        """The latest time at which a digest was made after its answer."""

    @property
    def counts(self) -> Checked:
        """Return the numbers of rows checked so far."""
        return Checked(**self._seen | {"absent": len(self.absent)})

    @property
    def absent(self) -> set[str]:
        """Return the images of exchanges that the store does not have."""
        return self._named - self._kept

    def problems(self) -> Iterator[Problem]:
        """Check everything, and yield the problems."""
        sections = {
            "model": self._models,
            "part": self._parts,
            "blob": self._images,
            "exchange": self._exchanges,
            "run": self._runs,
            "renewal": self._renewals,
            "batch": self._batches,
            "tally": self._tallies,
        }
        with snapshot(self._store) as connection, _any_text(connection):
            for table, section in sections.items():
                yield from self._guarded(table, section, connection)

    def _guarded(
        self, table: str, section: Callable[[sa.Connection], Iterator[Problem]], connection: sa.Connection
    ) -> Iterator[Problem]:
        try:
            for problem in section(connection):
                self._faulty.add(problem.table)
                yield problem
        except (DBAPIError, sqlite3.Error) as error:
            self._faulty.add(table)
            told = " ".join(str(getattr(error, "orig", error)).split())
            yield Problem(f"table {table}", f"it cannot be read further: {told}", table, "table")

    def _models(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Model)
        query = sa.select(table.c.id, table.c.digest, table.c.identity, table.c.created)
        for number, digest, identity, created in _rows(connection, query):
            self._seen["models"] += 1
            self._add("model", weigh, digest, created)
            if _sha256(identity) != digest:
                problem = "its digest does not follow from its identity"
                yield Problem(f"model {number}", problem, "model", "identity", number)

    def _parts(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Part)
        for number, digest, literal in _rows(connection, sa.select(table.c.id, table.c.digest, table.c.literal)):
            self._seen["parts"] += 1
            if _sha256(literal) != digest:
                yield Problem(f"part {number}", "its text does not match its digest", "part", "request", number)

    def _images(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Blob)
        query = sa.select(table.c.sha256, table.c.data, table.c.media_type, table.c.created)
        for sha256, data, media_type, created in _rows(connection, query, 16):
            self._seen["images"] += 1
            self._kept.add(sha256)
            self._add("blob", weigh, sha256, media_type, created)
            if not isinstance(data, bytes) or hashlib.sha256(data).hexdigest() != sha256:
                problem = "its bytes do not match its name (sha256)"
                yield Problem(f"image {str(sha256)[:12]}", problem, "blob", "data", sha256)

    def _exchanges(self, connection: sa.Connection) -> Iterator[Problem]:
        exchange, model = table_of(Exchange), table_of(Model)
        columns = [model.c.digest if name == "identity" else exchange.c[name] for name in Sent._fields]
        query = sa.select(exchange.c.id, exchange.c.digest, exchange.c.generation, exchange.c.filled, *columns)
        query = query.join_from(exchange, model, isouter=True).order_by(exchange.c.id)
        for rows in plain_rows(connection, query, READ):
            self._seen["exchanges"] += len(rows)
            texts = (row[7] if isinstance(row[7], str) else "" for row in rows)
            for row, request in zip(rows, unpack(connection, texts), strict=True):
                number, digest, generation, filled, *fields = row
                sent = Sent(*fields)._replace(request=request)
                self._note(digest, generation, filled)
                if (fault := _fault(sent, digest)) is not None:
                    field, problem = fault
                    key = sent.key.hex() if isinstance(sent.key, bytes) else repr(sent.key)
                    yield Problem(f"exchange {number}", problem, "exchange", field, number, None, key)
                elif '"sha256":' in request or '"image":' in sent.response:
                    self._named |= images_in(request) | images_in(sent.response)

    def _note(self, digest: Any, generation: Any, filled: float | None) -> None:
        if isinstance(digest, bytes):
            self._add("exchange", weigh_exchange, digest, generation)
        if filled is not None:
            self._seen["unproved"] += 1
            self.proved_since = filled if self.proved_since is None else max(filled, self.proved_since)

    def _runs(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Run)
        for row in list(
            _rows(connection, sa.select(*(table.c[name] for name in _RUN)).where(is_run()).order_by(table.c.id))
        ):
            self._add("run", weigh, row[1])
            run = RunRow(row[0], run_name(str(row[1])), *row[2:])
            sound = True
            if (problem := record_fault(connection, run)) is not None:
                sound = False
                yield Problem(f"run {run.name}", problem, "run", "manifest", run.id, run.id)
            trials = TrialCheck(connection, run)
            for where, field, problem in trials.faults():
                sound = False
                yield Problem(f"{where} of run {run.name}", problem, "run_trial", field, None, run.id)
            self._seen["trials"] += trials.count
            if run.state != "running" and run.unproved != unproved_before(connection, run.id):
                sound = False
                problem = "the time before which its answers are unproved was changed"
                yield Problem(f"run {run.name}", problem, "run", "unproved", run.id, run.id)
            if sound and run.head is not None:
                self.heads[run.name] = run.head

    def _renewals(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Renewal)
        for row in _rows(connection, sa.select(table.c.exchange_id, table.c.outcome)):
            self._add("renewal", weigh, *row)
        yield from ()

    def _batches(self, connection: sa.Connection) -> Iterator[Problem]:
        """Check that what is said to have come in a batch is the answer to that key."""
        items, exchange, batch = table_of(BatchItem), table_of(Exchange), table_of(Batch)
        answered = items.c.state.in_(("ok", "refused"))
        query = (
            sa.select(items.c.batch_id, items.c.key, exchange.c.key)
            .join_from(items, exchange, items.c.exchange_id == exchange.c.id, isouter=True)
            .where(sa.or_(items.c.exchange_id.is_not(None), answered))
        )
        for number, key, answer in _rows(connection, query):
            if key != answer:
                name = key.hex() if isinstance(key, bytes) else repr(key)
                told = "an answer of it is to another key"
                yield Problem(f"batch {number}", told, "batch_item", "key", number, None, name)
        known = sa.func.count(items.c.key)
        counts = sa.select(batch.c.id, batch.c["items"], known).join_from(batch, items, isouter=True)
        counts = counts.where(is_batch()).group_by(batch.c.id)
        for number, written, found in _rows(connection, counts):
            if found > written or not found:
                problem = f"it has {found:,} requests, and {written:,} were written"
                yield Problem(f"batch {number}", problem, "batch", "items", number)

    def _tallies(self, connection: sa.Connection) -> Iterator[Problem]:
        table = table_of(Tally)
        query = sa.select(table.c.kind, table.c.rows, table.c.weight)
        stored = {kind: [rows, weight] for kind, rows, weight in _rows(connection, query)}
        late = [self._seen["unproved"], 0]
        if stored.get("unproved") != late:
            problem = f"{late[0]:,} answers are marked as older than their digests, and another number was written"
            yield Problem("table exchange", problem, "exchange", "rows")
        for kind, found in self._weights.items():
            if (known := stored.get(kind)) == found:
                continue
            if known is None or known[0] != found[0]:
                number = None if known is None else known[0]
                count = f"{number:,}" if isinstance(number, int) else "an unknown number"
                problem = f"it has {found[0]:,} rows, and {count} were written: rows were added or removed"
                yield Problem(f"table {kind}", problem, kind, "rows")
            elif kind not in self._faulty:  # a changed row has another weight
                what = {"exchange": "generation", "renewal": "outcome"}.get(kind, "name, time or type")
                yield Problem(f"table {kind}", f"the {what} of a row was changed", kind, "rows")

    def _add(self, kind: str, weight: Callable[..., int], *fields: Any) -> None:
        sums = self._weights[kind]
        sums[0] += 1
        try:
            sums[1] += weight(*fields)
        except UNREADABLE:
            sums[1] += 1


def secrets_in(store: Store) -> list[str]:
    """Return a sentence per model and run of a store that holds what looks like a secret, which is not shown."""
    model, run = table_of(Model), table_of(Run)
    with snapshot(store) as connection, _any_text(connection):
        models = list(_rows(connection, sa.select(model.c.id, model.c.identity)))
        texts = [(f"model {number}", identity) for number, identity in models]
        runs = _rows(connection, sa.select(run.c.name, run.c.manifest))
        texts += [(f"run {run_name(str(name))}", manifest) for name, manifest in runs]
    advice = "looks like a secret. Do not share it, and replace the secret."
    places = [(owner, secret_place(_stored(text))) for owner, text in texts]
    return [f"{place!r} of {owner} {advice}" for owner, place in places if place is not None]


def fault_of(row: Sent) -> str | None:
    """Return the problem of an exchange without its digest; None if there is none."""
    fault = _contradiction(row)
    return None if fault is None else fault[1]


def _fault(row: Sent, digest: Any) -> tuple[str, str] | None:
    """Return what is damaged of an exchange, and the problem."""
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
    return None


@contextmanager
def _any_text(connection: sa.Connection) -> Iterator[None]:
    """Let SQLite give texts that are no UTF-8, because bytes of them were changed."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    before, driver.text_factory = driver.text_factory, _decode
    try:
        yield
    finally:
        driver.text_factory = before


def _decode(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _rows(connection: sa.Connection, query: sa.Select[Any], size: int = READ) -> Iterator[tuple[Any, ...]]:
    for rows in plain_rows(connection, query, size):
        yield from rows


def _stored(text: str) -> Any:
    """Return an identity, or what a manifest records of settings: not links to papers, which have digests in them."""
    try:
        fields = msgspec.json.decode(text)
    except UNREADABLE:
        return text
    if not isinstance(fields, dict) or not isinstance(study := fields.get("study"), dict):
        return fields
    return {"identities": fields.get("identities"), "options": study.get("options"), "command": fields.get("command")}


def _sha256(text: Any) -> bytes | None:
    try:
        return hashlib.sha256(text.encode()).digest()
    except UNREADABLE:
        return None
