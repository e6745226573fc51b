"""Whether a run is as it was stored, checked in the pass that reads its answers, and the head that follows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from ..contracts.canonical import KEY_VERSION
from ..contracts.errors import DataError
from .bulk import batched, rows_among, table_of
from .content import Sent
from .damage import UNREADABLE, damaged
from .evidence import ANSWER, VERSION, bytewise, earlier_answers_in, trial_digest
from .exchange_checks import NO_DIGEST, exchange_fault
from .parts import PART_BEGINS, REMEMBERED, part_numbers, split_parts
from .reading import RunRow, get_run
from .run_checks import TrialCheck, record_fault
from .store import Store
from .tables import Exchange, RunTrial

READ = ("ordinal", "trial", "factors", *ANSWER, "digest", "exchange_id", "same", "answer", "model_id", "request")
"""Columns of a row that is checked: of a trial, its answer, whether both have the same key, the answer's digest."""
_KEY, _DIGEST, _NUMBER, _SAME, _ANSWER, _MODEL, _REQUEST = (
    READ.index(name) for name in ("key", "digest", "exchange_id", "same", "answer", "model_id", "request")
)
LOADED = 1_000
"""Shared texts of requests that are read at once."""
_pack = msgspec.msgpack.Encoder().encode


def checked_columns() -> list[sa.ColumnElement[Any]]:
    """Return `READ` of the tables; the key is that of the answer, where there is one."""
    trials, exchange = table_of(RunTrial), table_of(Exchange)
    return [
        trials.c.ordinal,
        trials.c.trial,
        trials.c.factors,
        sa.func.coalesce(exchange.c.key, trials.c.key),
        *(exchange.c[name] for name in ANSWER[1:]),
        trials.c.digest,
        trials.c.exchange_id,
        trials.c.key == exchange.c.key,
        exchange.c.digest,
        exchange.c.model_id,
        exchange.c.request,
    ]


