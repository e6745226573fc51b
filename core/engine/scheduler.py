"""`Scheduler`: from requests to committed answers, for one model.

Each key is asked once, however many trials need it (single-flight). Stored answers are not requested again. Requests
are batched by length; a call in flight holds a slot, a waiting call does not. An answer counts only when committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..catalogue.prices import Prices
from ..contracts.adapter import OPERATIONS, ModelAdapter
from ..contracts.canonical import encode, encode_response, request_key
from ..contracts.errors import (
    AuthenticationError,
    DataError,
    HaltedError,
    ModelError,
    PermanentError,
    PrejudgeError,
    RetryDecision,
    TransientError,
)
from ..contracts.records import AnyRequest, AnyResponse, Drawing, Generation, Response
from ..store import Failure, Found, NewExchange
from .budget import Budget, Spending
from .ledger import Ledger
from .limiter import Limiter, Ticket
from .retry import RetryPolicy
from .tokens import RULE_OF_THUMB, Tokens, guess_cost
from .wall import Wall

LOG = logging.getLogger(__name__)
SILENT = 10
"""Number of failed requests, without a single answer, after which the model is considered unavailable."""
POLL_SECONDS = 0.02
"""Seconds of the first wait for a key that another process is asking; later waits are longer."""
SHOWN_SECONDS = 10.0
"""Shortest wait that is shown."""
MOST_TOKENS = 10_000_000
"""Token counts above this are not believed."""
Mode = Literal["use", "replay", "refresh"]


@dataclass
class Counts:
    """Counts of the requests of a stage."""

    trials: int = 0
    cached: int = 0
    """Keys with an answer in the store."""
    asked: int = 0
    """Keys answered by the model, committed."""
    failed: int = 0
    refused: int = 0
    """Refused or filtered answers, from store or model."""
    retried: int = 0
    missed: int = 0
    """Keys of a `replay` without an answer."""
    input_tokens: int | None = 0
    """As counted by the model; None if it does not count them. The same holds for the next fields."""
    output_tokens: int | None = 0
    cached_tokens: int = 0
    """Of the input tokens, those that the endpoint says it had cached."""
    cost: float | None = None
    """US dollars; None if no price is known."""
    pace: float | None = None
    """Requests per second allowed by the endpoint's limiter; None if no limit was met."""
    estimated: int = 0
    """Answers without a credible token count, charged as estimated; counted where there is a price or a budget."""
    waiting_until: float | None = None
    """Unix time of the end of the last long wait; None if there was none."""


