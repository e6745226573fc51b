"""Trying again while the server of a store does not answer, with longer and longer waits.

What is repeated is a whole transaction. Whether the one before was committed is not known where the connection was lost
at its end, so a method that is `enduring` must give the same when it is run twice; the others check `again`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ..contracts.errors import StoreError

LOG = logging.getLogger(__name__)
LONGEST_SECONDS = 600.0
"""Seconds that a server may be away; a database that is moved to another machine takes some minutes."""
FIRST_WAIT, MOST_WAIT = 0.1, 5.0
TELL_SECONDS = 1.0
"""Seconds after which the user is told."""
P = ParamSpec("P")
T = TypeVar("T")


class LostError(StoreError):
    """The server of a store does not answer, or ended the connection."""

    code = "store.lost"
    reached = False
    """Whether the server was there: it answered, and then ended the connection or let nobody in for now."""


class Patience:
    """How long a store waits for its server."""

    def __init__(self, seconds: float = LONGEST_SECONDS) -> None:
        self.seconds = seconds
        self._hurried = threading.Event()

    def hurry(self) -> None:
        """Wait no longer, in any thread: the user wants an end."""
        self.seconds = 0.0
        self._hurried.set()

    def endure(self, call: Callable[[bool], T]) -> T:
        """Return what a call gives; `again` is True where an earlier call may have been committed.

        Raises:
            StoreError: the server was away for too long.
        """
        began, wait, again, announced = 0.0, FIRST_WAIT, False, False
        while True:
            try:
                return call(again)
            except LostError as error:
                now = time.monotonic()
                if not again:
                    began = now
                if (left := began + self.seconds - now) <= 0:
                    tried = f" It was tried again for {_span(now - began)}." if again else ""
                    raise StoreError(f"{error}{tried}", code=error.code) from None
                if not announced and now - began > TELL_SECONDS:
                    LOG.warning("%s It is tried again for up to %s.", error, _span(left))
                    announced = True
                # Processes that lost their server together do not all come back at once.
                self._hurried.wait(min(left, wait * random.uniform(0.5, 1.0)))
                wait, again = min(MOST_WAIT, 2 * wait), True


class Patient(Protocol):
    """An object whose calls reach a store."""

    @property
    def patience(self) -> Patience:
        """How long its store waits."""


S = TypeVar("S", bound=Patient)


def enduring(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Let a method, or a function of a store, that gives the same when it is run twice wait for the store's server."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.patience.endure(lambda again: method(self, *args, **kwargs))

    return call


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
