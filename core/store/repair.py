"""Repairing a damaged store with rows of another store that verify there, and marking what stays damaged."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.errors import DataError
from .bulk import LOOKUP, batched, insert_many, plain_rows, table_of
from .checks import Checks
from .content import (
    Failed,
    Picture,
    Sent,
    facts_of,
    new_places,
    rename,
    stream_exchanges,
    stream_trials_of,
)
from .damage import UNREADABLE, damaged
from .engine import translated
from .evidence import READ, failures_of, recount, seal
from .exchange_checks import Problem, exchange_fault
from .intake import Intake
from .names import run_name
from .parts import long_texts, text_digest
from .reachable import gather_uses
from .reading import RunRow, runs_of
from .run_checks import TrialCheck, record_fault
from .snapshots import snapshot
from .store import Store
from .tables import Attempt, Blob, Damage, Exchange, Model, Part, Run, RunTrial, Tally


class Repaired(NamedTuple):
    """The result of a repair."""

    found: int
    """Number of problems before."""
    left: tuple[Problem, ...]
    """Problems that remain; the runs that they concern are marked in the store."""


def repair(store: Store, sources: Sequence[Store]) -> Repaired:
    """Take what is damaged from other stores, as far as it verifies there, and mark what cannot be repaired.

    Raises:
        StoreError: a store cannot be read or written.
    """
    checks = Checks(store)
    problems = list(checks.problems())
    problems_before = len(problems)
    for source in sources:
        if problems:
            with snapshot(source) as origin, store.writing() as target:
                _Repair(target, origin).mend(problems, checks.absent)
            checks = Checks(store)
            problems = list(checks.problems())
    with store.writing() as target:
        _mark(target, problems)
    return Repaired(problems_before, tuple(problems))


class _Repair:
    """What one store gives to another, in a transaction.

    The tallies stay: a row that comes back weighs what it weighed, and what is lost for good stays noticed.
    """

    def __init__(self, here: sa.Connection, there: sa.Connection) -> None:
        self.here, self.there, self.intake = here, there, Intake(here)

    def mend(self, problems: Sequence[Problem], absent: set[str]) -> None:
        table = table_of(Tally)
        before = self.here.execute(sa.select(table.c.kind, table.c.rows, table.c.weight)).all()
        rows: dict[str, list[Any]] = {}
        for problem in problems:
            rows.setdefault(problem.table, []).append(problem.row)
        self._models(rows.get("model", []))
        self._images(rows.get("blob", []), absent)
        numbers = {number for number in rows.get("exchange", []) if number is not None}
        self._exchanges(numbers)
        self._parts(rows.get("part", []), numbers)
        for run_id in dict.fromkeys(problem.run_id for problem in problems if problem.run_id is not None):
            self._run(run_id, {problem.table for problem in problems if problem.run_id == run_id})
        for kind, count, weight in before:
            self.here.execute(sa.update(table).where(table.c.kind == kind).values(rows=count, weight=weight))
        # The time of an image or a model that came back is another; that all are back is shown by their number.
        recount(self.here, [kind for kind in ("blob", "model") if rows.get(kind) and self._deficit(kind) == 0])

    def _deficit(self, kind: str) -> int:
        """Return how many rows of a table were removed."""
        table, rows = table_of(Tally), table_of(Blob if kind == "blob" else Model)
        stored = self.here.scalar(sa.select(table.c.rows).where(table.c.kind == kind)) or 0
        return stored - (self.here.scalar(sa.select(sa.func.count()).select_from(rows)) or 0)

    def _models(self, numbers: Sequence[Any]) -> None:
        table = table_of(Model)
        theirs = [(bytes(d), text) for d, text in self.there.execute(sa.select(table.c.digest, table.c.identity))]
        for number in numbers:
            ours = self.here.execute(sa.select(table.c.digest, table.c.identity).where(table.c.id == number)).first()
            for digest, text in theirs:
                if ours is not None and (ours.digest == digest or ours.identity == text):
                    values = {"digest": digest, "identity": text}
                    self.here.execute(sa.update(table).where(table.c.id == number).values(values))
        for row in theirs:
            try:
                self.intake.identities([row])
            except DataError:
                continue  # damaged there, too

    def _images(self, names: Sequence[Any], absent: set[str]) -> None:
        table = table_of(Blob)
        for name in names:
            if name is None:
                continue
            data = self.here.scalar(sa.select(table.c.data).where(table.c.sha256 == name))
            sha256 = hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else ""
            if sha256 in absent:  # the name was changed, not the bytes
                self.here.execute(sa.update(table).where(table.c.sha256 == name).values(sha256=sha256))
            elif (picture := self._picture(name)) is not None:
                values = {"data": picture.data, "media_type": picture.media_type}
                self.here.execute(sa.update(table).where(table.c.sha256 == name).values(values))
        missing = self._deficit("blob")
        for name in sorted(absent):
            if missing > 0 and (picture := self._picture(name)) is not None:
                self.intake.pictures([picture])
                missing -= 1

    def _picture(self, name: str) -> Picture | None:
        table = table_of(Blob)
        query = sa.select(table.c.sha256, table.c.media_type, table.c.data).where(table.c.sha256 == name)
        row = self.there.execute(query).first()
        sound = row is not None and hashlib.sha256(row.data).hexdigest() == name
        return Picture(*row) if row is not None and sound else None

    def _exchanges(self, numbers: set[Any]) -> None:
        table = table_of(Exchange)
        columns = (table.c.id, table.c.key, table.c.digest, table.c.created)
        for some in batched(numbers, LOOKUP // 2):
            ours = [
                row
                for rows in plain_rows(self.here, sa.select(*columns).where(table.c.id.in_(some)), READ)
                for row in rows
            ]
            keys = [key for _, key, _, _ in ours if isinstance(key, bytes)]
            digests = [digest for _, _, digest, _ in ours if isinstance(digest, bytes)]
            same = sa.or_(table.c.key.in_(keys), table.c.digest.in_(digests))
            theirs = list(self.there.scalars(sa.select(table.c.id).where(same)))
            sound = list(self._sound(table.c.id.in_(theirs)))
            by_digest = {digest: sent for sent, digest in sound}
            by_time = {(sent.key, sent.created): (sent, digest) for sent, digest in sound}
            for number, key, digest, created in ours:
                if digest in by_digest:
                    self._restore(number, by_digest[digest], digest)
                elif (key, created) in by_time:  # the digest itself was changed
                    self._restore(number, *by_time[key, created])

    def _sound(self, where: sa.ColumnElement[bool]) -> Iterator[tuple[Sent, bytes]]:
        """Yield the exchanges of the source that verify."""
        try:
            for rows in stream_exchanges(self.there, where, [table_of(Exchange).c.id]):
                yield from ((sent, digest) for _, sent, digest, _ in rows if exchange_fault(sent, digest) is None)
        except UNREADABLE:
            return

    def _restore(self, number: int, sent: Sent, digest: bytes) -> None:
        exchange, model = table_of(Exchange), table_of(Model)
        model_id = self.here.scalar(sa.select(model.c.id).where(model.c.digest == sent.identity))
        if model_id is None:
            return
        values = sent._asdict() | {"model_id": model_id, "digest": digest}
        del values["identity"]
        self.here.execute(sa.update(exchange).where(exchange.c.id == number).values(values))

    def _parts(self, numbers: Sequence[Any], damaged: set[Any]) -> None:
        """Restore shared texts: from the source, from requests that were restored, or their digest."""
        table, exchange = table_of(Part), table_of(Exchange)
        if not numbers:
            return
        wanted = self.here.execute(
            sa.select(table.c.id, table.c.digest, table.c.literal).where(table.c.id.in_(numbers))
        )
        texts: dict[bytes, str] = {}
        for some in batched(damaged, LOOKUP):
            for (request,) in self.here.execute(sa.select(exchange.c.request).where(exchange.c.id.in_(some))):
                texts |= {text_digest(text): text for text in long_texts(request)}
        for number, digest, literal in wanted.all():
            theirs = self.there.scalar(sa.select(table.c.literal).where(table.c.digest == digest))
            text = theirs if theirs is not None and text_digest(theirs) == digest else texts.get(digest)
            uses = exchange.c.request.like(f'%{{"part":{number}}}%')
            values: dict[str, Any] = {"literal": text}
            if text is None:
                used = self.here.scalars(sa.select(exchange.c.id).where(uses).limit(1)).first()
                if used is None or used in damaged:
                    continue
                values = {"digest": text_digest(literal)}  # a request with this text verifies
            self.here.execute(sa.update(table).where(table.c.id == number).values(values))

    def _run(self, run_id: int, tables: set[str]) -> None:
        table = table_of(Run)
        names = ("name", "started", "head", "record")
        query = sa.select(*(table.c[name] for name in names)).where(table.c.id == run_id)
        (((name, started, head, record),),) = plain_rows(self.here, query, READ)
        for theirs in runs_of(self.there):
            if theirs.head is None:
                continue
            twin = theirs.name == run_name(str(name)) or theirs.started == started
            their_record = self.there.scalar(sa.select(table.c.record).where(table.c.id == theirs.id))
            if theirs.head != head and not (twin and their_record == record):
                continue
            if list(TrialCheck(self.there, theirs).faults()) or record_fault(self.there, theirs) is not None:
                continue
            try:
                with self.here.begin_nested():
                    if "run_trial" in tables:
                        self._take_trials(run_id, theirs)
                    if "run" in tables and twin:
                        self._take_record(run_id, str(name), theirs)
            except DataError:
                continue  # an answer is damaged there
            return

    def _take_trials(self, run_id: int, theirs: RunRow) -> None:
        trials, exchange = table_of(RunTrial), table_of(Exchange)
        places = new_places(self.there)
        used = sa.select(gather_uses(self.there, "used_by_run", trials.c.run_id == theirs.id).c.id)
        with closing(stream_exchanges(self.there, exchange.c.id.in_(used), [exchange.c.id])) as parts:
            for rows in parts:
                for row in rows:
                    fault = exchange_fault(row.sent, row.digest)
                    if fault is not None or row.sent.identity not in self.intake.models:
                        raise damaged(f"exchange {row.id}", fault[1] if fault else "its model is not in the store")
                places[[row.id for row in rows]] = self.intake.exchanges(rows)
        self.here.execute(sa.delete(trials).where(trials.c.run_id == run_id))
        for tried in stream_trials_of(self.there, theirs.id, places):
            self.intake.trials(run_id, tried)
        seal(self.here, run_id, ("head",))

    def _take_record(self, run_id: int, name: str, theirs: RunRow) -> None:
        run, attempts = table_of(Run), table_of(Attempt)
        facts = facts_of(theirs)
        values = facts._asdict() | {"manifest": rename(facts.manifest, name)}
        self.here.execute(sa.update(run).where(run.c.id == run_id).values(values))
        self.here.execute(sa.delete(attempts).where(attempts.c.run_id == run_id))
        self.intake.failures(run_id, (Failed(*row) for row in failures_of(self.there, theirs.id)))
        seal(self.here, run_id, ("record",))


def _mark(here: sa.Connection, problems: Sequence[Problem]) -> None:
    """Replace the list of damage by these problems; a problem of a model or an image is one of the runs that use it."""
    table, now = table_of(Damage), time.time()
    here.execute(sa.delete(table))
    rows = []
    for problem in problems:
        places: list[tuple[int | None, int | None]] = [(None, problem.run_id)]
        if problem.table == "exchange" and isinstance(problem.row, int):
            places = [(problem.row, None)]
        elif problem.table in ("model", "blob") and problem.row is not None:
            places += [(number, None) for number in _users(here, problem)]
        texts = [text.encode(errors="backslashreplace").decode() for text in (problem.where, problem.problem)]
        rows += [(exchange, run, *texts, now) for exchange, run in places]
    insert_many(here, table, ("exchange_id", "run_id", "place", "problem", "found"), rows)


def _users(here: sa.Connection, problem: Problem) -> list[int]:
    """Return an exchange per run that uses a model or an image."""
    exchange, trials = table_of(Exchange), table_of(RunTrial)
    text = f"%{problem.row}%"
    uses = (
        exchange.c.model_id == problem.row
        if problem.table == "model"
        else sa.or_(exchange.c.request.like(text), exchange.c.response.like(text))
    )
    query = sa.select(sa.func.min(exchange.c.id)).join_from(trials, exchange, trials.c.exchange_id == exchange.c.id)
    return list(here.scalars(query.where(uses).group_by(trials.c.run_id)))


def damage_words(store: Store, run_id: int) -> str:
    """Return a sentence on what is known to be damaged of a run and cannot be repaired; empty if there is nothing."""
    damage, trials = table_of(Damage), table_of(RunTrial)
    used = sa.select(trials.c.exchange_id).where(trials.c.run_id == run_id)
    with translated(store.url), store.engine.connect() as connection:
        if connection.scalar(sa.select(damage.c.id).limit(1)) is None:
            return ""
        answers = connection.scalar(
            sa.select(sa.func.count(sa.distinct(damage.c.exchange_id))).where(damage.c.exchange_id.in_(used))
        )
        others = connection.scalars(sa.select(damage.c.place).where(damage.c.run_id == run_id)).all()
    parts = [f"{answers:,} of its answers"] if answers else []
    parts += [", ".join(others[:3]) + (f" and {len(others) - 3:,} more" if len(others) > 3 else "")] if others else []
    if not parts:
        return ""
    return (
        f"DAMAGED: {' and '.join(parts)} are not as they were stored, and could not be repaired; numbers that use them "
        "cannot be trusted. `prejudge cache verify` names them."
    )
