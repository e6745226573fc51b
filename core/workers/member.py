"""`Member`: one worker of a run over all its processes: what it was sent, what it holds, and when it was heard."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..contracts.errors import ModelError
from ..contracts.records import AnyResponse
from .engine import Link
from .places import Place
from .wire import Ask, pack

HELD = 4096
"""Shared parts, such as images, that a worker is taken to hold; the oldest go first."""
HALTED_SECONDS = 120.0
"""A worker that shows no sign of life for so long is halted."""
START_SECONDS = 1800.0
"""Longest time until a worker's models are made."""
FIRST_SECONDS, CALL_SECONDS, TIMES = 7200.0, 1800.0, 20.0
"""Longest first call, which loads weights; longest other call; or so many times the longest one that was answered."""


@dataclass(eq=False, slots=True)
class Call:
    """Requests that go to one worker together."""

    number: int
    model: str
    requests: list[bytes]
    again: Mapping[int, int]
    affinities: Sequence[str]
    """Of each request."""
    done: asyncio.Future[list[AnyResponse | ModelError]]
    sent: float = 0.0
    whole: Call | None = None
    """The call of which this is a part."""
    shared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Find the affinities that there are."""
        self.shared = frozenset(filter(None, self.affinities))

    @property
    def over(self) -> bool:
        """Return whether nobody waits for it any more."""
        return self.done.done() or (self.whole is not None and self.whole.over)


@dataclass(eq=False, slots=True)
class Member:
    """One worker."""

    place: Place
    link: Link | None = None
    ready: bool = False
    """Whether it takes calls."""
    opened: bool = False
    """Whether the models of its process were made."""
    began: float = 0.0
    """Start of its process."""
    heard: float = 0.0
    starts: int = 0
    """Number of starts since it last answered."""
    why: str = ""
    """Why its process was ended, if the driver ended it."""
    longest: float | None = None
    """Seconds of its longest call; None: its process has answered none."""
    calls: dict[int, Call] = field(default_factory=dict)
    busy: Counter[str] = field(default_factory=Counter)
    """Calls in flight, by model."""
    held: dict[str, None] = field(default_factory=dict)

    def send(self, call: Call, now: float) -> None:
        """Send a call; what its requests share is here from now on."""
        call.sent, self.calls[call.number] = now, call
        self.busy[call.model] += 1
        for one in call.shared:
            self.held.pop(one, None)
            self.held[one] = None
        while len(self.held) > HELD:
            del self.held[next(iter(self.held))]
        if self.link is not None:
            self.link.send(pack(Ask(call.number, call.model, call.requests, dict(call.again))))

    def land(self, number: int, now: float) -> Call | None:
        """Return a call that is over; None: it was given up before."""
        if (call := self.calls.pop(number, None)) is not None:
            self.busy[call.model] -= 1
            self.starts, self.longest = 0, max(self.longest or 0.0, now - call.sent)
        return call

    def begin(self, link: Link, now: float) -> None:
        """Begin with a new process."""
        self.link, self.ready, self.opened, self.why, self.longest = link, False, False, "", None
        self.began = self.heard = now
        self.held.clear()

    def lose(self) -> list[Call]:
        """Return the calls that were in flight when the process ended."""
        lost = list(self.calls.values())
        self.ready, self.link = False, None
        self.calls.clear()
        self.busy.clear()
        return lost

    def fault(self, now: float) -> str:
        """Return why the process must be ended, if it must."""
        if not self.opened:
            return f"was not ready after {START_SECONDS:,.0f} s" if now - self.began > START_SECONDS else ""
        if now - self.heard > HALTED_SECONDS:
            return f"gave no sign of life for {HALTED_SECONDS:,.0f} s"
        most = FIRST_SECONDS if self.longest is None else max(CALL_SECONDS, TIMES * self.longest)
        hung = any(now - call.sent > most for call in self.calls.values())
        return f"has not answered a call for {most:,.0f} s" if hung else ""

    def end(self, why: str) -> None:
        """End the process now."""
        if self.link is not None:
            self.why, self.ready = self.why or why, False
            self.link.kill()
