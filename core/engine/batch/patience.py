"""Calls to a provider about a batch: repeated as the retry policy says, and never the one that might be paid twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...contracts.errors import HaltedError, ModelError
from ..ending import PROVIDER_FAILING
from ..retry import RetryPolicy

LOG = logging.getLogger(__name__)
T = TypeVar("T")


async def patiently(call: Callable[[], Awaitable[T]], policy: RetryPolicy, what: str) -> T:
    """Return what a harmless call gives, repeated while its failure may pass.

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