class Keyed(NamedTuple):
    """A request with its canonical encoding and key."""

    key: bytes
    request: AnyRequest
    encoded: bytes


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
    wall: Wall | None = None
    """Stops the stage if all its requests meet the same fault; None: it never stops for that."""
    fresh: dict[int, AnyResponse] | None = None
    """New answers by exchange; the reader removes them. None: there is no reader."""

    def __post_init__(self) -> None:
        """Make the limiter and the table of requests in flight."""
        self._gate = self.limiter or Limiter(self.adapter.limits, remote=self.adapter.endpoint is not None)
        if self.prices.known and self.counts.cost is None:
            self.counts.cost = 0.0
        # A kill loses answers that are not yet committed, so their number is limited to the calls in flight. A model
        # with one slot has two places, so that it works while its last answers are committed.
        self._places = asyncio.Semaphore(max(2, self.adapter.limits.concurrency))
        self._flights: dict[bytes, asyncio.Future[Found | None]] = {}
        self._refused: AuthenticationError | HaltedError | None = None
        self._silent = self._flying = 0
        self._landed = asyncio.Event()
        self._landed.set()
        self._doubted: set[bytes] = set()

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
        wanted = {keyed.key: keyed for keyed in requests}
        if self.mode == "refresh":
            anew = dict.fromkeys(wanted, "")
        found = await self.ledger.find(list(wanted), None if anew is None else self.since)
        self._count_cached(found)
        missing = {key: keyed for key, keyed in wanted.items() if key not in found}
        if self.mode == "replay":
            self.counts.missed += len(missing)
            return found
        shared = {key: self._flights[key] for key in missing if key in self._flights}
        own = [keyed for key, keyed in missing.items() if key not in shared]
        if anew is not None:
            self.ledger.renew({keyed.key: anew[keyed.key] for keyed in own})
        await self._ask(own, found)
        for key, flight in shared.items():
            if (answer := await asyncio.shield(flight)) is not None:
                found[key] = answer
        return found

    def _count_cached(self, found: Mapping[bytes, Found]) -> None:
        self.counts.cached += len(found)
        self.counts.refused += sum(answer.status != "ok" for answer in found.values())
        self.on_progress(self.counts)

    async def _ask(self, missing: Sequence[Keyed], found: dict[bytes, Found]) -> None:
        loop = asyncio.get_running_loop()
        self._flights.update((keyed.key, loop.create_future()) for keyed in missing)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._send(batch)) for batch in self._batches(missing)]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            # Callers that wait for one of these keys learn now that it failed; otherwise they would wait forever.
            for keyed in missing:
                if not (flight := self._flights.pop(keyed.key)).done():
                    flight.set_result(None)
        for task in tasks:
            found.update(task.result())

    def _batches(self, missing: Sequence[Keyed]) -> list[list[Keyed]]:
        """Group requests of the same kind and similar length, because the longest request determines a batch's cost."""
        size = self.adapter.limits.batch_items
        by_kind: dict[type, list[Keyed]] = {}
        for keyed in sorted(missing, key=lambda keyed: len(keyed.encoded)):
            by_kind.setdefault(type(keyed.request), []).append(keyed)
        return [kind[i : i + size] for kind in by_kind.values() for i in range(0, len(kind), size)]

    async def _send(self, batch: list[Keyed]) -> dict[bytes, Found]:
        """Ask until every request of a batch is answered or has failed finally."""
        found: dict[bytes, Found] = {}
        retries, polls, pending = 0, 0, batch
        try:
            while pending:
                async with self._places:
                    mine, theirs = await self._claim(pending, found)
                    failed, later = await self._ask_once(mine, found) if mine else ([], [])
                await self._stop_if_refused()
                again = [(keyed, error) for keyed, error in failed if self.policy.again(error, retries)]
                self.counts.failed += len(failed) - len(again)
                self.counts.retried += len(again)
                self.on_progress(self.counts)
                self._watch(failed, again)
                await self._stop_if_refused()
                if again:
                    await asyncio.sleep(self._wait([error for _, error in again], retries))
                elif not mine and theirs:
                    await asyncio.sleep(POLL_SECONDS * min(2**polls, 16))
                pending = [keyed for keyed, _ in again] + later + theirs
                # An outage is not the fault of the request that met it; the limiter ends the run if it lasts.
                counted = mine and (self.wall is None or not self._gate.down)
                retries, polls = retries + bool(counted), 0 if mine else polls + 1
        finally:
            self.ledger.release([keyed.key for keyed in batch])
        return found

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

    def _watch(self, failed: Sequence[tuple[Keyed, ModelError]], again: Sequence[tuple[Keyed, ModelError]]) -> None:
        """Look for a reason to stop the run: one that all its requests share."""
        kept = {keyed.key for keyed, _ in again}
        final = [(keyed, error) for keyed, error in failed if keyed.key not in kept]
        passing = [error for _, error in final if error.decision is RetryDecision.TRANSIENT]
        self._silent += len(passing)
        if passing and not self.counts.asked and self._silent >= SILENT:
            self._refused = HaltedError(
                f"the model has answered none of {self._silent} requests, each asked several times. The last failure: "
                f"{passing[-1]} Fix the cause, then resume the run.",
                code="model.silent",
            )
        if self.wall is not None:
            for keyed, error in final:
                if error.decision is RetryDecision.PERMANENT:
                    self.wall.failed(keyed.request, error)

    @property
    def _reason(self) -> AuthenticationError | HaltedError | None:
        """Return why nothing more is asked, if there is a reason."""
        halt = self._gate.halt
        if self.wall is None:
            return self._refused or (halt if halt is not None and halt.code == "endpoint.wait" else None)
        return self._refused or self.wall.halt or halt

    async def _stop_if_refused(self) -> None:
        """Raise the reason to stop, if there is one, once no call is in flight: no answer is lost."""
        if self._reason is not None:
            await self._landed.wait()
            raise self._reason

    async def _claim(self, pending: list[Keyed], found: dict[bytes, Found]) -> tuple[list[Keyed], list[Keyed]]:
        """Return keys that this process asks, and keys that another process is asking; `found` receives answers."""
        claimed = await self.ledger.claim([keyed.key for keyed in pending])
        if claimed.found:
            found |= claimed.found
            self._count_cached(claimed.found)
            self._land(claimed.found)
        mine = [keyed for keyed in pending if keyed.key in claimed.mine]
        return mine, [k for k in pending if k.key not in claimed.mine and k.key not in claimed.found]

    async def _ask_once(
        self, pending: list[Keyed], found: dict[bytes, Found]
    ) -> tuple[list[tuple[Keyed, ModelError]], list[Keyed]]:
        """Ask as many requests as the budget allows; return the failed and the remaining ones."""
        held = await self._reserve(pending)
        asked, later = pending[: held.requests], pending[held.requests :]
        ticket = await self._enter(len(asked))
        self._flying += 1
        self._landed.clear()
        try:
            answers, latency = await self._pass(asked, ticket)
            found |= await self._commit(asked, answers, latency)
            self._pay(asked, answers, held)
            failed = [(k, a) for k, a in zip(asked, answers, strict=True) if isinstance(a, ModelError)]
            await self._record(failed)
        finally:
            self._flying -= 1
            if not self._flying:
                self._landed.set()
        return failed, later

    async def _reserve(self, pending: list[Keyed]) -> Spending:
        """Wait until the budget allows requests, and return their number."""
        if self.budget is None:
            return Spending(len(pending))
        return await self.budget.reserve(self._kind(pending), len(pending), lambda: self._guess(pending))

    def _kind(self, asked: Sequence[Keyed]) -> str:
        return f"{self.model_id} {OPERATIONS[type(asked[0].request)]}"

    def _guess(self, pending: Sequence[Keyed]) -> Spending:
        tokens = [(keyed.request, RULE_OF_THUMB.guess(keyed.request)) for keyed in pending]
        cost = sum(guess_cost(request, guess, self.prices) for request, guess in tokens)
        return Spending(len(pending), sum(guess.total for _, guess in tokens), cost)

    def _pay(self, asked: Sequence[Keyed], answers: Sequence[AnyResponse | ModelError], held: Spending) -> None:
        """Count the tokens and cost of answers."""
        if self.budget is None and not self.prices.known:
            return
        given = [(k.request, a) for k, a in zip(asked, answers, strict=True) if not isinstance(a, ModelError)]
        charged = [self._charge(request, answer) for request, answer in given]
        tokens = Tokens(*(sum(column) for column in zip(*charged, strict=True)))
        images = sum(isinstance(answer, Drawing) and answer.image is not None for _, answer in given)
        cost = self.prices.cost(tokens.input, tokens.output, len(given), images, tokens.cached)
        if cost is not None:
            self.counts.cost = (self.counts.cost or 0.0) + cost
        if self.budget is not None:
            spent = Spending(len(asked), tokens.total, cost or 0.0)
            self.budget.settle(self._kind(asked), held, spent, len(given))

    def _charge(self, request: AnyRequest, answer: AnyResponse) -> Tokens:
        """Return the tokens of an answer; estimated if the model gives no count, or one that cannot be."""
        read, written = answer.usage.input_tokens, answer.usage.output_tokens
        wrote = isinstance(answer, Generation) and answer.text + answer.reasoning != ""
        credible = wrote <= written <= MOST_TOKENS
        if credible and 0 < read <= MOST_TOKENS:
            return Tokens(read, written, _cached(answer))
        guess = RULE_OF_THUMB.guess(request)
        if credible and not guess.input:
            return Tokens(read, written)
        self.counts.estimated += 1
        return guess

    async def _enter(self, requests: int) -> Ticket:
        """Wait for the limiter, and return its ticket; raise if there is a reason to ask no more."""
        self._show_wait(self._gate.waits)
        ticket = await self._gate.enter(requests)
        if self._reason is not None:
            self._gate.leave(ticket, [])
            await self._stop_if_refused()
        return ticket

    async def _pass(self, asked: Sequence[Keyed], ticket: Ticket) -> tuple[list[AnyResponse | ModelError], float]:
        """Ask once; return the answers and the seconds they took."""
        answers: list[AnyResponse | ModelError] = []
        try:
            began = time.monotonic()
            answers = await self._call([keyed.request for keyed in asked])
            latency = time.monotonic() - began
        finally:
            self._gate.leave(ticket, answers)
            self.counts.pace = self._gate.rate
        self._refused = self._refused or _refusal(answers)
        return [self._doubt(keyed, answer) for keyed, answer in zip(asked, answers, strict=True)], latency

    def _doubt(self, keyed: Keyed, answer: AnyResponse | ModelError) -> AnyResponse | ModelError:
        """Take an endpoint's first answer without text and without an output token for a failure of the endpoint."""
        if self.adapter.endpoint is None or not isinstance(answer, Generation) or answer.status != "ok" or answer.text:
            return answer
        if answer.usage.output_tokens or not answer.usage.input_tokens or keyed.key in self._doubted:
            return answer
        self._doubted.add(keyed.key)
        return TransientError("the endpoint sent an empty answer of 0 tokens.", code="endpoint.empty")

    async def _call(self, requests: list[AnyRequest]) -> list[AnyResponse | ModelError]:
        try:
            answers = list(await self.adapter.answer(requests))
        except ModelError as error:
            return [error] * len(requests)
        except PrejudgeError:
            raise
        except Exception as error:
            # A defect of an adapter, or of an answer that it cannot read, is a failure of its request.
            if len(requests) > 1:
                return [(await self._call([request]))[0] for request in requests]
            LOG.debug("the adapter raised", exc_info=error)
            return [self._defect(f"raised {type(error).__name__}: {error}")]
        if len(answers) != len(requests):
            return [self._defect(f"gave {len(answers)} answers to {len(requests)} requests")] * len(requests)
        return [
            answer if isinstance(answer, Response | ModelError) else self._defect(f"gave {type(answer).__name__}")
            for answer in answers
        ]

    def _defect(self, what: str) -> PermanentError:
        said = " ".join(what.split())[:300]
        return PermanentError(f"the adapter {self.adapter.identity.adapter!r} {said}.", code="model.exception")

    async def _commit(
        self, batch: Sequence[Keyed], answers: list[AnyResponse | ModelError], latency: float
    ) -> dict[bytes, Found]:
        rows = []
        for place, (keyed, answer) in enumerate(zip(batch, answers, strict=True)):
            if isinstance(answer, ModelError):
                continue
            try:
                rows.append(self._row(keyed, answer, latency))
            except DataError as error:
                answers[place] = PermanentError(str(error), code="model.response")
        found = await self.ledger.add(rows)
        if self.wall is not None:
            for keyed, answer in zip(batch, answers, strict=True):
                if not isinstance(answer, ModelError):
                    self.wall.answered(keyed.key, keyed.request, answer)
        if self.fresh is not None:
            given = ((found[k.key], a) for k, a in zip(batch, answers, strict=True) if not isinstance(a, ModelError))
            self.fresh |= {stored.exchange_id: answer for stored, answer in given if stored.new}
        self.counts.cached_tokens += sum(_cached(answer) for answer in answers if not isinstance(answer, ModelError))
        self._count_asked(rows, found)
        return found

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

    def _count_asked(self, rows: list[NewExchange], found: dict[bytes, Found]) -> None:
        self.counts.asked += len(rows)
        self.counts.refused += sum(row.status != "ok" for row in rows)
        self._count_tokens(rows)
        self._land(found)

    def _count_tokens(self, rows: list[NewExchange]) -> None:
        counts = self.counts
        read = (counts.input_tokens or 0) + sum(row.input_tokens for row in rows)
        written = (counts.output_tokens or 0) + sum(row.output_tokens for row in rows)
        # Every request has input tokens, so answers without any are from a model that does not count tokens.
        counts.input_tokens = read if read or not counts.asked else None
        counts.output_tokens = written if read or written or not counts.asked else None

    def _land(self, found: Mapping[bytes, Found]) -> None:
        for key, answer in found.items():
            if (flight := self._flights.get(key)) is not None and not flight.done():
                flight.set_result(answer)

    async def _record(self, failed: Sequence[tuple[Keyed, ModelError]]) -> None:
        if failed:
            LOG.debug("%d requests failed: %s", len(failed), failed[-1][1])
            await self.ledger.fail([Failure(keyed.key, e.decision.value, str(e)) for keyed, e in failed])


def _refusal(answers: Sequence[AnyResponse | ModelError]) -> AuthenticationError | None:
    return next((answer for answer in answers if isinstance(answer, AuthenticationError)), None)


def _cached(answer: AnyResponse) -> int:
    """Return how many of an answer's input tokens the endpoint had cached; no more than there are."""
    return max(0, min(answer.usage.cached_tokens, answer.usage.input_tokens))