class RowCheck:
    """A check of trials with their answers as they are read.

    Each answer is hashed once per reading, with its request, which its key is the digest of.

    `strict`: a row that is not as it was stored is an error; otherwise `problem` says what the first one is.
    """

    def __init__(self, *, strict: bool = True) -> None:
        self.strict, self.problem, self.faults = strict, "", 0
        self._prefixes: dict[int, bytes] = {}
        self._parts: dict[str, str] = {}
        self._size = 0

    def check(self, connection: sa.Connection, stage: str, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """Check rows of `READ`, and return the digests of their trials.

        Raises:
            DataError: a row is not as it was stored.
        """
        self._load_models(connection, {row[_MODEL] for row in rows if row[_MODEL] is not None})
        digests: list[bytes] = []
        pack, sha256, prefixes, parts = _pack, hashlib.sha256, self._prefixes, self._parts
        for row in rows:
            answer, sound = None, True
            try:
                if row[_NUMBER] is not None:
                    request = row[_REQUEST]
                    before, mark, after = request.partition(PART_BEGINS)
                    if mark:  # most have one shared text; putting them together here takes a third of the time
                        number, _, after = after.partition("}")
                        if number in parts and PART_BEGINS not in after:
                            request = f"{before}{parts[number]}{after}"
                        else:
                            request = self._whole(connection, request, rows)
                            parts = self._parts
                    answer = sha256(pack(row[_KEY:_DIGEST])).digest()
                    key = sha256(prefixes[row[_MODEL]] + request.encode()).digest()
                    sound = key == row[_KEY] and answer == row[_ANSWER]
                digest = sha256(pack((stage, *row[: _KEY + 1], answer))).digest()
                if digest != row[_DIGEST] and (earlier := earlier_answers_in(row[_DIGEST])):
                    ordinal, trial, factors, key = row[: _KEY + 1]
                    digest = trial_digest(stage, ordinal, trial, factors, key, answer, earlier)
            except (*UNREADABLE, KeyError):
                digest, sound = b"", False
            if not sound or digest != row[_DIGEST] or row[_SAME] == 0:
                self._name_fault(connection, stage, row)
            digests.append(digest)
        return b"".join(digests)

    def report(self, where: str, problem: str) -> None:
        """Raise what is damaged, or remember the first.

        Raises:
            DataError: the check is strict.
        """
        if self.strict:
            raise damaged(where, problem)
        self.faults += 1
        self.problem = self.problem or f"{where}: {problem}"

    def receive(self, stage: str, digests: bytes) -> None:
        """Receive the digests of the next trials of a stage, in plan order."""

    def end(self, stage: str) -> None:
        """Receive the end of a stage."""

    def _name_fault(self, connection: sa.Connection, stage: str, row: tuple[Any, ...]) -> None:
        number, trial = row[_NUMBER], f"trial {row[1]!r} of stage {stage!r}"
        if number is not None and (fault := self._exchange_fault(connection, row)) is not None:
            return self.report(f"exchange {number}, the answer to {trial}", fault)
        if row[_SAME] == 0:
            return self.report(trial, "its exchange has another key")
        if row[_DIGEST] is None:
            return self.report(trial, NO_DIGEST)
        return self.report(trial, "its factors, name or place were changed, or the answer that it points to")

    def _exchange_fault(self, connection: sa.Connection, row: tuple[Any, ...]) -> str | None:
        if row[_KEY + 1] is None:
            return "it is not in the store"
        identity = self._prefixes.get(row[_MODEL], b"").removeprefix(KEY_VERSION + b"\0")[:-1]
        request = self._whole(connection, row[_REQUEST], [row]) if isinstance(row[_REQUEST], str) else ""
        key, operation, *answer = row[_KEY:_DIGEST]
        fault = exchange_fault(Sent(key, identity, operation, request, *answer), row[_ANSWER])
        return None if fault is None else fault[1]

    def _load_models(self, connection: sa.Connection, numbers: set[int]) -> None:
        """Remember what the keys of models begin with."""
        if not (new := numbers - self._prefixes.keys()):
            return
        for some in batched(sorted(new), LOADED):
            for number, digest, identity in rows_among(
                connection, "SELECT id, digest, identity FROM model WHERE id", some
            ):
                if not isinstance(identity, str) or hashlib.sha256(identity.encode()).digest() != digest:
                    self.report(f"model {number}", "its digest does not follow from its identity")
                if isinstance(digest, bytes):
                    self._prefixes[number] = KEY_VERSION + b"\0" + digest + b"\0"

    def _whole(self, connection: sa.Connection, text: str, rows: Sequence[tuple[Any, ...]]) -> str:
        """Return the canonical request of a stored one; shared texts are read for all these rows at once."""
        pieces = split_parts(text)
        if not self._parts.keys() >= set(pieces[1::2]):
            self._load_parts(connection, [row[_REQUEST] for row in rows if isinstance(row[_REQUEST], str)])
        pieces[1::2] = [self._parts.get(number, "") for number in pieces[1::2]]
        return "".join(pieces)

    def _load_parts(self, connection: sa.Connection, texts: Iterable[str]) -> None:
        if self._size > REMEMBERED:
            self._parts, self._size = {}, 0
        numbers = {number for text in texts for number in part_numbers(text) if str(number) not in self._parts}
        self._parts |= dict.fromkeys(map(str, numbers), "")  # what the store lacks has no key that follows from it
        for some in batched(sorted(numbers), LOADED):
            for number, literal in rows_among(connection, "SELECT id, literal FROM part WHERE id", some):
                if isinstance(literal, str):
                    self._parts[str(number)] = literal
                    self._size += len(literal)


class RunProof(RowCheck):
    """A check of a whole run while its stages are read.

    The head follows from the stages in Python's order of their names: read in this order, none is kept in memory.
    """

    def __init__(self, store: Store, run: RunRow) -> None:
        super().__init__(strict=not store.unproved)
        self._store, self._run = store, run
        self._hash = hashlib.sha256(VERSION)
        self._left = _stages(store, run.id)
        self._early: dict[str, bytearray] = {}
        self._ended: set[str] = set()

    @property
    def head(self) -> str:
        """Return the head that follows from what was read, hexadecimal; empty if the run has not ended, or is damaged.

        It is complete after `finish`.
        """
        return "" if self.problem or self._run.state == "running" else self._hash.hexdigest()

    def receive(self, stage: str, digests: bytes) -> None:
        """Add the digests of the next trials of a stage to the head, or keep them until it is the stage's turn."""
        if self._left and self._left[0] == stage:
            self._hash.update(digests)
        else:
            self._early.setdefault(stage, bytearray()).extend(digests)

    def end(self, stage: str) -> None:
        """Add the stages to the head whose turn it is after this one."""
        self._ended.add(stage)
        while self._left and self._left[0] in self._ended:
            self._left.pop(0)
            if self._left:
                self._hash.update(self._early.pop(self._left[0], b""))

    def remaining(self) -> list[str]:
        """Return the stages that were not read."""
        return [stage for stage in self._left if stage not in self._ended]

    def finish(self) -> None:
        """Compare the run's record, and the head that follows from what was read, with what was stored.

        Raises:
            DataError: they are not as they were stored.
        """
        run = self._run
        with self._store.reading() as connection:
            if (problem := record_fault(connection, run)) is not None:
                self._differs(f"run {run.name}", problem)
            elif run.state != "running":
                self._compare_head(connection)

    def _compare_head(self, connection: sa.Connection) -> None:
        run = self._run
        if not self.faults and self._hash.digest() != run.head:
            faults = list(TrialCheck(connection, run).faults())
            where, problem = (faults[0].where, faults[0].problem) if faults else ("all trials", "they were changed")
            self._differs(f"run {run.name}, {where}", problem)

    def _differs(self, where: str, problem: str) -> None:
        """Report what differs, unless another process has changed the run since it was looked up."""
        if get_run(self._store, self._run.name)._replace(local=None) != self._run._replace(local=None):
            raise DataError(
                f"run {self._run.name} was changed by another process while it was read. Do it again when that ends.",
                code="run.changed",
            )
        self.report(where, problem)


def _stages(store: Store, run_id: int) -> list[str]:
    """Return the stages of which a run has trials, in Python's order."""
    trials = table_of(RunTrial)
    stages: list[str] = []
    with store.reading() as connection:
        name = sa.collate(trials.c.stage, bytewise(connection))
        while True:
            later = name > stages[-1] if stages else sa.true()
            stage = connection.scalar(sa.select(sa.func.min(name)).where(trials.c.run_id == run_id, later))
            if stage is None:
                return stages
            stages.append(stage)
