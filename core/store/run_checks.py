"""Whether the trials and the record of a run are those that were stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.records import Scalar
from .attempts import missing_answers, stream_attempts
from .bulk import plain_rows, table_of
from .damage import UNREADABLE
from .evidence import READ, VERSION, earlier_answers_in, failures_of, plan_order, record_digest, trial_digest
from .reading import RunRow
from .tables import Exchange, Run, RunTrial

_factors: msgspec.json.Decoder[dict[str, Scalar]] = msgspec.json.Decoder(dict[str, Scalar])


class TrialFault(NamedTuple):
    """A trial that was changed, or places of the plan that have no trial."""

    where: str
    field: str
    problem: str


class TrialCheck:
    """One check of a run's trials; `head` is complete when `faults` is exhausted."""

    def __init__(self, connection: sa.Connection, run: RunRow) -> None:
        self._connection, self._run = connection, run
        self._hash = hashlib.sha256(VERSION)
        self._last: tuple[str, int] = ("", -1)
        self._gaps: list[TrialFault] = []
        self.count = 0

    @property
    def head(self) -> bytes:
        """Return the head of the trials checked so far, from their stored digests."""
        return self._hash.digest()

    def faults(self) -> Iterator[TrialFault]:
        """Check all trials, and yield what was changed."""
        trials, exchange = table_of(RunTrial), table_of(Exchange)
        columns = [trials.c[name] for name in ("stage", "ordinal", "trial", "factors", "key", "exchange_id", "digest")]
        query = (
            sa.select(*columns, exchange.c.id, exchange.c.key, exchange.c.digest)
            .join_from(trials, exchange, trials.c.exchange_id == exchange.c.id, isouter=True)
            .where(trials.c.run_id == self._run.id)
            .order_by(*plan_order(self._connection))
        )
        fault_count = 0
        for rows in plain_rows(self._connection, query, READ):
            self.count += len(rows)
            for row in rows:
                self._pass(row)
                if (fault := _trial_fault(row)) is not None:
                    fault_count += 1
                    yield TrialFault(f"trial {row[2]!r} of stage {row[0]!r}", *fault)
        for attempt_fault in self._attempt_faults():
            fault_count += 1
            yield attempt_fault
        if self._run.state == "running":
            return
        if self._run.head is None:
            yield TrialFault("all trials", "head", "the run has no head, although it ended")
        elif self.head != self._run.head:
            yield from self._gaps
            if not fault_count and not self._gaps:
                problem = "some were added or removed: they are not those that were recorded"
                yield TrialFault("all trials", "head", problem)

    def _attempt_faults(self) -> Iterator[TrialFault]:
        for attempts in stream_attempts(self._connection, table_of(RunTrial).c.run_id == self._run.id):
            for trial, number in missing_answers(self._connection, attempts):
                problem = f"the answer to its attempt {number} is not in the store, or was changed"
                yield TrialFault(f"trial {trial.trial!r} of stage {trial.stage!r}", "answer", problem)

    def _pass(self, row: tuple[Any, ...]) -> None:
        """Add a row to the head, and note the places before it that have no trial."""
        stage, ordinal, digest = row[0], row[1], row[6]
        self._hash.update(digest if isinstance(digest, bytes) else b"")
        if not isinstance(ordinal, int):
            return
        before = self._last[1] if stage == self._last[0] else -1
        if ordinal > before + 1:
            places = f"{before + 1}" if ordinal == before + 2 else f"{before + 1} to {ordinal - 1}"
            self._gaps.append(TrialFault(f"place {places} of stage {stage!r}", "trials", "there is no trial"))
        self._last = stage, ordinal


def record_fault(connection: sa.Connection, run: RunRow) -> str | None:
    """Return the problem of a run's own row and failed calls; None if there is none."""
    table = table_of(Run)
    names = ("study", "state", "manifest", "started", "finished", "record")
    query = sa.select(*(table.c[name] for name in names)).where(table.c.id == run.id)
    (rows,) = plain_rows(connection, query, READ)
    *row, record = rows[0]
    try:
        digest = record_digest(row, failures_of(connection, run.id) if run.state != "running" else ())
    except UNREADABLE as error:
        return f"its record cannot be read: {error}"
    if record is None:
        return "it has no digest: it was added, or its digest removed"
    return None if digest == record else "its manifest, study, state, times or failed calls were changed"


def _are_flat(factors: str) -> bool:
    try:
        _factors.decode(factors)
    except msgspec.MsgspecError:
        return False
    return True


def _trial_fault(row: tuple[Any, ...]) -> tuple[str, str] | None:
    stage, ordinal, trial, factors, own_key, exchange_id, digest, stored_id, key, answer = row
    try:
        expected = trial_digest(stage, ordinal, trial, factors, own_key, answer, earlier_answers_in(digest))
    except UNREADABLE as error:
        return "factors", f"it cannot be read: {error}"
    if expected == digest and (exchange_id is None or key == own_key):
        return None if _are_flat(factors) else ("factors", "its factors are not a flat JSON object")
    if exchange_id is not None and stored_id is None:
        return "answer", "its exchange is not in the store"
    if exchange_id is not None and key != own_key:
        return "answer", "its exchange has another key"
    if digest is None:
        return "digest", "it has no digest: it was added, or its digest removed"
    return "factors", "its factors, name or place were changed, or the answer that it points to"
