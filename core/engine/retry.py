"""Retry decisions after a failure: the only retry layer."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import msgspec

from ..contracts.errors import HaltedError, ModelError, RetryDecision
from .ending import PROVIDER_FAILING

LOG = logging.getLogger(__name__)
T = TypeVar("T")
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


async def patiently(call: Callable[[], Awaitable[T]], policy: RetryPolicy, what: str) -> T:
    """Return what a harmless call about a batch gives, repeated while its failure may pass.

    Raises:
        ModelError: a failure that does not pass.
        HaltedError: it did not pass.
    """
    retries = 0
    while True:
        try:
            return await call()
        except ModelError as error:
            if not policy.again(error, retries):
                raise given_up(error, what) from None
            LOG.info("%s: retry %d after %s", what, retries + 1, error)
            await asyncio.sleep(policy.wait([error], retries))
        retries += 1


def given_up(error: ModelError, what: str) -> ModelError | HaltedError:
    """Return the error that ends a run because a call about a batch failed."""
    if error.code.startswith("batch.") or type(error).__name__ == "AuthenticationError":
        return error
    return PROVIDER_FAILING.error(action=what, failure=error)
