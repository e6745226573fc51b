"""`Supervisor`: the workers of a run. Calls wait here, go to the worker that holds what they share, and outlive none.

A worker that was killed, halted, hung or out of memory is started again. What it was asked fails with a
`TransientError`, so that the scheduler asks it again, of whichever worker is free: no other answer is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Coroutine, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from ..contracts.adapter import Limits, Services
from ..contracts.errors import DataError, ModelError, PermanentError, PrejudgeError, TransientError, UsageError
from ..contracts.records import AnyResponse
from .engine import Engine
from .member import Call, Member
from .places import Place
from .wire import (
    MEMORY,
    Answered,
    Bind,
    Broke,
    Described,
    End,
    Given,
    Hello,
    Model,
    Need,
    Open,
    Opened,
    Raised,
    ToDriver,
    hear,
    pack,
    tell,
    to_driver,
    unpack_answer,
    versions,
)

LOG = logging.getLogger(__name__)
BEAT_SECONDS, WATCH_SECONDS, END_SECONDS = 2.0, 1.0, 5.0
"""Seconds between two signs of life, between two looks for them, and until a worker that is to end is killed."""
FIRST_WAIT, MOST_WAIT = 0.5, 30.0
"""Seconds before the second start in a row of one worker, and at most; each wait is twice as long as the one before."""
NONE = "none"
LOSSES = 2
"""Workers that a request may be lost with before it is asked alone: it may be what ends them."""


class Supervisor:
    """The workers of one run. They are started by the first call: a run that finds all answers needs none."""

    def __init__(
        self,
        engine: Engine,
        places: Sequence[Place],
        models: Mapping[str, Model],
        described: Mapping[str, Described],
    ) -> None:
        """`described` is what this process says of the models; the workers must say the same, except of limits."""
        self._engine, self._models = engine, dict(models)
        self.members = [Member(place) for place in places]
        self.described = dict(described)
        self.limits: dict[str, Limits] = {name: one.limits for name, one in described.items()}
        """The present limits of one worker, by model."""
        self._services: dict[str, Services] = {}
        self._waiting: deque[Call] = deque()
        self._losses: Counter[bytes] = Counter()
        self._numbers = count(1)
        self._first: dict[Member, asyncio.Future[None]] = {}
        self._lives: dict[Member, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        """Looks at the workers, and calls of services."""
        self._closed = self._soon = False
        self._opening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start all workers at once, unless that was done, and wait until their models are made.

        Raises:
            PrejudgeError: a worker cannot be started, or a model cannot be made there.
        """
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        self._first = {member: loop.create_future() for member in self.members}
        self._lives = {member: asyncio.create_task(self._live(member)) for member in self.members}
        self._begin(self._watch())
        try:
            await asyncio.gather(*self._first.values())
        except BaseException:
            await self._end_all()
            raise

    def bind(self, model: str, services: Services) -> None:
        """Hand the services of a run to the workers: they call those of the driver, except for `generation`."""
        self._services[model] = services
        for member in self.members:
            if member.ready:
                self._hand_over(member, model)

    async def ask(
        self, model: str, requests: list[bytes], again: Mapping[int, int], shared: Sequence[str]
    ) -> list[AnyResponse | ModelError]:
        """Return the answers to requests of one kind, in order; `shared` has the affinity of each.

        A call is cut into parts while workers are idle, so that a small study uses all of them.

        Raises:
            PrejudgeError: the model cannot do the operation, or the workers cannot be started; what else its adapter
                raised has the name that it had.
        """
        if self._opening is None or not self._opening.done() or self._opening.exception() is not None:
            await self.open()
        call = self._call(model, requests, again, shared)
        if len(requests) > 1 and any(self._losses[one] >= LOSSES for one in requests):
            self._cut(call, len(requests))
        else:
            self._waiting.append(call)
        self._dispatch()
        return await call.done

    def _call(self, model: str, requests: list[bytes], again: Mapping[int, int], shared: Sequence[str]) -> Call:
        done: asyncio.Future[list[AnyResponse | ModelError]] = asyncio.get_running_loop().create_future()
        return Call(next(self._numbers), model, requests, again, shared, done)

    def _cut(self, call: Call, number: int) -> None:
        """Put so many parts of a call in its place; it is done when all of them are."""
        cuts = [len(call.requests) * part // number for part in range(number + 1)]
        parts = []
        for start, end in zip(cuts, cuts[1:], strict=False):
            again = {place - start: times for place, times in call.again.items() if start <= place < end}
            parts.append(self._call(call.model, call.requests[start:end], again, call.affinities[start:end]))
            parts[-1].whole = call
        for part in parts:
            part.done.add_done_callback(lambda _: join(call, parts))
        self._waiting.extend(parts)

    async def aclose(self) -> None:
        """End all workers: idle ones in order, busy ones at once."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._end_all()

    async def _end_all(self) -> None:
        if self._closed:
            return
        self._closed = True
        for member, life in self._lives.items():
            if member.link is None:
                life.cancel()
            elif member.ready and not member.calls:
                member.link.send(pack(End()))
            else:
                member.end("the run is over")
        for task in self._others:
            task.cancel()
        if self._lives:
            await asyncio.wait(self._lives.values(), timeout=END_SECONDS)
        for member in self.members:
            member.end("did not end")
        await asyncio.gather(*self._lives.values(), *self._others, return_exceptions=True)
        await self._engine.aclose()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    def _room(self, member: Member, model: str) -> int:
        return self.limits[model].concurrency - member.busy[model] if member.ready else 0

    def _dispatch(self) -> None:
        """Send waiting calls soon: those that come together are looked at together."""
        if not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self._send_waiting)

    def _send_waiting(self) -> None:
        self._soon = False
        self._waiting = deque(call for call in self._waiting if not call.over)
        self._spread()
        while (pair := self._choose()) is not None:
            member, call = pair
            self._waiting.remove(call)
            member.send(call, asyncio.get_running_loop().time())

    def _spread(self) -> None:
        """Cut calls in two while more workers are idle than calls wait."""
        while self._waiting:
            largest = max(self._waiting, key=lambda call: len(call.requests))
            idle = sum(self._room(member, largest.model) for member in self.members)
            if len(largest.requests) == 1 or idle <= len(self._waiting):
                return
            self._waiting.remove(largest)
            self._cut(largest, 2)

    def _choose(self) -> tuple[Member, Call] | None:
        """Return the next call and its worker: one that holds what it shares, else what nobody holds, else the oldest.

        Of equal ones the first call, and the least busy worker.
        """
        free = sorted((one for one in self.members if one.ready), key=lambda one: len(one.calls))
        best: tuple[Member, Call] | None = None
        least = 3
        for call in self._waiting:
            holders = [one for one in self.members if one.ready and not one.held.keys().isdisjoint(call.shared)]
            for member in free:
                rank = 0 if member in holders else 2 if holders else 0 if not call.shared else 1
                if rank < least and self._room(member, call.model) > 0:
                    best, least = (member, call), rank
            if least == 0:
                break
        return best

    async def _live(self, member: Member) -> None:
        """Keep a worker running, over all its processes."""
        while not self._closed:
            if member.starts:
                await asyncio.sleep(min(MOST_WAIT, FIRST_WAIT * 2.0 ** (member.starts - 1)))
            member.starts += 1
            try:
                how = await self._serve(member)
            except PrejudgeError as error:
                self._fail(member, error)
            except Exception as error:  # what cannot be read; nobody may wait for this worker for ever
                LOG.debug("a worker sent what cannot be read", exc_info=error)
                self._lost(member, f"worker {member.place.number + 1} sent what cannot be read ({error})")
            else:
                self._lost(member, how)

    async def _serve(self, member: Member) -> str:
        """Start a process and listen to it until it ends; return its name and how it ended."""
        now = asyncio.get_running_loop().time
        link = await self._engine.start(member.place)
        member.begin(link, now())
        try:
            if self._closed:
                link.kill()
            link.send(pack(Open(self._models, BEAT_SECONDS)))
            while (frame := await link.receive()) is not None:
                member.heard = now()
                if (error := self._take(member, to_driver.decode(frame))) is not None:
                    raise error
        finally:
            link.kill()
            how = await link.gone()
        return f"{link.name} {member.why or how}"

    def _take(self, member: Member, message: ToDriver) -> PrejudgeError | None:
        """Take what a worker says; return why it is of no use, if so."""
        if isinstance(message, Answered):
            self._answered(member, message)
        elif isinstance(message, Need):
            self._begin(self._give(member, message))
        elif isinstance(message, Hello):
            return self._greeted(member, message.versions)
        elif isinstance(message, Opened):
            return self._opened(member, message.models)
        elif isinstance(message, (Raised, Broke)) and not message.call:
            member.end("could not make its models")
            return hear(message.error) if isinstance(message, Raised) else _unmade(message)
        elif isinstance(message, (Raised, Broke)):
            self._raised(member, message)
        return None

    def _greeted(self, member: Member, theirs: Mapping[str, str]) -> PrejudgeError | None:
        ours = versions()
        differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        if not differing or member.link is None:
            return None
        member.end("has other versions")
        words = (f"{name} {theirs.get(name, NONE)} there and {ours.get(name, NONE)} here" for name in differing)
        return UsageError(
            f"{member.link.name} has other versions: {', '.join(words)}. Install the same ones on all machines.",
            code="workers.versions",
            differing=tuple(differing),
        )

    def _opened(self, member: Member, described: dict[str, Described]) -> PrejudgeError | None:
        differing = [name for name, one in described.items() if not _alike(one, self.described[name])]
        if differing:
            member.end("has other models")
            return UsageError(
                f"two processes of this run disagree on what {', '.join(differing)} is: their machines, devices or "
                "versions differ. Use like ones.",
                code="workers.differ",
            )
        self.limits |= {name: one.limits for name, one in described.items()}
        member.ready = member.opened = True
        for model in self._services:
            self._hand_over(member, model)
        if (first := self._first.get(member)) is not None and not first.done():
            first.set_result(None)
            member.starts = 0
        self._dispatch()
        return None

    def _hand_over(self, member: Member, model: str) -> None:
        services = self._services[model]
        names = [name for name in ("blobs", "keep", "generation", "cells") if getattr(services, name) is not None]
        if member.link is not None:
            member.link.send(pack(Bind(model, names)))

    def _answered(self, member: Member, message: Answered) -> None:
        # Read first: a call that had landed would not be among those of a worker that is lost for an unreadable answer.
        answers = [unpack_answer(packed) for packed in message.answers]
        if (call := member.land(message.call, asyncio.get_running_loop().time())) is None:
            return
        self.limits[call.model] = message.limits
        if self._losses:
            for request in call.requests:
                self._losses.pop(request, None)
        if not call.done.done():
            call.done.set_result(answers)
        self._dispatch()

    def _raised(self, member: Member, message: Raised | Broke) -> None:
        if (call := member.land(message.call, asyncio.get_running_loop().time())) is None:
            return
        error: Exception
        if isinstance(message, Raised):
            error = hear(message.error)
        elif message.name in MEMORY or "out of memory" in message.text:
            # A fresh process has its memory in one piece. What is too large all the same is so for good.
            member.end("ran out of memory")
            self._losses.update(call.requests)
            said = f"a worker ran out of memory: {message.text or message.name}."
            kind = PermanentError if self._losses[call.requests[0]] > LOSSES else TransientError
            error = kind(said, code="worker.memory")
            if len(call.requests) > 1:
                error = MemoryError(said)  # then each is asked alone
        else:
            error = type(message.name, (Exception,), {})(message.text)
        if not call.done.done():
            call.done.set_exception(error)
        self._dispatch()

    async def _give(self, member: Member, need: Need) -> None:
        """Call a service for a worker, and send it what that gives."""
        services, link = self._services[need.model], member.link
        try:
            reply = Given(need.need, await asyncio.to_thread(_call, services, need))
        except PrejudgeError as error:
            reply = Given(need.need, error=tell(error))
        except (OSError, LookupError) as error:
            reply = Given(need.need, error=tell(DataError(str(error), code="data")))
        if link is not None:
            link.send(pack(reply))

    def _lost(self, member: Member, how: str) -> None:
        """Let the calls of a worker that has ended fail, so that they are asked again."""
        opened, lost = member.opened, member.lose()
        if self._closed:
            return
        LOG.warning("%s; it is started again", how)
        error = TransientError(f"{how}.", code="worker.lost")
        for call in lost:
            self._losses.update(call.requests)
            if not call.done.done():
                call.done.set_exception(error)
        if not opened:
            self._fail(member, UsageError(f"{how} before it was ready.", code="workers.start"))

    def _fail(self, member: Member, error: PrejudgeError) -> None:
        """Receive that a worker cannot be started: fatal at first; later a failure of what waits, if none is left."""
        member.lose()
        if (first := self._first.get(member)) is not None and not first.done():
            first.set_exception(error)
        elif not any(one.ready for one in self.members):
            waiting, self._waiting = self._waiting, deque()
            for call in waiting:
                if not call.done.done():
                    call.done.set_exception(TransientError(f"no worker can be started: {error}", code="worker.lost"))

    async def _watch(self) -> None:
        """End workers that are halted or hung."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            before = loop.time()
            await asyncio.sleep(WATCH_SECONDS)
            now = loop.time()
            for member in self.members:
                if now - before > 5 * WATCH_SECONDS:
                    member.heard = now  # the driver itself was halted, and has not listened
                elif member.link is not None and (why := member.fault(now)):
                    member.end(why)


def _alike(one: Described, other: Described) -> bool:
    """Return whether two instances are of one model; the batches that they take may differ by device."""
    return msgspec.structs.replace(one, limits=other.limits) == other


def join(call: Call, parts: Sequence[Call]) -> None:
    """Give a call the answers of its parts, once they are there; what a part met is the failure of its requests."""
    if not all(part.done.done() for part in parts):
        return
    failed = {part.number: part.done.exception() for part in parts if not part.done.cancelled()}
    if call.done.done():
        return
    answers: list[AnyResponse | ModelError] = []
    for part in parts:
        if part.done.cancelled():
            call.done.cancel()
            return
        error = failed[part.number]
        if isinstance(error, ModelError):
            answers.extend([error] * len(part.requests))
        elif error is not None:
            call.done.set_exception(error)
            return
        else:
            answers.extend(part.done.result())
    call.done.set_result(answers)


def _call(services: Services, need: Need) -> bytes:
    if need.service == "keep" and services.keep is not None:
        return services.keep(need.data, need.text).encode()
    if need.service == "blobs" and services.blobs is not None:
        return services.blobs(need.text)
    if need.service == "cells" and services.cells is not None:
        return pack(services.cells())
    raise DataError(f"this run has no service {need.service!r}.", code="data")


def _unmade(message: Broke) -> UsageError:
    return UsageError(f"a worker cannot make its models: {message.name}: {message.text}", code="workers.start")
