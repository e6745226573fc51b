"""`Scheduler`: from requests to committed answers, for one model.

Each key is asked once, however many trials need it (single-flight). Stored answers are not requested again. Requests
are batched by length, and sent by as many workers as the model has slots: a call in flight holds a slot, a waiting call
and a commit do not. An answer counts only when committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..catalogue.prices import Prices
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import ModelAdapter, affinity
from ..contracts.canonical import encode, encode_response, request_key
from ..contracts.errors import DataError, ModelError, PermanentError
from ..contracts.records import AnyRequest, AnyResponse
from ..store import Failure, Found, NewExchange
from ..store.batches import Batches
from .asking import Asking, Call, Failed, Job, Keyed
from .budget import Budget, Hold, Spending
from .calls import Calls
from .charging import Charges
from .commits import Commits
from .drawing import Drawing
from .ending import BATCH_HOLDS
from .integrity.replies import Inspector
from .ledger import Ledger
from .limiter import Limiter, Ticket
from .progress import Counts
from .retry import RetryPolicy
from .stopping import FailureDetector, Stopping

LOG = logging.getLogger(__name__)
POLL_SECONDS = 0.02
"""Seconds of the first wait for a key that another process is asking; later waits are longer."""
SHOWN_SECONDS = 10.0
"""Shortest wait that is shown."""
Mode = Literal["use", "replay", "refresh"]


class LookUp(NamedTuple):
    """What the store has of some requests."""

    answers: dict[bytes, Found]
    missing: dict[bytes, Keyed]
    anew: Mapping[bytes, str] | None
    """By key, the outcome for which a stored answer is not wanted; None where any answer counts."""


@dataclass
class Scheduler:
    """Answer requests to one model, from the store or by asking."""

    adapter: ModelAdapter
    ledger: Ledger
    model_id: int
    identity: bytes
    mode: Mode = "use"
    since: float = 0.0
    """Start of the run: an answer stored later need not be asked anew."""
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    counts: Counts = field(default_factory=Counts)
    on_progress: Callable[[Counts], None] = lambda counts: None
    limiter: Limiter | None = None
    """The limiter of the endpoint, shared by all models behind it; None: a new one."""
    budget: Budget | None = None
    """The budget of all stages of the run together."""
    prices: Prices = field(default_factory=Prices)
    detector: FailureDetector | None = None
    """Stops the stage if all its requests meet the same fault; None: it never stops for that."""
    fresh: dict[int, AnyResponse] | None = None
    """New answers by exchange; the reader removes them. None: there is no reader."""
    inspector: Inspector | None = None
    """Looks at each answer of an endpoint; None: a model in this process."""
    first: set[bytes] = field(default_factory=set)
    """Keys that were asked before the others, and are counted: they are looked up with these, and not asked again."""
    generations: dict[AnyRequest, int] = field(default_factory=dict)
    """How often requests that are asked anew were answered before; adapters read it (`Services.generation`)."""

    def __post_init__(self) -> None:
        """Make the limiter and the table of requests in flight."""
        self._slots = self.adapter.limits.concurrency
        self._gate = self.limiter or Limiter(self.adapter.limits, remote=self.adapter.endpoint is not None)
        self._calls = Calls(self.adapter, self._gate)
        self._charges = Charges(self.model_id, self.budget, self.prices, self.counts)
        self._commits: Commits[Call] = Commits(self._slots, self._commit, self._fail)
        self._flights: dict[bytes, Asking] = {}
        self._askings: set[Asking] = set()
        self._queue: deque[Iterator[Job]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._flying = 0
        self._stopping = Stopping(self._gate, self.detector)
        self._drawing = Drawing(
            self.adapter.limits.batch_items, self.key, self._calls, self._charges, self.budget, self.counts,
            self._gate, self.policy, self._stopping, self._enter, self._wait,
        )  # fmt: skip

    def key(self, request: AnyRequest) -> Keyed:
        """Return a request with its key."""
        encoded = encode(request)
        return Keyed(request_key(self.identity, encoded), request, encoded)

    async def settle(self, requests: Sequence[Keyed], anew: Mapping[bytes, str] | None = None) -> dict[bytes, Found]:
        """Return an answer per key; keys that are not in the result failed.

        Args:
            requests: what to ask.
            anew: ask all of them again, because the stored answer has this outcome.

        Raises:
            AuthenticationError: the model refuses the key or account.
            HaltedError: all requests meet the same fault.
        """
        answers, missing, anew = await self.look_up(requests, anew)
        self._count_cached(answers)
        if self.first and anew is None:
            missing = {key: keyed for key, keyed in missing.items() if key not in self.first}
        if self.mode == "replay":
            self.counts.missed += len(missing)
            return answers
        before = {} if anew is None else await self.ledger.generations(missing)
        # From here to the entry of its keys in the table, a caller does not wait: no two ask one key.
        shared = {key: self._flights[key].watch(key) for key in missing if key in self._flights}
        asked = [keyed for key, keyed in missing.items() if key not in shared]
        if anew is not None:
            self.ledger.renew({keyed.key: anew[keyed.key] for keyed in asked})
            self.generations |= {keyed.request: before[keyed.key] for keyed in asked if keyed.key in before}
        await self._ask(asked, answers)
        if self.generations:
            for keyed in asked:
                self.generations.pop(keyed.request, None)
        for key, flight in shared.items():
            if (answer := await flight) is not None:
                answers[key] = answer
        return answers

    async def look_up(self, requests: Sequence[Keyed], anew: Mapping[bytes, str] | None = None) -> LookUp:
        """Return the stored answers to requests, and the requests without one; nothing is asked."""
        wanted = {keyed.key: keyed for keyed in requests}
        if self.mode == "refresh":
            anew = dict.fromkeys(wanted, "")
        answers = await self.ledger.find(list(wanted), None if anew is None else self.since)
        return LookUp(answers, {key: keyed for key, keyed in wanted.items() if key not in answers}, anew)

    async def aclose(self) -> None:
        """Commit the answers that were received."""
        await self._commits.finish()

    def _count_cached(self, found: Mapping[bytes, Found]) -> None:
        if self.first:
            found = {key: answer for key, answer in found.items() if key not in self.first}
        self.counts.cached += len(found)
        self.counts.refused += sum(answer.status != "ok" for answer in found.values())
        self.on_progress(self.counts)

    async def _ask(self, missing: Sequence[Keyed], found: dict[bytes, Found]) -> None:
        if not missing:
            return
        shared = affinity if self.adapter.endpoint is None else None
        asking = Asking(missing, self.adapter.limits.batch_items, found, shared)
        self._askings.add(asking)
        self._flights |= {keyed.key: asking for keyed in missing}
        try:
            self._enqueue(asking.jobs(), asking.left)
            await asking.done
        finally:
            for keyed in missing:
                del self._flights[keyed.key]
            asking.close()
            self.ledger.release([keyed.key for keyed in missing])
            self._askings.discard(asking)
            if not self._askings:
                await self._dismiss()

    def _enqueue(self, jobs: Iterator[Job], number: int) -> None:
        """Have a worker for each of so many jobs, as far as there are slots."""
        self._queue.append(jobs)
        for _ in range(min(number, self._slots - len(self._workers))):
            self._workers.add(asyncio.create_task(self._work()))

    def _next(self) -> Job | None:
        while self._queue:
            for job in self._queue[0]:
                if not job.asking.over:
                    return job
            self._queue.popleft()
        return None

    async def _dismiss(self) -> None:
        self._queue.clear()
        workers, self._workers = self._workers, set()
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _fail(self, error: Exception) -> None:
        for asking in self._askings:
            if not asking.over:
                asking.done.set_exception(error)

    async def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                await self._send(job)
        except Exception as error:
            self._fail(error)
        finally:
            self._workers -= {asyncio.current_task()}

    async def _send(self, job: Job) -> None:
        """Ask the requests of a job that no other process is asking, and as many as the budget allows."""
        # Each wait costs as much as a key, so none is made for nothing.
        stopping, gate = self._stopping, self._gate
        if stopping.reason is not None:
            await stopping.raise_reason()
        if self._commits.full:
            await self._commits.room()
        asked, later = (job.pending, []) if self._holds(job) else await self._claim(job)
        if not asked:
            await self._stop_if_batched(job, later)
            job.polls += 1
            self._go_on(job, later, POLL_SECONDS * min(2.0 ** (job.polls - 1), 16.0))
            return
        if self.inspector is not None and self.inspector.wants_canary(asked[0].request):
            await self.try_canary(asked)
        hold = Hold(Spending(len(asked))) if self.budget is None else await self._charges.reserve(asked)
        if hold.requests < len(asked):
            asked, later = asked[: hold.requests], asked[hold.requests :] + later
        ticket = gate.try_enter(len(asked)) if stopping.reason is None else None
        if ticket is None:
            ticket = await self._enter(len(asked))
        self._flying += 1
        stopping.open()
        try:
            answers, latency = await self._calls.ask(asked, ticket)
        except BaseException:
            stopping.close(1)
            raise
        finally:
            self._flying -= 1
        call = self._receive(job, hold, asked, answers, latency)
        call.rest.extend(later)
        self._commits.put(call, soon=bool(call.failed or later or not self._flying))

    async def try_canary(self, asked: Sequence[Keyed]) -> None:
        """Ask the canary before the first request that samples; stop if its draws are alike.

        Raises:
            HaltedError: they are, and the run was not told to ask all the same.
            BudgetError: no request of a trial would be left after it.
        """
        watch = self.inspector.canary if self.inspector is not None else None
        if watch is None or watch.outcome is not None:
            return
        await self._drawing.ask(watch, [keyed.request for keyed in asked])
        if self._stopping.reason is not None:
            await self._stopping.raise_reason()

    def _receive(
        self, job: Job, held: Hold, asked: list[Keyed], answers: list[AnyResponse | ModelError], latency: float
    ) -> Call:
        """Tell answers from failures, and look for a reason to stop."""
        call = Call(job, held)
        for keyed, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ModelError):
                call.failed.append((keyed, answer))
                continue
            try:
                call.rows.append(self._row(keyed, answer, latency))
            except DataError as error:
                call.failed.append((keyed, PermanentError(str(error), code="model.response")))
                continue
            call.answered.append((keyed, answer))
            if self.inspector is not None:
                self.inspector.look(keyed.key, keyed.request, answer)
        self._stopping.answered(call.answered)
        if call.failed:
            again = [(keyed, error) for keyed, error in call.failed if self.policy.again(error, job.retries)]
            retried = {keyed.key for keyed, _ in again}
            self._stopping.failed([(keyed, error) for keyed, error in call.failed if keyed.key not in retried])
            call.rest, call.again = [keyed for keyed, _ in again], len(again)
            call.wait = self._wait([error for _, error in again], job.retries) if again else 0.0
        # An outage is not the fault of the request that met it; the limiter ends the run if it lasts.
        job.retries, job.polls = job.retries + (self.detector is None or not self._gate.down), 0
        return call

    def _holds(self, job: Job) -> bool:
        """Claim the requests of a job at once, if no other process uses the store; return whether it is so."""
        return self.ledger.hold([keyed.key for keyed in job.pending])

    async def _claim(self, job: Job) -> tuple[list[Keyed], list[Keyed]]:
        """Return requests that this process asks, and those that another process is asking; the rest are answered."""
        claimed = await self.ledger.claim([keyed.key for keyed in job.pending])
        if claimed.found:
            self._count_cached(claimed.found)
            for key, answer in claimed.found.items():
                job.asking.land(key, answer)
        mine = [keyed for keyed in job.pending if keyed.key in claimed.mine]
        return mine, [k for k in job.pending if k.key not in claimed.mine and k.key not in claimed.found]

    async def _stop_if_batched(self, job: Job, theirs: Sequence[Keyed]) -> None:
        """Stop where a batch holds what is missing: whoever waits for it waits for hours."""
        if not theirs or job.polls % 16:
            return
        holders = await self.ledger.do(Batches(self.ledger.store).described, [keyed.key for keyed in theirs])
        if holders:
            self._stopping.refuse(BATCH_HOLDS.error(holders=holders))

    async def _enter(self, requests: int) -> Ticket:
        """Wait for the limiter, and return its ticket; raise if there is a reason to ask no more."""
        self._show_wait(self._gate.waits)
        ticket = await self._gate.enter(requests)
        if self._stopping.reason is not None:
            self._gate.leave(ticket, [])
            await self._stopping.raise_reason()
        return ticket

    async def _commit(self, calls: list[Call]) -> None:
        """Commit the answers of calls, and count them; what failed is asked again or given up."""
        stored = await self.ledger.add([row for call in calls for row in call.rows])
        await self._record([failed for call in calls for failed in call.failed])
        self.counts.add(answer for call in calls for _, answer in call.answered)
        for call in calls:
            for keyed, answer in call.answered:
                call.job.asking.land(keyed.key, exchange := stored[keyed.key])
                if self.fresh is not None and exchange.new:
                    self.fresh[exchange.exchange_id] = answer
            self._charges.pay(type(call.job.batch[0].request), call.held, call.answered)
            self.counts.failed += len(call.failed) - call.again
            self.counts.retried += call.again
            self._go_on(call.job, call.rest, call.wait)
        self._close(len(calls))
        self.counts.pace = self._gate.rate
        self.on_progress(self.counts)

    def _close(self, calls: int) -> None:
        if self._stopping.close(calls) and (reason := self._stopping.reason) is not None:
            self._fail(reason)

    def _row(self, keyed: Keyed, answer: AnyResponse, latency: float) -> NewExchange:
        return NewExchange(
            keyed.key,
            self.model_id,
            OPERATIONS[type(keyed.request)],
            keyed.encoded,
            encode_response(answer),
            answer.status,
            answer.usage.input_tokens,
            answer.usage.output_tokens,
            latency,
        )

    def _go_on(self, job: Job, pending: list[Keyed], seconds: float) -> None:
        """Ask the rest of a job after some seconds; if nothing is left, the job is finished."""
        job.pending = pending
        if pending and seconds:
            asyncio.get_running_loop().call_later(seconds, self._enqueue, iter((job,)), 1)
        elif pending:
            self._enqueue(iter((job,)), 1)
        else:
            self.ledger.release([keyed.key for keyed in job.batch])
            job.asking.left -= 1
            if not job.asking.left and not job.asking.over and self._stopping.reason is None:
                job.asking.done.set_result(None)

    def _wait(self, errors: list[ModelError], retries: int) -> float:
        """Return the seconds until requests are retried."""
        seconds = self.policy.wait(errors, retries)
        LOG.info("%d requests are retried in %.1f s (retry %d): %s", len(errors), seconds, retries + 1, errors[-1])
        self._show_wait(seconds)
        return seconds

    def _show_wait(self, seconds: float) -> None:
        if seconds >= SHOWN_SECONDS:
            self.counts.waiting_until = max(self.counts.waiting_until or 0.0, time.time() + seconds)
            self.on_progress(self.counts)

    async def _record(self, failed: Failed) -> None:
        if failed:
            LOG.debug("%d requests failed: %s", len(failed), failed[-1][1])
            await self.ledger.fail([Failure(keyed.key, e.decision.value, str(e)) for keyed, e in failed])
