"""`Limiter`: how many calls to one endpoint are in flight, and how fast they follow each other.

An endpoint that never says "too many" is only held to its concurrency. The first 429 gives the limiter a rate: what the
endpoint accepted of late. From then on calls are paced. The rate rises fast until a second 429 has shown where the
limit is; then it stays a little below, comes back to it along a cubic curve, and probes above it ever faster until the
next 429. Calls that were sent before the rate shrank do not shrink it again. Sources: the curve is that of CUBIC
(RFC 9438), with a rate in place of a window.

Whoever waits holds no slot, and waits in line: only the head of the line sleeps.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import msgspec

from .adapter import Limits, ModelAdapter, Room
from .errors import ModelError, RateLimitError

FIRST_WINDOW = 8
"""Calls in flight before the first answer of an endpoint; twice as many each round, up to its concurrency."""
SLACK = 0.02
"""Seconds by which calls may be late and still make up for it: a sleep of 2 ms takes 3."""
BELOW = 0.95
"""Share of the accepted rate to go on with after a 429."""
BLIND = 0.7
"""Share of the rate to go on with after a 429 that comes before the rate could be measured."""
SEARCH = 1.3
"""Growth per second while no limit is known, or the known one is no more."""
CYCLE_SECONDS, CYCLE_REQUESTS = 15.0, 100.0
"""The rate is back where it was after so long, and after so many requests: a 429 is dear where requests are few."""
SLOWEST = 1 / 60
"""Requests per second that are always tried."""
BIN, BINS = 0.1, 100
"""Seconds per bin of what was sent, and bins kept."""


class Ticket(NamedTuple):
    """A call that was let through."""

    sent: float
    requests: int
    full: bool
    """It took the last slot."""


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
        self._turn = asyncio.Lock()
        self._freed: asyncio.Future[None] | None = None
        self._pace = Pace(self._clock.now(), limits.requests_per_minute)
        self.paced = Paced()

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
        self.paced.most_in_flight = max(self.paced.most_in_flight, self._busy)
        return Ticket(now, requests, self._busy >= self._window)

    def leave(self, ticket: Ticket, answers: Sequence[object]) -> None:
        """Free the slot of a call, and learn from its answers."""
        self._busy -= 1
        if self._freed is not None and not self._freed.done():
            self._freed.set_result(None)
        limited = [answer for answer in answers if isinstance(answer, RateLimitError)]
        if limited:
            self._learn(ticket, limited)
        elif ticket.full and self._window < self._most and not any(isinstance(a, ModelError) for a in answers):
            self._window += 1

    def _learn(self, ticket: Ticket, limited: Sequence[RateLimitError]) -> None:
        now, named = self._clock.now(), [error.retry_after for error in limited if error.retry_after is not None]
        self.paced.limited += len(limited)
        self._pace.refused(now, len(limited))
        if ticket.sent >= self._pace.shrunk:
            self._pace.shrink(now)
            self.paced.shrunk += 1
        if named:
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


class Pace:
    """The rate of one endpoint: None until it is known to have one."""

    def __init__(self, now: float, per_minute: float | None = None) -> None:
        self._top = math.inf if per_minute is None else per_minute / 60
        self._low: float | None = None if per_minute is None else self._top
        self._ceiling = self._top
        self._searching = True
        self._since = self._began = now
        self._next = self._paused = -math.inf
        self.shrunk = -math.inf
        self._sent: deque[list[float]] = deque(maxlen=BINS)

    def wait(self, now: float) -> float:
        """Return the seconds until the next call may go."""
        return max(self._next, self._paused) - now

    def spend(self, now: float, requests: int) -> None:
        """Count requests that go now."""
        self._count(now, requests)
        if self._low is None:
            return
        if (idle := now - self._next - SLACK) > 0 and self._next > -math.inf:
            # Time in which the rate held nothing back says nothing of the limit, so it does not let the rate grow.
            self._since = min(now, self._since + idle)
        self._next = max(self._next, now - SLACK) + requests / self._rate(now)

    def refused(self, now: float, requests: int) -> None:
        """Count requests that were sent and turned away."""
        self._count(now, -requests)

    def pause(self, now: float, seconds: float) -> None:
        """Let nothing go for so long."""
        self._paused = max(self._paused, now + seconds)

    def shrink(self, now: float) -> None:
        """Lower the rate after a 429."""
        if self._low is None:
            self._low = max(SLOWEST, BELOW * self._accepted(now, max(1.0, now - self._began)))
        else:
            self._lower(now)
        self._since = self.shrunk = now
        self._next = now + 1 / self._low

    def _lower(self, now: float) -> None:
        rate, measured = self._rate(now), now - max(self.shrunk, self._paused)
        self._searching = False
        if measured >= max(1.0, 10 / rate):
            self._ceiling = min(rate, self._accepted(now, min(measured, max(1.0, 20 / rate), BIN * BINS)))
            self._low = max(SLOWEST, BELOW * self._ceiling)
        else:
            self._ceiling, self._low = max(SLOWEST, BELOW * rate), max(SLOWEST, BLIND * rate)

    def found(self, now: float) -> float | None:
        """Return the rate in requests per second; None if there is none."""
        return None if self._low is None else round(self._rate(now), 3)

    def _rate(self, now: float) -> float:
        assert self._low is not None
        if not self._searching:
            cycle = max(CYCLE_SECONDS, CYCLE_REQUESTS / self._ceiling)
            age = (now - self._since) / cycle
            if age <= 2:
                return min(self._top, self._ceiling + (self._ceiling - self._low) * float((age - 1) ** 3))
            # Well above the limit that was, and no 429: there is another one now.
            self._low, self._since = 2 * self._ceiling - self._low, self._since + 2 * cycle
            self._searching = True
        growth: float = SEARCH ** min(now - self._since, 60.0)
        return min(self._top, self._low * growth)

    def _count(self, now: float, requests: int) -> None:
        place = now // BIN
        if self._sent and self._sent[-1][0] == place:
            self._sent[-1][1] += requests
        else:
            self._sent.append([place, requests])

    def _accepted(self, now: float, seconds: float) -> float:
        """Return the requests per second that were sent and not turned away in the last so many seconds."""
        first = (now - seconds) // BIN
        return max(0.0, sum(count for place, count in self._sent if place > first)) / seconds


class Limiters:
    """A limiter per endpoint: adapters that name the same one share it."""

    def __init__(self) -> None:
        self._known: dict[str, Limiter] = {}

    def of(self, adapter: ModelAdapter) -> Limiter:
        """Return the limiter of an adapter's endpoint; one of its own where it names none."""
        name = adapter.endpoint or f"{id(adapter)}"
        if name not in self._known:
            self._known[name] = Limiter(adapter.limits, remote=adapter.endpoint is not None)
        limiter = self._known[name]
        adapter.hear = limiter.hear
        return limiter


def describe(paced: Paced) -> dict[str, float | int | None]:
    """Return what a limiter did, for the manifest."""
    return {**asdict(paced), "waited_seconds": round(paced.waited_seconds, 3)}
