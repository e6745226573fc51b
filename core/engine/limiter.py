"""`Limiter`: the number of calls in flight to one endpoint, and their rate.

An endpoint that never says "too many" is only held to its concurrency; the first 429 gives it a rate (`pace.py`).
Calls that were sent before the rate shrank do not shrink it again. Whoever waits holds no slot, and waits in line:
only the head of the line sleeps.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

import msgspec

from ..contracts.adapter import Limits, ModelAdapter, Room, Services
from ..contracts.errors import ModelError, RateLimitError
from ..store import Store
from .pace import Pace

LOG = logging.getLogger(__name__)
FIRST_WINDOW = 8
"""Calls in flight before the first answer of an endpoint; twice as many each round, up to its concurrency."""


class Ticket(NamedTuple):
    """A call that was let through."""

    sent: float
    requests: int


@dataclass
class Paced:
    """What a limiter did; stands in the manifest."""

    limited: int = 0
    """Requests answered 429."""
    shrunk: int = 0
    """Times the rate was lowered."""
    waited_seconds: float = 0.0
    """Time in which calls were held back, by the rate or because the endpoint said to wait."""
    rate: float | None = None
    """Requests per second found in the end; None where no limit was met."""
    most_in_flight: int = 0


class Clock(msgspec.Struct, frozen=True):
    """Time, and how to let it pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Limiter:
    """The gate before one endpoint; belongs to one event loop."""

    def __init__(self, limits: Limits, *, remote: bool = True, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._most = limits.concurrency
        self._window = min(limits.concurrency, FIRST_WINDOW) if remote else limits.concurrency
        self._busy = 0
        self._filled = -math.inf
        self._turn = asyncio.Lock()
        self._freed: asyncio.Future[None] | None = None
        self._pace = Pace(self._clock.now(), limits.requests_per_minute)
        self.paced = Paced()

    @property
    def rate(self) -> float | None:
        """Return the requests per second that are let through; None while no limit was met."""
        return self._pace.found(self._clock.now())

    async def enter(self, requests: int) -> Ticket:
        """Wait for a slot and for the time of a call; give the ticket back with `leave`, whatever comes of it."""
        if self._turn.locked() or self._busy >= self._window or self._pace.wait(self._clock.now()) > 0:
            async with self._turn:
                await self._wait()
                return self._let(requests)
        return self._let(requests)

    async def _wait(self) -> None:
        while True:
            if self._busy >= self._window:
                self._freed = asyncio.get_running_loop().create_future()
                await self._freed
            elif (seconds := self._pace.wait(began := self._clock.now())) > 0:
                await self._clock.sleep(seconds)
                self.paced.waited_seconds += self._clock.now() - began
            else:
                return

    def _let(self, requests: int) -> Ticket:
        now = self._clock.now()
        self._pace.spend(now, requests)
        self._busy += 1
        if self._busy >= self._window:
            self._filled = now
        if self._busy > self.paced.most_in_flight:
            self.paced.most_in_flight = self._busy
        return Ticket(now, requests)

    def leave(self, ticket: Ticket, answers: Sequence[object]) -> None:
        """Free the slot of a call, and learn from its answers."""
        self._busy -= 1
        if self._freed is not None and not self._freed.done():
            self._freed.set_result(None)
        limited = [answer for answer in answers if isinstance(answer, RateLimitError)]
        now = self._clock.now()
        if self._pace.learn(now, ticket, len(limited)):
            self.paced.shrunk += 1
            LOG.info("the endpoint is at its limit: %.2f requests per second from here on", self.rate or 0.0)
        if limited:
            self.paced.limited += len(limited)
            self._pause(now, limited)
        elif self._window < self._most and self._filled >= ticket.sent and not any(map(_failed, answers)):
            self._window += 1

    def _pause(self, now: float, limited: Sequence[RateLimitError]) -> None:
        named = [error.retry_after for error in limited if error.retry_after is not None]
        # Where no limit is known, a wait is for the request that met a 429, and not for all.
        if named and self._pace.limited:
            LOG.info("the endpoint says to wait %.1f s", max(named))
            self._pace.pause(now, max(named))

    def hear(self, room: Room) -> None:
        """Wait where an endpoint says beforehand that there is no room left."""
        if room.remaining < 1:
            # Buckets tell when they are full again; the next request has room long before.
            self._pace.pause(self._clock.now(), room.reset_seconds / max(1.0, room.limit or 1.0))

    def take(self) -> Paced:
        """Return what was done since the last time, and begin to count anew."""
        done, self.paced = self.paced, Paced()
        done.rate = self._pace.found(self._clock.now())
        return done


class Limiters:
    """A limiter per endpoint: adapters that name the same one share it."""

    def __init__(self) -> None:
        self._known: dict[str, Limiter] = {}

    def of(self, adapter: ModelAdapter) -> Limiter:
        """Return the limiter of an adapter's endpoint; one of its own where it names none."""
        name = adapter.endpoint or f"{id(adapter)}"
        if name not in self._known:
            self._known[name] = Limiter(adapter.limits, remote=adapter.endpoint is not None)
        return self._known[name]

    def bind(self, adapters: Iterable[ModelAdapter], store: Store) -> None:
        """Lend adapters what a run has for them: the images of its store, and an ear for limits."""
        for adapter in adapters:
            # The limiter is looked up late: its time begins with the first request.
            adapter.bind(Services(blobs=store.blob, keep=store.keep, hear=partial(self._hear, adapter)))

    def _hear(self, adapter: ModelAdapter, room: Room) -> None:
        self.of(adapter).hear(room)


def _failed(answer: object) -> bool:
    return isinstance(answer, ModelError)


def describe(paced: Paced) -> dict[str, float | int | None]:
    """Return what a limiter did, for the manifest."""
    return {**asdict(paced), "waited_seconds": round(paced.waited_seconds, 3)}
