"""`BatchStage`: all that a stage lacks is asked in batches, in rounds, until its answers are in the store.

A round looks up every trial, drafts batches of what is missing, hands them in, and collects them. Further attempts at
unreadable answers, and requests that failed without being charged, are missing in the next round. What another process
has handed in is waited for and collected like its own. Afterwards the stage is recorded as any other, from the store.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from ...catalogue.study import Study
from ...contracts import Stage
from ...contracts.abilities import OPERATIONS
from ...contracts.adapter import ModelAdapter
from ...contracts.batch import BatchApi, BatchCancelledError
from ...contracts.errors import (
    AuthenticationError,
    BudgetError,
    ModelError,
    PendingError,
    PermanentError,
    UsageError,
)
from ...contracts.records import AnyRequest, AnyResponse
from ...contracts.words import counted
from ...store import Failure, Found
from ...store.batches import OPEN, Batches, BatchRow, Draft, Item
from ..asking import Keyed, Settle
from ..budget import Spending
from ..charging import Charges
from ..ending import BATCH_CANCELLED, BATCH_LARGE, BATCHES_FAILING
from ..integrity.canary import DRAWS
from ..ledger import Ledger
from ..scheduler import Scheduler
from ..stopping import ERRORS
from ..windows import Window
from .manager import BatchManager
from .options import LONGEST_POLL, BatchOptions, BatchRecord
from .sentinel import Sentinels

LOG = logging.getLogger(__name__)
TRIES = 3
"""Batches that a request is part of in one command, if it expires or its failure may pass."""
FED = "its answers came in batches of other runs, whose manifests have their comparison with single calls"
OTHERS_SECONDS = 1.0
"""Seconds between two looks for answers that another process is asking for by single calls."""


class Lack(NamedTuple):
    """A request without an answer."""

    keyed: Keyed
    anew: str | None
    """Why its stored answer is not wanted; None if it has none."""


@dataclass
class BatchStage:
    """One stage of a run, asked in batches."""

    stage: Stage
    scheduler: Scheduler
    """What a stage that is asked by single calls would be asked with: its model, prices, budget and counts."""
    windows: Callable[[Settle], Iterator[Window]]
    """All trials of the stage, whose answers a function returns."""
    options: BatchOptions
    name: str
    """The model's name in the catalogue."""
    run: str
    keep_going: bool = False
    tries: Counter[bytes] = field(default_factory=Counter)
    given_up: set[bytes] = field(default_factory=set)
    own: set[bytes] = field(default_factory=set)
    """Keys whose answers this command stored."""

    def __post_init__(self) -> None:
        """Open the book of batches, and the manager of the provider's batches."""
        api = self.scheduler.adapter.batch_api
        assert api is not None
        self.api: BatchApi = api
        self.ledger, self.counts, self.budget = self.scheduler.ledger, self.scheduler.counts, self.scheduler.budget
        self.book = Batches(self.ledger.store)
        self.charges = Charges(
            self.scheduler.model_id, self.budget, self.scheduler.prices.in_batches(), self.scheduler.counts
        )
        self.manager = BatchManager(
            api,
            self.ledger,
            self.book,
            self._hear,
            self.scheduler.policy,
            generations=self.scheduler.generations,
            remote=self.scheduler.adapter.endpoint is not None,
        )
        self.sentinels = Sentinels(self.stage, self.scheduler, self.book, self.run, self.options.sentinel)
        self._watched: dict[int, BatchRow] = {}
        self._lacks: dict[bytes, Lack] = {}
        self._lost: set[bytes] = set()
        """Keys without an answer once all was collected."""
        self._failures: list[Failure] = []
        self._holds: dict[bytes, Spending] = {}
        self._alone: list[Spending] = []
        self._cancelled = self._permanent = self._good = 0
        self._refused: AuthenticationError | None = None
        self._last = ""
        self._short = False

    async def settle(self) -> None:
        """Ask until every answer is in the store.

        Raises:
            PendingError: the run is not to wait for its batches.
            BudgetError: the budget does not allow all that is missing.
            HaltedError: the provider refused or lost a batch, or it was cancelled.
            ModelError: the provider refuses the key.
        """
        while True:
            others = await self._draft()
            if self._watched:
                await self._drive()
            elif others:
                await asyncio.sleep(OTHERS_SECONDS)
            elif self._short and self.budget is not None:
                raise BudgetError(self.budget.explain())
            else:
                break

    async def collect(self, requests: Sequence[Keyed], anew: Mapping[bytes, str] | None = None) -> dict[bytes, Found]:
        """Return the stored answers to requests once all are settled; those without an answer have failed."""
        answers, missing, _ = await self.scheduler.look_up(requests, anew)
        asked = answers.keys() & self.own  # counted when they were stored
        self.own -= asked
        self.counts.cached += len(answers) - len(asked)
        self.counts.refused += sum(answer.status != "ok" for key, answer in answers.items() if key not in asked)
        self._lost |= missing.keys()
        self.counts.failed = len(self._lost)
        self.scheduler.on_progress(self.counts)
        return answers

    async def _survey(self, requests: Sequence[Keyed], anew: Mapping[bytes, str] | None = None) -> dict[bytes, Found]:
        """Return the stored answers to requests, and remember those without one."""
        answers, missing, anew = await self.scheduler.look_up(requests, anew)
        self._lacks |= {key: Lack(keyed, None if anew is None else anew[key]) for key, keyed in missing.items()}
        return answers

    async def record(self, before: BatchRecord | None) -> BatchRecord:
        """Return what was asked in batches, for the manifest."""
        batches = await self.ledger.do(self.book.of_stage, self.ledger.run_id, self.stage.name)
        notes = (*(before.notes if before is not None else ()), *self.manager.notes)
        unique = tuple(dict.fromkeys(notes))
        return msgspec.structs.replace(_recorded(batches), notes=unique, sentinel=await self.sentinels.compare())

    async def _draft(self) -> int:
        """Record batches of all that is missing; return how much of it other processes are asking for."""
        pile, others = _Pile(), 0
        self._short = False
        self._free_alone()
        await self.ledger.do(self.book.close_settled)
        await self.sentinels.recall()
        for window in self.windows(self._survey):
            first = list(window.keyed)
            self._lacks = {}
            await window.answer()
            lacks = {key: lack for key, lack in self._lacks.items() if key not in self.given_up}
            holders = await self.ledger.do(self.book.holding, list(lacks))
            for number in {*holders.values()} - self._watched.keys():
                self._watched[number] = await self.ledger.do(self.book.get, number)
            alone = {key for key in lacks if self._is_not_handed_in(holders.get(key))}
            self.sentinels.meet(window.trials, first, alone)
            anew = {key: lack.keyed.request for key, lack in lacks.items() if lack.anew is not None}
            await self.manager.note_generations(anew)
            for key, lack in lacks.items():
                if key not in holders and self._admit(lack):
                    try:
                        line = await self.api.encode(key.hex(), lack.keyed.request)
                    except ModelError as error:  # a request that cannot be sent, such as one for a lost image
                        self._fail(key, error)
                        self.given_up.add(key)
                        self._release(key, Spending())
                        continue
                    if pile.is_full(len(line), self._most_items, self.api.limits.bytes):
                        others += await self._write(pile)
                    pile.add(Draft(key, lack.keyed.encoded, lack.anew, len(line)), self.api.limits.bytes)
        others += await self._write(pile)
        await self._report()
        return others

    def _is_not_handed_in(self, number: int | None) -> bool:
        """Return whether a request is in no batch, or in one that a killed command of this run has only drafted."""
        row = None if number is None else self._watched[number]
        return row is None or (row.run == self.run and row.state == "drafted")

    @property
    def _most_items(self) -> int:
        return min(self.api.limits.items, self.options.items or self.api.limits.items)

    def _admit(self, lack: Lack) -> bool:
        """Reserve the cost of a request, if the budget has room."""
        if self.budget is None or lack.keyed.key in self._holds:
            return True
        if self._short:
            return False
        hold, alone = self.charges.guess([lack.keyed]), self._guess_alone(lack.keyed)
        if not self.budget.admit(hold.plus(alone)):
            self._short = True
            return False
        self._holds[lack.keyed.key] = hold
        self._alone.append(alone)
        return True

    def _guess_alone(self, keyed: Keyed) -> Spending:
        """Return what a request adds to the single calls before its batch: its own, as a sentinel, and the canary."""
        calls = int(len(self._alone) < self.sentinels.left)
        if not self._alone and (inspector := self.scheduler.inspector) is not None:
            calls += 2 * DRAWS * inspector.wants_canary(keyed.request)
        if not calls:
            return Spending()
        guess = Charges(self.scheduler.model_id, self.budget, self.scheduler.prices, self.counts).guess([keyed])
        return Spending(calls, guess.tokens * calls, guess.cost * calls)

    def _free_alone(self) -> None:
        """Release what was reserved for single calls."""
        while self.budget is not None and self._alone:
            self.budget.release(self._alone.pop(), Spending())

    async def _write(self, pile: _Pile) -> int:
        """Draft a batch, and return how many of its requests others are asking for."""
        rows = pile.take()
        if not rows:
            return 0
        facts = {
            "model_id": self.scheduler.model_id,
            "name": self.name,
            "operation": OPERATIONS[self.stage.operation],
            "run": self.run,
            "stage": self.stage.name,
        }
        row, mine = await self.ledger.do(self.book.draft, rows, self.ledger.worker, **facts)
        if row is not None:
            self._watched[row.id] = row
        for draft in rows:
            if draft.key not in mine:
                self._release(draft.key, Spending())
        return len(rows) - len(mine)

    async def _drive(self) -> None:
        """Hand in and collect the watched batches."""
        self._free_alone()
        await self.sentinels.ask(self.keep_going)
        pause, swept = self.options.poll_seconds, False
        while self._watched:
            before = {number: row.state for number, row in self._watched.items()}
            for number, row in list(self._watched.items()):
                now = await self.manager.advance(await self.ledger.do(self.book.get, row.id) if swept else row)
                await self._report()
                self._watched[number] = now
                if now.state not in OPEN:
                    del self._watched[number]
            self._count_waiting()
            self._stop_if_told()
            if self._watched and not self.options.wait and self._are_handed_in():
                raise PendingError(self._pending())
            changed = before != {number: row.state for number, row in self._watched.items()}
            pause = self.options.poll_seconds if changed else min(LONGEST_POLL, pause * 1.5)
            if self._watched:
                await asyncio.sleep(pause)
            swept = True

    def _are_handed_in(self) -> bool:
        waits = time.monotonic() < self.manager.full_until
        return waits or all(row.state not in ("drafted", "uploaded") for row in self._watched.values())

    def _pending(self) -> str:
        rows = self._watched.values()
        names = ", ".join(row.provider_id or f"{row.id} ({row.state})" for row in rows)
        return (
            f"{counted(sum(row.items for row in rows), 'request')} of the stage {self.stage.name!r} are with the "
            f"provider. Batches: {names}."
        )

    def _count_waiting(self) -> None:
        self.counts.batched = sum(row.items for row in self._watched.values())
        self.scheduler.on_progress(self.counts)

    def _hear(
        self, outcomes: Sequence[tuple[Item, AnyRequest, AnyResponse | ModelError]], new: frozenset[bytes]
    ) -> None:
        """Count what was collected; a failure that costs nothing and may pass is asked again in the next round."""
        for item, request, outcome in outcomes:
            keyed = Keyed(item.key, request, item.request)
            if isinstance(outcome, ModelError):
                self._fail(item.key, outcome)
                self._release(item.key, Spending(1))
                continue
            self._good += 1
            self.scheduler.generations.pop(request, None)
            if self.scheduler.inspector is not None:
                self.scheduler.inspector.look(item.key, request, outcome)
            self._release(item.key, self.charges.charge([(keyed, outcome)]))
            if item.key in new:
                self.own.add(item.key)
                self.counts.add([outcome])
        self.scheduler.on_progress(self.counts)

    def _fail(self, key: bytes, error: ModelError) -> None:
        self._failures.append(Failure(key, error.decision.value, str(error)))
        self.tries[key] += 1
        self._last = str(error)
        if isinstance(error, AuthenticationError):
            self._refused = error
        if isinstance(error, BatchCancelledError):
            self._cancelled += 1
        elif isinstance(error, PermanentError) or self.tries[key] >= TRIES:
            self.given_up.add(key)
            self._permanent += 1
        else:
            self.counts.retried += 1

    async def _report(self) -> None:
        failures, self._failures = self._failures, []
        if failures:
            await self.ledger.fail(failures)

    def _stop_if_told(self) -> None:
        if self._refused is not None:
            raise self._refused
        if self._cancelled:
            raise BATCH_CANCELLED.error(requests=counted(self._cancelled, "request"))
        if self._permanent >= ERRORS and not self._good and not self.keep_going:
            raise BATCHES_FAILING.error(requests=counted(self._permanent, "request"), failure=self._last)

    def _release(self, key: bytes, spent: Spending) -> None:
        """Count what a request cost instead of what was reserved for it, if this command handed it in."""
        if self.budget is not None and (hold := self._holds.pop(key, None)) is not None:
            self.budget.release(hold, spent)


