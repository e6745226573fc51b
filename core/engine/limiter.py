"""`Limiter`: the number of calls in flight to one endpoint, and their rate.

An endpoint that never answers 429 (too many requests) is limited only by its concurrency; the first 429 sets a rate
(`pace.py`). Calls that were sent before a decrease of the rate do not decrease it again. A waiting call holds no slot;
calls wait in a queue, in which only the first one sleeps. While the endpoint is down (`Outage`), one call at a time
probes it. No wait is longer than a setting; an endpoint that asks for more a second time, or is down for longer, stops
the run (`halt`).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

import msgspec

from ..contracts.adapter import Limits, ModelAdapter, Room, Services
from ..contracts.errors import HaltedError, ModelError, RateLimitError, TransientError
from ..pictures.shown import ShownPictures
from ..store import Store
from .ending import DOWN, LONG_WAIT, ONLY_LIMITED, QUOTA, UNAVAILABLE
from .pace import Pace
from .retry import LONGEST_SECONDS

LOG = logging.getLogger(__name__)
FIRST_WINDOW = 8
"""Calls in flight before the first answer of an endpoint; doubled each round, up to its concurrency."""
SILENT_SECONDS = 30.0
"""Seconds after which an endpoint that never answered counts as unavailable."""

FAILED_CALLS = 8
"""Failed calls in a row, none of them answered, after which an endpoint counts as down."""
FIRST_SECONDS, MOST_SECONDS = 0.5, 30.0
"""Seconds before the first probe, and at most; each wait is twice as long as the one before."""


class Ticket(NamedTuple):
    """A call that may be sent."""

    sent: float
    requests: int


@dataclass
class Paced:
    """Statistics of a limiter, for the manifest."""

    limited: int = 0
    """Requests answered 429."""
    shrunk: int = 0
    """Number of decreases of the rate."""
    waited_seconds: float = 0.0
    """Seconds in which calls waited, because of the rate or at the request of the endpoint."""
    rate: float | None = None
    """Last rate in requests per second; None if no limit was met."""
    most_in_flight: int = 0


class Outage:
    """The present outage of one endpoint, if any: one call at a time probes it, and all others wait.

    Without this, every request would find the outage by itself: 64 calls in flight would each be sent again and again.
    An endpoint that answers nothing but 429 is not down, but does not answer either.
    """

    def __init__(self) -> None:
        self._failed = self._probes = 0
        self._since: float | None = None
        self._last = -math.inf
        self._refused, self._refused_since = 0, math.inf

    @property
    def open(self) -> bool:
        """Return whether the endpoint is down."""
        return self._probes > 0

    def lasted(self, now: float) -> float:
        """Return the seconds since the first of the failed calls; 0 if the endpoint is not down."""
        return now - self._since if self.open and self._since is not None else 0.0

    def learn(self, now: float, sent: float, *, failed: bool) -> float:
        """Record a call that was sent at `sent`, and return the seconds to wait before the next one."""
        if not failed:
            self._failed = self._probes = 0
            self._since = None
            return 0.0
        self._since = now if self._since is None else self._since
        self._failed += 1
        # Calls that were sent before the last wait began say nothing about the endpoint after it.
        if self._failed < FAILED_CALLS or sent < self._last:
            return 0.0
        wait = min(MOST_SECONDS, FIRST_SECONDS * 2.0**self._probes)
        self._probes, self._last = self._probes + 1, now
        return wait

    def refuse(self, now: float, *, limited: bool) -> float:
        """Record whether a call was answered 429, and return for how many seconds nothing else was answered."""
        if not limited:
            self._refused, self._refused_since = 0, math.inf
            return 0.0
        self._refused, self._refused_since = self._refused + 1, min(now, self._refused_since)
        return now - self._refused_since if self._refused >= FAILED_CALLS else 0.0


class Clock(msgspec.Struct, frozen=True):
    """A clock, and how to sleep."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Limiter:
    """Limits the calls to one endpoint; used in one event loop."""

    def __init__(
        self,
        limits: Limits,
        *,
        remote: bool = True,
        clock: Clock | None = None,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        self._clock = clock or Clock()
        self._remote, self._longest = remote, longest_seconds
        self._outage, self._answered = Outage(), False
        self._overlong: float | None = None
        self._most = limits.concurrency
        self._window = min(limits.concurrency, FIRST_WINDOW) if remote else limits.concurrency
        self._share = self._most
        self._busy = 0
        self._filled = -math.inf
        self._turn = asyncio.Lock()
        self._freed: asyncio.Future[None] | None = None
        self._pace = Pace(self._clock.now(), limits.requests_per_minute, longest_seconds)
        self.paced = Paced()
        self.halt: HaltedError | None = None
        """Why no further call should be sent, if there is a reason."""

    @property
    def waits(self) -> float:
        """Return the seconds until the next call may be sent, because of the rate or at the endpoint's request."""
        return max(0.0, self._pace.wait(self._clock.now()))

    @property
    def down(self) -> bool:
        """Return whether the endpoint is down."""
        return self._outage.open

    @property
    def rate(self) -> float | None:
        """Return the allowed requests per second; None if no limit was met."""
        return self._pace.found(self._clock.now())

    async def enter(self, requests: int) -> Ticket:
        """Wait for a slot and for the time of a call; always return the ticket with `leave`, also after an error."""
        if (ticket := self.try_enter(requests)) is not None:
            return ticket
        async with self._turn:
            await self._wait()
            return self._let(requests)

    def try_enter(self, requests: int) -> Ticket | None:
        """Return the ticket of a call that need not wait; None if it has to."""
        if self._turn.locked() or self._busy >= self._slots or self._pace.wait(self._clock.now()) > 0:
            return None
        return self._let(requests)

    @property
    def _slots(self) -> int:
        return 1 if self._outage.open else min(self._window, self._share)

    def divide(self, parts: int) -> bool:
        """Take one of so many equal parts of what the endpoint allows; return whether the calls in flight fit it."""
        self._share = max(1, self._most // parts)
        self._pace.divide(parts)
        if self._freed is not None and not self._freed.done():
            self._freed.set_result(None)
        return self._busy <= self._share

    async def _wait(self) -> None:
        while True:
            if self._busy >= self._slots:
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

    def leave(self, ticket: Ticket, answers: Sequence[object]) -> float:
        """Free the slot of a call, adjust the rate to its answers, and return the seconds that it took."""
        self._busy -= 1
        if self._freed is not None and not self._freed.done():
            self._freed.set_result(None)
        now, failed = self._clock.now(), [answer for answer in answers if isinstance(answer, ModelError)]
        limited = [error for error in failed if isinstance(error, RateLimitError)] if failed else failed
        if self._pace.learn(now, ticket, len(limited)):
            self.paced.shrunk += 1
            LOG.info("the endpoint is at its limit: %.2f requests per second from now on", self.rate or 0.0)
        if limited:
            self.paced.limited += len(limited)
        elif self._window < self._most and self._filled >= ticket.sent and not failed:
            self._window += 1
        if self._remote and answers:
            self._watch(now, ticket, failed if len(failed) == len(answers) else ())
        if failed:
            self._pause(now, ticket, failed)
        return now - ticket.sent

    def _watch(self, now: float, ticket: Ticket, failed: Sequence[ModelError]) -> None:
        """Look whether the endpoint is down; `failed` are the errors of a call that brought no answer at all."""
        down = bool(failed) and all(isinstance(error, TransientError) for error in failed)
        self._answered = self._answered or not down
        if (seconds := self._outage.learn(now, ticket.sent, failed=down)) > 0:
            LOG.info("the endpoint is down; it is tried again in %.1f s", seconds)
            self._pace.pause(now, min(seconds, self._longest))
        allowed = self._longest if self._answered else min(SILENT_SECONDS, self._longest)
        if down and self._outage.lasted(now) >= allowed:
            stop = DOWN if self._answered else UNAVAILABLE
            self.halt = stop.error(seconds=self._outage.lasted(now), failure=failed[-1])
        limited = bool(failed) and all(isinstance(error, RateLimitError) for error in failed)
        if (seconds := self._outage.refuse(now, limited=limited)) >= self._longest and self.halt is None:
            self.halt = ONLY_LIMITED.error(seconds=seconds, failure=failed[-1])

    def _pause(self, now: float, ticket: Ticket, failed: Sequence[ModelError]) -> None:
        """Wait as long as the endpoint asks for, with a 429 or while it is down; stop where it asks for a day."""
        self._end_day(failed)
        named = [error.retry_after for error in failed if error.retry_after is not None]
        if not named:
            return
        seconds = self._allow(now, ticket.sent, max(named))
        # While no limit is known and others are answered, only the request that failed waits, not all requests.
        if self._pace.limited or self.down or seconds >= self._longest:
            LOG.info("the endpoint asks to wait %.1f s", max(named))
            self._pace.pause(now, seconds)

    def _end_day(self, failed: Sequence[ModelError]) -> None:
        """Stop at once where the quota of a day is used up, unless the endpoint names a wait that is allowed."""
        for error in failed:
            if error.code == QUOTA.code and (error.retry_after is None or error.retry_after > self._longest):
                until = "after the provider's day has ended"
                if error.retry_after is not None:
                    until = f"after {time.strftime('%Y-%m-%d %H:%M', time.localtime(time.time() + error.retry_after))}"
                self.halt = QUOTA.error(failure=error, until=until)

    def _allow(self, now: float, sent: float, seconds: float) -> float:
        """Return how long to wait when the endpoint asks for so many seconds."""
        if seconds <= self._longest:
            self._overlong = None
            return seconds
        if self._overlong is None:
            self._overlong = now + self._longest
        elif sent >= self._overlong:
            self.halt = LONG_WAIT.error(seconds=seconds, longest=self._longest)
        return self._longest

    def hear(self, room: Room) -> None:
        """Wait if the endpoint announces that no requests remain in the current window."""
        if room.remaining < 1:
            # The endpoint names the time when its full limit is available; the next request is allowed long before.
            now = self._clock.now()
            self._pace.pause(now, self._allow(now, now, room.reset_seconds / max(1.0, room.limit or 1.0)))
        else:
            self._overlong = None

    def take(self) -> Paced:
        """Return the statistics since the last call, and reset them."""
        done, self.paced = self.paced, Paced()
        done.rate = self._pace.found(self._clock.now())
        return done


class Limiters:
    """A limiter per endpoint: adapters that name the same endpoint share it."""

    def __init__(self, longest_seconds: float = LONGEST_SECONDS, endpoints: Collection[str] = ()) -> None:
        """`endpoints` are those that are shared with other processes."""
        self._longest, self.endpoints = longest_seconds, frozenset(endpoints)
        self._parts: Mapping[str, int] = {}
        self._known: dict[str, Limiter] = {}

    def of(self, adapter: ModelAdapter) -> Limiter:
        """Return the limiter of an adapter's endpoint; an adapter without an endpoint has its own limiter."""
        name = adapter.endpoint.name if adapter.endpoint is not None else f"{id(adapter)}"
        if name not in self._known:
            self._known[name] = Limiter(
                adapter.limits, remote=adapter.endpoint is not None, longest_seconds=self._longest
            )
            self._known[name].divide(self._parts.get(name, 1))
        return self._known[name]

    def divide(self, parts: Mapping[str, int]) -> bool:
        """Share each endpoint with so many processes, this one included; return whether all calls in flight fit."""
        if parts == self._parts and all(number == 1 for number in parts.values()):
            return True
        self._parts = parts
        return all([limiter.divide(parts.get(name, 1)) for name, limiter in self._known.items()])

    def services(self, adapter: ModelAdapter, store: Store) -> Services:
        """Return the services of a run for an adapter: the images of its store, and a receiver of rate limits."""
        # The limiter is made at the first request, because its clock starts then.
        return msgspec.structs.replace(
            adapter.services,
            blobs=ShownPictures(store.blob, store.keep).get,
            keep=store.keep,
            hear=partial(self._hear, adapter),
        )

    def _hear(self, adapter: ModelAdapter, room: Room) -> None:
        self.of(adapter).hear(room)


def describe(paced: Paced) -> dict[str, float | int | None]:
    """Return the statistics of a limiter, for the manifest."""
    return {**asdict(paced), "waited_seconds": round(paced.waited_seconds, 3)}
