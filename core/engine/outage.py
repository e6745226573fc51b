"""`Outage`: whether an endpoint is down; while it is, one call at a time probes it, and all others wait.

Without this, every request would find the outage by itself: 64 calls in flight would each be sent again and again. An
endpoint that answers nothing but 429 is not down, but does not answer either.
"""

from __future__ import annotations

import math

DOWN = 8
"""Failed calls in a row, none of them answered, after which an endpoint counts as down."""
FIRST_SECONDS, MOST_SECONDS = 0.5, 30.0
"""Seconds before the first probe, and at most; each wait is twice as long as the one before."""


class Outage:
    """The present outage of one endpoint, if any."""

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
        if self._failed < DOWN or sent < self._last:
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
        return now - self._refused_since if self._refused >= DOWN else 0.0
