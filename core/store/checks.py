"""Check that a store is as it was written, a limited number of rows at a time. Damage ends no check."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.secrets import secret_place
from .batches import is_batch
from .bulk import plain_rows, table_of
from .crew import BROKEN, Crew, crew, told
from .damage import UNREADABLE
from .evidence import READ, WEIGHED, is_run, weigh
from .exchange_checks import Problem, check_exchanges, id_ranges
from .names import run_name
from .reading import RunRow
from .run_checks import TrialCheck, record_fault
from .snapshots import damaged_snapshot
from .store import Store
from .tables import Batch, BatchItem, Blob, Exchange, Model, Part, Renewal, Run, Tally

ROWS = "rows"
"""Field of the problem of a table that has other rows than were written."""
_RUN = ("id", "name", "study", "state", "manifest", "started", "finished", "head")


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
    """One check of a store; `counts` and `heads` are complete when `problems` is exhausted.

    `processes`: how many share the work, this one among them; fewer where the store is small. What is found, and in
    which order, does not depend on it.
    """

    def __init__(self, store: Store, processes: int = 1) -> None:
        self._store, self._processes = store, processes
        self._kept: set[str] = set()
        self._named: set[str] = set()
        self._seen = dict.fromkeys(Checked._fields, 0)
        self._weights = {kind: [0, 0] for kind in WEIGHED}
        self._faulty: set[str] = set()
        self.heads: dict[str, bytes] = {}
        """Head of each run whose trials and record were found as they were written."""
        self.runs: dict[str, RunRow] = {}
        """Every run, the damaged ones too."""

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
        with crew(self._store, self._processes, damaged_snapshot) as readers:
            yield from self.problems_read_by(readers)

    def problems_read_by(self, readers: Crew) -> Generator[Problem]:
        """Check the state of the store that these processes read, and yield the problems."""
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
        for table, section in sections.items():
            yield from self._guarded(table, section, readers)

    def _guarded(self, table: str, section: Callable[[Crew], Iterator[Problem]], readers: Crew) -> Iterator[Problem]:
        try:
            for problem in section(readers):
                self._faulty.add(problem.table)
                yield problem
        except BROKEN as error:
            self._faulty.add(table)
            yield Problem(f"table {table}", f"it cannot be read further: {told(error)}", table, "table")

    def _models(self, readers: Crew) -> Iterator[Problem]:
        table = table_of(Model)
        query = sa.select(table.c.id, table.c.digest, table.c.identity, table.c.created)
        for number, digest, identity, created in _rows(readers.connection, query):
            self._seen["models"] += 1
            self._add("model", weigh, digest, created)
            if _sha256(identity) != digest:
                problem = "its digest does not follow from its identity"
                yield Problem(f"model {number}", problem, "model", "identity", number)

    def _parts(self, readers: Crew) -> Iterator[Problem]:
        table = table_of(Part)
        for number, digest, literal in _rows(
            readers.connection, sa.select(table.c.id, table.c.digest, table.c.literal)
        ):
            self._seen["parts"] += 1
            if _sha256(literal) != digest:
                yield Problem(f"part {number}", "its text does not match its digest", "part", "request", number)

    def _images(self, readers: Crew) -> Iterator[Problem]:
        table = table_of(Blob)
        query = sa.select(table.c.sha256, table.c.data, table.c.media_type, table.c.created)
        for sha256, data, media_type, created in _rows(readers.connection, query, 16):
            self._seen["images"] += 1
            self._kept.add(sha256)
            self._add("blob", weigh, sha256, media_type, created)
            if not isinstance(data, bytes) or hashlib.sha256(data).hexdigest() != sha256:
                problem = "its bytes do not match its name (sha256)"
                yield Problem(f"image {str(sha256)[:12]}", problem, "blob", "data", sha256)

    def _exchanges(self, readers: Crew) -> Iterator[Problem]:
        for part in readers.map(check_exchanges, id_ranges(readers.connection)):
            self._seen["exchanges"] += part.rows
            sums = self._weights["exchange"]
            sums[:] = sums[0] + part.digests, sums[1] + part.weight
            self._named |= part.images
            yield from part.problems

    def _runs(self, readers: Crew) -> Iterator[Problem]:
        table = table_of(Run)
        for row in list(
            _rows(readers.connection, sa.select(*(table.c[name] for name in _RUN)).where(is_run()).order_by(table.c.id))
        ):
            self._add("run", weigh, row[1])
            run = RunRow(row[0], run_name(str(row[1])), *row[2:])
            self.runs[run.name], sound = run, True
            if (problem := record_fault(readers.connection, run)) is not None:
                sound = False
                yield Problem(f"run {run.name}", problem, "run", "manifest", run.id, run.id)
            trials = TrialCheck(readers.connection, run)
            for where, field, problem in trials.faults():
                sound = False
                yield Problem(f"{where} of run {run.name}", problem, "run_trial", field, None, run.id)
            self._seen["trials"] += trials.count
            if sound and run.head is not None:
                self.heads[run.name] = run.head

    def _renewals(self, readers: Crew) -> Iterator[Problem]:
        table = table_of(Renewal)
        for row in _rows(readers.connection, sa.select(table.c.exchange_id, table.c.outcome)):
            self._add("renewal", weigh, *row)
        yield from ()

    def _batches(self, readers: Crew) -> Iterator[Problem]:
        """Check that what is said to have come in a batch is the answer to that key."""
        items, exchange, batch = table_of(BatchItem), table_of(Exchange), table_of(Batch)
        answered = items.c.state.in_(("ok", "refused"))
        query = (
            sa.select(items.c.batch_id, items.c.key, exchange.c.key)
            .join_from(items, exchange, items.c.exchange_id == exchange.c.id, isouter=True)
            .where(sa.or_(items.c.exchange_id.is_not(None), answered))
        )
        for number, key, answer in _rows(readers.connection, query):
            if key != answer:
                name = key.hex() if isinstance(key, bytes) else repr(key)
                problem = "an answer of it is to another key"
                yield Problem(f"batch {number}", problem, "batch_item", "key", number, None, name)
        count_of_items = sa.func.count(items.c.key)
        counts = sa.select(batch.c.id, batch.c["items"], count_of_items).join_from(batch, items, isouter=True)
        counts = counts.where(is_batch()).group_by(batch.c.id)
        for number, written, present in _rows(readers.connection, counts):
            if present > written or not present:
                problem = f"it has {present:,} requests, and {written:,} were written"
                yield Problem(f"batch {number}", problem, "batch", "items", number)

    def _tallies(self, readers: Crew) -> Iterator[Problem]:
        table = table_of(Tally)
        query = sa.select(table.c.kind, table.c.rows, table.c.weight)
        stored = {kind: [rows, weight] for kind, rows, weight in _rows(readers.connection, query)}
        for kind, counted in self._weights.items():
            if (recorded := stored.get(kind)) == counted:
                continue
            if recorded is None or recorded[0] != counted[0]:
                number = None if recorded is None else recorded[0]
                count = f"{number:,}" if isinstance(number, int) else "an unknown number"
                problem = f"it has {counted[0]:,} rows, and {count} were written: rows were added or removed"
                yield Problem(f"table {kind}", problem, kind, ROWS)
            elif kind not in self._faulty:  # a changed row has another weight
                what = {"exchange": "generation", "renewal": "outcome"}.get(kind, "name, time or type")
                yield Problem(f"table {kind}", f"the {what} of a row was changed", kind, ROWS)

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
    with damaged_snapshot(store) as connection:
        models = list(_rows(connection, sa.select(model.c.id, model.c.identity)))
        texts = [(f"model {number}", identity) for number, identity in models]
        runs = _rows(connection, sa.select(run.c.name, run.c.manifest))
        texts += [(f"run {run_name(str(name))}", manifest) for name, manifest in runs]
    advice = "looks like a secret. Do not share it, and replace the secret."
    places = [(owner, secret_place(_stored(text))) for owner, text in texts]
    return [f"{place!r} of {owner} {advice}" for owner, place in places if place is not None]


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
