"""A loop whose time passes only while everybody sleeps, and servers with a limit: minutes in milliseconds."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from prejudge.core.contracts.errors import RateLimitError


class _Skips(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skips = _Skips()
        super().__init__(self._skips)

    def time(self) -> float:
        return self._skips.now


def run_virtual(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine on a loop of its own, whose clock starts at 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


@dataclass
class Bucket:
    """A server that lets `rate` requests per second pass, and `burst` at once after a rest."""

    rate: float
    burst: float
    retry_after: Callable[[float], float | None] = lambda exact: None
    """What it names when it turns a request away; gets the seconds until the next would pass."""
    passed: list[float] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._level, self._seen = self.burst, 0.0

    def ask(self, now: float) -> RateLimitError | None:
        """Return the 429 of a request that arrives now, or None where it passes."""
        self._level, self._seen = min(self.burst, self._level + (now - self._seen) * self.rate), now
        if self._level >= 1:
            self._level -= 1
            self.passed.append(now)
            return None
        self.limited.append(now)
        return RateLimitError("slow down", self.retry_after((1 - self._level) / self.rate))

    def share(self, begin: float, end: float) -> tuple[float, float]:
        """Return (requests per second that passed, share that was turned away) between two times."""
        passed = sum(begin <= t < end for t in self.passed)
        limited = sum(begin <= t < end for t in self.limited)
        return passed / (end - begin), limited / max(1, passed + limited)


def whole_seconds(exact: float) -> float:
    """Name a wait as most servers do."""
    return float(math.ceil(exact))