@dataclass
class _Pile:
    """Requests for the next batch."""

    rows: list[Draft] = field(default_factory=list)
    size: int = 0

    def is_full(self, line: int, items: int, most: int) -> bool:
        return bool(self.rows) and (len(self.rows) >= items or self.size + line + 1 > most)

    def add(self, draft: Draft, most: int) -> None:
        if draft.size + 1 > most:
            raise BATCH_LARGE.error(size=draft.size, most=most)
        self.rows.append(draft)
        self.size += draft.size + 1

    def take(self) -> list[Draft]:
        rows, self.rows, self.size = self.rows, [], 0
        return rows


def _recorded(found: Sequence[tuple[BatchRow, int]]) -> BatchRecord:
    return BatchRecord(
        batches={row.provider_id or row.mark: row.outcome or row.state for row, _ in found},
        answers=sum(answers for _, answers in found),
    )


async def fed(ledger: Ledger, stage: str) -> BatchRecord | None:
    """Return the batches of other runs whose answers a stage has that asked in none; None if there are none."""
    batches = await ledger.do(Batches(ledger.store).of_stage, ledger.run_id, stage)
    return msgspec.structs.replace(_recorded(batches), notes=(FED,)) if batches else None


def takes(adapter: ModelAdapter, stage: Stage) -> bool:
    """Return whether a model's provider takes the requests of a stage in batches."""
    return adapter.batch_api is not None and stage.operation in adapter.batch_api.takes


def ensure_batches(study: Study, stages: Iterable[Stage], adapters: Mapping[str, ModelAdapter]) -> None:
    """Refuse to ask in batches where no stage can be asked so; where one can, the others are asked by single calls.

    Raises:
        UsageError: naming the models.
    """
    asked = [(stage, study.roles[stage.role]) for stage in stages]
    if not any(takes(adapters[model], stage) for stage, model in asked):
        models = ", ".join(sorted({repr(model) for _, model in asked}))
        raise UsageError(
            f"--batch: the provider of {models} takes no batches of what the study {study.name!r} asks, or the adapter "
            "does not know how. Leave --batch out.",
            code="batch.none",
        )
