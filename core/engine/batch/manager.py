"""`BatchManager`: hands batches of one model in, watches them, and collects their results.

Handing in is the one step that must not be repeated blindly. It is recorded beforehand (`tried`), and if it is not
known whether the provider took it (a time-out, a server error, a killed process), the batch is looked for first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...contracts.abilities import OPERATIONS
from ...contracts.batch import (
    BatchApi,
    BatchCancelledError,
    BatchExpiredError,
    BatchFullError,
    BatchLine,
    BatchStatus,
)
from ...contracts.canonical import decode_request, encode_response
from ...contracts.errors import (
    DataError,
    HaltedError,
    ModelError,
    PermanentError,
    TransientError,
)
from ...contracts.records import AnyRequest, AnyResponse, Request
from ...contracts.words import counted
from ...store import NewExchange
from ...store.batches import Batches, BatchRow, Item, Result, new_mark
from ..calls import blank, is_blank
from ..ending import (
    BATCH_FOREIGN,
    BATCH_INCOMPLETE,
    BATCH_LOST,
    BATCH_ORPHAN,
    BATCH_OVERDUE,
    BATCH_REFUSED,
    BATCH_TAKEN,
)
from ..ledger import Ledger
from ..retry import RetryPolicy, given_up, patiently
from .results import Results

LOG = logging.getLogger(__name__)
LOOKS = 3
"""Times that a batch of which nothing is known is looked for, before it is handed in again; as many times a batch must
be missing before it counts as lost. Lists of providers may lag behind."""
READS = 4
"""Times that results are read that are not whole."""
PART = 500
"""Items settled in a transaction."""
FULL_SECONDS = 120.0
"""Seconds before a batch is handed in again that the provider had no room for."""
DARK_SECONDS = 3600.0
"""Seconds in which a provider may be out of reach while its batches are waited for."""
OVERDUE = 2.0
"""Multiples of the provider's own limit of time after which a batch that has not ended is given up."""
_KINDS = {name: kind for kind, name in OPERATIONS.items()}
Answered = Callable[[Sequence[tuple[Item, AnyRequest, AnyResponse | ModelError]], frozenset[bytes]], None]


