"""Retry decisions after a failure: the only retry layer."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec

from ..contracts.errors import ModelError, RetryDecision

LONGEST_SECONDS = 900.0
"""Default of the longest wait that an endpoint may ask for."""
RETRIED = frozenset({RetryDecision.RATE_LIMIT, RetryDecision.TRANSIENT})


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Number of retries of a failed request, and waits between them."""

    max_retries: int = 6
    max_rate_limited: int = 12
    """Retries after a 429; more, because the endpoint works and only its limit is not known yet."""
    base_seconds: float = 0.5
    """Seconds of the first back-off; each further one is twice as long."""
    cap_seconds: float = 60.0
    longest_seconds: float = LONGEST_SECONDS
    """Maximum wait, also where the endpoint names a longer one."""

    def again(self, error: ModelError, retries: int) -> bool:
        """Return whether a failed request is retried after this many retries."""
        limited = error.decision is RetryDecision.RATE_LIMIT
        return error.decision in RETRIED and retries < (self.max_rate_limited if limited else self.max_retries)

    def wait(self, errors: Iterable[ModelError], retries: int) -> float:
        """Return the seconds to wait: as the endpoint asked, up to a limit; else a back-off with jitter."""
        named = [error.retry_after for error in errors if error.retry_after is not None]
        if named:
            return min(self.longest_seconds, max(named))
        longest = min(self.longest_seconds, self.cap_seconds)
        return min(longest, self.base_seconds * 2.0**retries) * random.uniform(0.5, 1.0)
