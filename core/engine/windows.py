"""`Windows`: the trials of a stage, from their requests to the rows of the store, a limited number at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ..contracts import Stage, Trial, Unreadable
from ..contracts.canonical import decode_response, encode
from ..contracts.errors import StoreError
from ..contracts.records import AnyRequest, AnyResponse
from ..store import Found, NewTrial
from ..store.bulk import batched
from .asking import Keyed, Settle
from .reading import Outcome, as_read, outcomes_of, read_answer
from .scheduler import Scheduler

LOG = logging.getLogger(__name__)
WINDOW = 4096
"""Trials planned at a time."""
OPEN_WINDOWS = 2
"""Number of windows at a time: the next one uses slots that are free while the last requests of this one run."""


class Source(NamedTuple):
    """Where the trials of a stage get their answers."""

    stage: Stage
    scheduler: Scheduler
    settle: Settle
    """Of the scheduler, or one that asks nothing."""
    refresh: tuple[Outcome, ...] = ()
    """Outcomes whose stored answers are asked anew."""


class Window:
    """Consecutive trials of a stage, in plan order from `ordinal` on."""

    def __init__(self, source: Source, ordinal: int, trials: list[Trial]) -> None:
        self.stage, self.scheduler, self._settle, self._refresh = source
        self.ordinal, self.trials = ordinal, trials
        self.keyed: list[Keyed] = [self.scheduler.key(trial.request) for trial in trials]
        self.answers: dict[bytes, Found] = {}
        self.earlier: dict[int, list[bytes]] = {}
        """By index, digests of the answers to attempts that were followed by another."""
        self.settled = False
        """Whether each trial was answered, or failed finally, and is recorded."""
        self._fresh = self.scheduler.fresh if self.scheduler.fresh is not None else {}

    async def settle(self) -> None:
        """Find the answers of the trials, and record them."""
        await self.answer()
        for answer in self.answers.values():
            self._fresh.pop(answer.exchange_id, None)
        await self.scheduler.ledger.add_trials(self._rows())
        self.settled = True
        self.scheduler.counts.trials += len(self.trials)
        self.scheduler.on_progress(self.scheduler.counts)

    async def look_up(self) -> None:
        """Look up the answers that the store has, where waiting for them was ended."""
        if self.settled:
            return
        indices = list(range(len(self.keyed)))
        while indices:
            stored = await self.scheduler.look_up([self.keyed[index] for index in indices])
            self.answers |= stored.answers
            # A trial that was to be asked again has the answer of the attempt before.
            indices = [index for index in indices if self.keyed[index].key not in self.answers and self._attempt(index)]
            for index in indices:
                self.earlier[index].pop()
                request = msgspec.structs.replace(self.trials[index].request, attempt=self._attempt(index) - 1)
                self.keyed[index] = self.scheduler.key(request)

    def _attempt(self, index: int) -> int:
        return self.keyed[index].request.attempt if self.stage.rules.attempts > 1 else 0

    async def record(self) -> None:
        """Record the trials with their answers; one without an answer and a failure was not asked."""
        if not self.settled:
            await self.scheduler.ledger.add_trials(self._rows(), again=True)
            self.scheduler.counts.trials += len(self.answers)

    async def answer(self) -> None:
        """Find the answers of the trials: stored ones, or those that the scheduler asks for."""
        await self._ask(range(len(self.trials)))
        for attempt in range(1, self.stage.rules.attempts):
            if not (unanswered := await self._unanswered(attempt - 1)):
                break
            for index in unanswered:
                self.earlier.setdefault(index, []).append(self.answers[self.keyed[index].key].digest or b"")
                request = msgspec.structs.replace(self.trials[index].request, attempt=attempt)
                self.keyed[index] = self.scheduler.key(request)
            await self._ask(unanswered)
        await self._renew()

    async def _renew(self) -> None:
        """Ask anew, once, for the answers that have an outcome to refresh and are older than the run."""
        if not self._refresh:
            return
        last = self._last()
        old = await self.scheduler.ledger.older({answer.exchange_id for answer in last.values()}, self.scheduler.since)
        responses = await self._responses(old)
        anew: dict[bytes, str] = {}
        for index, answer in last.items():
            if answer.exchange_id in old:
                outcomes = outcomes_of(self.stage, self.trials[index].factors, responses[answer.exchange_id])
                if chosen := next((outcome for outcome in self._refresh if outcome in outcomes), None):
                    anew[self.keyed[index].key] = chosen
        await self._ask([index for index, keyed in enumerate(self.keyed) if keyed.key in anew], anew)

    async def _ask(self, indices: Sequence[int], anew: Mapping[bytes, str] | None = None) -> None:
        trials = {self.keyed[index].key: self.trials[index] for index in indices}
        detector = self.scheduler.detector
        if detector is not None:
            detector.expect(trials)
        requests = [self.keyed[index] for index in indices]
        answers = await self._settle(requests, anew)
        for keyed in requests:
            self.answers.pop(keyed.key, None)  # where it failed, there is no answer
        self.answers |= answers
        if detector is not None:
            detector.forget(trials)

    async def answered(self) -> list[tuple[Trial, AnyRequest, AnyResponse]]:
        """Return the trials that have an answer, each with its last request and that answer."""
        last = self._last()
        responses = await self._responses({answer.exchange_id for answer in last.values()})
        return [
            (self.trials[index], self.keyed[index].request, responses[answer.exchange_id])
            for index, answer in last.items()
        ]

    def _last(self) -> dict[int, Found]:
        """Return the answer to the last attempt of each trial that has one."""
        return {index: self.answers[keyed.key] for index, keyed in enumerate(self.keyed) if keyed.key in self.answers}

    async def _unanswered(self, attempt: int) -> list[int]:
        """Return the trials that are asked again, because this attempt has no answer."""
        latest = {
            index: self.answers[keyed.key]
            for index, keyed in enumerate(self.keyed)
            if keyed.request.attempt == attempt and keyed.key in self.answers
        }
        responses = await self._responses({answer.exchange_id for answer in latest.values()})
        return [index for index, answer in latest.items() if self._asks_again(index, responses[answer.exchange_id])]

    async def _responses(self, exchanges: set[int]) -> dict[int, AnyResponse]:
        """Return answers as they are read: new ones from memory, others from the store."""
        new = {number: as_read(self._fresh[number]) for number in exchanges if number in self._fresh}
        if not (others := exchanges - new.keys()):
            return new
        stored = await self.scheduler.ledger.responses(others)
        return new | {number: as_read(decode_response(response)) for number, response in stored.items()}

    def _asks_again(self, index: int, response: AnyResponse) -> bool:
        """Return whether a response has no answer, and the stage asks again for its status."""
        again = self.stage.rules.again
        if response.status not in ("ok", *again):
            # Nothing is asked, whatever can be read.
            return False
        outcome = read_answer(self.stage, self.trials[index].factors, response)
        return "unreadable" in again if isinstance(outcome, Unreadable) else outcome is None

    def _rows(self) -> list[NewTrial]:
        run, stage = self.scheduler.ledger.run_id, self.stage.name
        rows = []
        for index, (trial, keyed) in enumerate(zip(self.trials, self.keyed, strict=True)):
            answer = self.answers.get(keyed.key)
            earlier = b"".join(self.earlier.get(index, ())) if answer is not None else b""
            factors = encode(trial.factors).decode()
            rows.append(NewTrial(run, stage, self.ordinal + index, trial.id, factors, keyed.key, answer, earlier))
        return rows


class Windows:
    """The windows of a run that were begun; settled ones leave the list when the next one is begun."""

    def __init__(self) -> None:
        self._unsettled: list[Window] = []

    async def ask(self, source: Source, planned: Iterable[Trial], ordinal: int = 0) -> int:
        """Ask trials, the first of which is number `ordinal` of its stage; return the number of the next one."""
        under_way: deque[asyncio.Task[None]] = deque()
        try:
            for trials in batched(planned, WINDOW):
                window = Window(source, ordinal, trials)
                self._unsettled = [*(other for other in self._unsettled if not other.settled), window]
                under_way.append(asyncio.create_task(window.settle()))
                ordinal += len(trials)
                if len(under_way) == OPEN_WINDOWS:
                    await under_way.popleft()
            while under_way:
                await under_way.popleft()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        return ordinal

    async def record_answered(self) -> None:
        """Record the answered trials of windows that an error ended, so that an unfinished run can be scored."""
        try:
            for window in self._unsettled:
                await window.look_up()
            # Without an answer in it, a window has a record only if a later one has, since trials are numbered.
            while self._unsettled and not self._unsettled[-1].answers:
                self._unsettled.pop()
            for window in self._unsettled:
                await window.record()
        except StoreError as lost:
            LOG.warning("the answers are stored, and are recorded as those of this run when it is resumed: %s", lost)