@dataclass
class BatchManager:
    """The batches of one model at its provider."""

    api: BatchApi
    ledger: Ledger
    book: Batches
    on_answers: Answered
    """Receives what was settled: each item with its request and outcome, and the keys of new answers."""
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    notes: list[str] = field(default_factory=list)
    """What was odd about results."""
    generations: dict[AnyRequest, int] = field(default_factory=dict)
    """How often a request that is asked anew was answered before; its seed follows from that."""
    remote: bool = True
    """Whether the model is behind an endpoint."""
    full_until: float = 0.0
    """Nothing is handed in before this time (`time.monotonic()`)."""

    def __post_init__(self) -> None:
        """Begin without a batch that was missed."""
        self._missed: Counter[int] = Counter()
        self._dark_since: float | None = None
        self._asked_again: set[bytes] = set()

    async def advance(self, row: BatchRow) -> BatchRow:
        """Do what can be done for an open batch now, and return its row afterwards.

        Raises:
            HaltedError: the provider refuses or lost the batch, or its results are not whole.
            ModelError: the provider refuses the key.
        """
        if row.state in ("drafted", "uploaded"):
            if time.monotonic() >= self.full_until and await self.ledger.do(
                self.book.take_over, row.id, self.ledger.worker
            ):
                await self._hand_in(row)
        else:
            await self._look(row)
        return await self.ledger.do(self.book.get, row.id)

    async def _hand_in(self, row: BatchRow) -> None:
        lines: Sequence[bytes] = ()
        if row.state == "drafted":
            lines = await self._lines(row)
            file = await patiently(lambda: self.api.upload(row.mark, lines), self.policy, "handing in a batch")
            row = await self._note(row, state="uploaded", file=file)
        retries = 0
        while True:
            if row.tried is not None and (status := await self._find(row)) is not None:
                await self._adopt(row, status)
                return
            if not row.file and not lines:
                lines = await self._lines(row)
            row = await self._note(row, tried=time.time())
            try:
                kind = _KINDS[row.operation]
                await self._adopt(row, await self.api.submit(row.mark, row.file, lines, kind))
                return
            except BatchFullError as error:
                self.full_until = time.monotonic() + FULL_SECONDS
                LOG.info("the provider has no room for batch %d: %s", row.id, error)
                await self._note(row, tried=None)
                return
            except TransientError as error:
                failure: ModelError = error
                if error.code == "endpoint.unreachable":
                    row = await self._note(row, tried=None)  # nothing was sent
            except ModelError as error:
                # The provider has not taken it, and says so.
                failure, row = error, await self._note(row, tried=None)
            if not self.policy.again(failure, retries):
                if isinstance(failure, PermanentError):
                    await self._refuse(row, str(failure))
                raise given_up(failure, "handing in a batch") from None
            await asyncio.sleep(self.policy.wait([failure], retries))
            retries += 1

    async def _lines(self, row: BatchRow) -> list[bytes]:
        items = await self.ledger.do(self.book.items, row.id)
        requests = {item.key: decode_request(item.request) for item in items}
        await self.note_generations({item.key: requests[item.key] for item in items if item.anew is not None})
        lines = []
        for key, request in requests.items():
            try:
                lines.append(await self.api.encode(key.hex(), request))
            except ModelError as error:  # it could be sent when it was drafted: an image has gone since
                await self.ledger.do(self.book.settle, row.id, [Result(key, "errored", None, str(error))])
        if not lines:
            await self._refuse(row, "none of its requests can be sent.")
        return lines

    async def note_generations(self, anew: Mapping[bytes, AnyRequest]) -> None:
        """Look up how often requests were answered before that are asked anew."""
        if anew:
            before = await self.ledger.generations(list(anew))
            self.generations |= {anew[key]: count for key, count in before.items()}

    async def _find(self, row: BatchRow) -> BatchStatus | None:
        """Look for a batch that the provider may have taken."""
        since = row.created - 3600  # its clock may be another
        for look in range(LOOKS):
            listed = await patiently(lambda: self.api.find(row.mark, since), self.policy, "looking for a batch")
            if marked := [status for status in listed if status.mark == row.mark]:
                return min(marked, key=lambda status: status.created or 0.0)
            provider_ids = {other.provider_id for other in await self.ledger.do(self.book.all)}
            unmarked = [s for s in listed if not s.mark and s.items == row.items and s.id not in provider_ids]
            candidates = [s for s in unmarked if s.created is None or row.tried is None or s.created >= row.tried - 60]
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                raise BATCH_ORPHAN.error(count=len(candidates), batch=row.id, names=", ".join(s.id for s in candidates))
            if look < LOOKS - 1:
                await asyncio.sleep(self.policy.wait([], 2 * look + 2))
        return None

    async def _adopt(self, row: BatchRow, status: BatchStatus) -> None:
        """Record the provider's name of a batch."""
        values: dict[str, Any] = {"state": "submitted", "provider_id": status.id, "submitted": time.time()}
        if row.state in ("drafted", "uploaded"):
            await self._note(row, **values)
        else:
            await self._follow(row, **values)
        LOG.info("batch %d is %s at the provider: %s", row.id, status.id, counted(row.items, "request"))

    async def _look(self, row: BatchRow) -> None:
        try:
            status = await patiently(lambda: self.api.status(row.provider_id), self.policy, "asking for a batch")
            self._dark_since = None
        except HaltedError:
            self._dark_since = self._dark_since or time.monotonic()
            if time.monotonic() - self._dark_since >= DARK_SECONDS:
                raise
            return  # the batch goes on without us
        if status.state != "missing":
            self._missed.pop(row.id, None)
        match status.state:
            case "running":
                await self._wait_on(row)
            case "missing":
                await self._miss(row)
            case "full":
                self.full_until = time.monotonic() + FULL_SECONDS
                LOG.info("the provider has no room for batch %d: %s", row.id, status.problem)
                # Under another mark: the one that it refused would be found, too.
                again: dict[str, Any] = {"mark": new_mark(), "tried": None, "provider_id": "", "submitted": None}
                values = {"state": "uploaded", "worker_id": self.ledger.worker}
                await self._follow(row, **values, **again)
            case "invalid":
                await self._refuse(row, status.problem)
            case outcome:
                await self._follow(row, state="ended", outcome=outcome)
                await self._collect(row, status)

    async def _wait_on(self, row: BatchRow) -> None:
        if row.state == "submitted":
            await self._follow(row, state="running")
        if row.submitted is not None and time.time() - row.submitted > OVERDUE * 3600 * self.api.limits.hours:
            hours = OVERDUE * self.api.limits.hours
            raise BATCH_OVERDUE.error(name=row.provider_id, hours=hours, batch=row.id)

    async def _miss(self, row: BatchRow) -> None:
        self._missed[row.id] += 1
        if self._missed[row.id] < LOOKS:
            return
        since = row.created - 3600
        listed = await patiently(lambda: self.api.find(row.mark, since), self.policy, "looking for a batch")
        marked = [status for status in listed if status.mark == row.mark and status.id != row.provider_id]
        if marked:
            await self._adopt(row, marked[0])
            return
        freed = await self.ledger.do(self.book.close, row.id, "lost", "lost", "the provider does not know it")
        raise BATCH_LOST.error(name=row.provider_id, requests=counted(len(freed), "request"))

    async def _refuse(self, row: BatchRow, problem: str) -> None:
        """End a batch that the provider refused as a whole, which it does not charge."""
        await self._follow(row, outcome="invalid")
        await self.ledger.do(self.book.close, row.id, "collected", "errored", problem)
        requests = counted(row.items, "request")
        raise BATCH_REFUSED.error(requests=requests, problem=problem or "it gives no reason.")

    async def _collect(self, row: BatchRow, status: BatchStatus) -> None:
        for read in range(READS):
            lines = await patiently(lambda: self.api.results(status), self.policy, "reading the results of a batch")
            results = Results.of(lines)
            # Of a batch that was ended early, providers count what has no line.
            expected = status.answered + (status.failed if status.state == "ended" else 0)
            missing = expected - len(results.lines)
            if missing <= 0 or read == READS - 1:
                break
            await asyncio.sleep(self.policy.wait([], read))
        items = await self.ledger.do(self.book.items, row.id)
        mine = [item for item in items if item.key.hex() in results.lines]
        ever = await self.ledger.do(self.book.keys, row.id)
        foreign = results.lines.keys() - {key.hex() for key in ever}
        if foreign and len(foreign) == len(results.lines):
            raise BATCH_FOREIGN.error(name=row.provider_id, batch=row.id)
        seconds = status.ended - status.created if status.ended and status.created else 0.0
        for start in range(0, len(mine), PART):
            await self._settle(row, mine[start : start + PART], results, max(0.0, seconds))
        if missing > 0:
            lines_missing = counted(missing, "line")
            raise BATCH_INCOMPLETE.error(name=row.provider_id, missing=lines_missing, lines=expected, batch=row.id)
        left = {"expired": "expired", "cancelled": "cancelled"}.get(status.state, "errored")
        problem = "" if left != "errored" else "the batch ended without a result for it"
        gone = await self.ledger.do(self.book.close, row.id, "collected", left, problem)
        failures = {"expired": BatchExpiredError, "cancelled": BatchCancelledError}
        error: ModelError = failures.get(left, TransientError)(problem or left, code=_code(left))
        self.on_answers([(i, decode_request(i.request), error) for i in items if i.key in gone], frozenset())
        self._remark(row, results, len(foreign), len(gone) if left == "errored" else 0)

    def _remark(self, row: BatchRow, results: Results, foreign: int, absent: int) -> None:
        for count, what in (
            (results.doubled, "came twice"),
            (results.contradictory, "contradict another of the same request; none of them counts"),
            (foreign, "belong to no request of it"),
            (results.unreadable, "cannot be read"),
            (absent, "are missing"),
        ):
            if count:
                self.notes.append(f"batch {row.provider_id}: {counted(count, 'result')} that {what}")
                LOG.warning("%s", self.notes[-1])

    async def _settle(self, row: BatchRow, items: Sequence[Item], results: Results, seconds: float) -> None:
        read = [
            (item, request := decode_request(item.request), self._read(item.key, results, request)) for item in items
        ]
        settling = []
        for index, (item, request, outcome) in enumerate(read):
            try:
                settling.append(_result(row, item, request, outcome, seconds))
            except DataError as error:
                read[index] = item, request, PermanentError(str(error), code="model.response")
                settling.append(Result(item.key, "errored", None, str(error)))
        settled = await self.ledger.do(self.book.settle, row.id, settling)
        self.on_answers([reading for reading in read if reading[0].key in settled.done], settled.new)

    def _read(self, key: bytes, results: Results, request: AnyRequest) -> AnyResponse | ModelError:
        outcome = results.read(key.hex(), lambda line: self._read_line(line, request))
        return outcome if isinstance(outcome, ModelError) else self._doubt_blank(key, outcome)

    def _read_line(self, line: BatchLine, request: AnyRequest) -> AnyResponse | ModelError:
        try:
            return self.api.read(line, request)
        except ModelError as error:
            return error
        except Exception as error:
            LOG.debug("the adapter raised", exc_info=error)
            message = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return PermanentError(f"the adapter raised {message}", code="model.exception")

    def _doubt_blank(self, key: bytes, answer: AnyResponse | ModelError) -> AnyResponse | ModelError:
        """Take a first answer without text and without an output token for a failure, as of a single call."""
        if not self.remote or not is_blank(answer) or key in self._asked_again:
            return answer
        self._asked_again.add(key)
        return blank()

    async def _note(self, row: BatchRow, **values: Any) -> BatchRow:
        """Record a step of handing in; a process that was taken for dead, and replaced, goes no further."""
        if not await self.ledger.do(self.book.advance, row.id, self.ledger.worker, **values):
            raise BATCH_TAKEN.error(batch=row.id)
        return row._replace(**values)

    async def _follow(self, row: BatchRow, **values: Any) -> None:
        """Record what the provider says of a batch, unless another process has gone further with it."""
        await self.ledger.do(self.book.advance, row.id, None, row.provider_id, **values)


def _result(row: BatchRow, item: Item, request: Request, outcome: AnyResponse | ModelError, seconds: float) -> Result:
    if isinstance(outcome, ModelError):
        return Result(item.key, _failed(outcome), None, str(outcome))
    read, written = outcome.usage.input_tokens, outcome.usage.output_tokens
    status, response = outcome.status, encode_response(outcome)
    answer = NewExchange(item.key, row.model_id, row.operation, item.request, response, status, read, written, seconds)
    return Result(item.key, "ok" if status == "ok" else "refused", answer)


def _failed(error: ModelError) -> str:
    if isinstance(error, BatchExpiredError):
        return "expired"
    return "cancelled" if isinstance(error, BatchCancelledError) else "errored"


def _code(left: str) -> str:
    return "batch.no-result" if left == "errored" else f"batch.{left}"
