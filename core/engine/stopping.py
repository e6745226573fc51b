"""`Stopping`: why a stage asks no more, and that it ends only when no call is open, so that no answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..contracts.errors import AuthenticationError, HaltedError, ModelError, RetryDecision
from .asking import Keyed
from .limiter import Limiter
from .wall import Wall

SILENT = 10
"""Number of failed requests, without a single answer, after which the model is considered unavailable."""


class Stopping:
    """The reasons to stop that all requests of a stage share."""

    def __init__(self, gate: Limiter, wall: Wall | None) -> None:
        self._gate, self._wall = gate, wall
        self._refused: AuthenticationError | HaltedError | None = None
        self._answered, self._silent = False, 0
        self._open = 0
        self._landed: asyncio.Future[None] | None = None

    @property
    def reason(self) -> AuthenticationError | HaltedError | None:
        """Return why nothing more is asked, if there is a reason."""
        if self._wall is None:
            halt = self._gate.halt
            return self._refused or (halt if halt is not None and halt.code == "endpoint.wait" else None)
        return self._refused or self._wall.halt or self._gate.halt

    def refuse(self, error: AuthenticationError | HaltedError | None) -> None:
        """Receive a reason to stop; the first one counts."""
        self._refused = self._refused or error

    def open(self) -> None:
        """Count a call that is sent: it is open until its answers are committed."""
        self._open += 1

    def close(self, calls: int) -> bool:
        """Count calls that are no longer open; return whether none is."""
        self._open -= calls
        if not self._open and self._landed is not None:
            landed, self._landed = self._landed, None
            if not landed.done():
                landed.set_result(None)
        return not self._open

    async def raise_reason(self) -> None:
        """Raise the reason to stop, if there is one, once no call is open."""
        if self._open:
            if self._landed is None:
                self._landed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._landed)
        if (reason := self.reason) is not None:
            raise reason

    def answered(self) -> None:
        """Receive that the model answers."""
        self._answered = True

    def failed(self, final: Sequence[tuple[Keyed, ModelError]]) -> None:
        """Receive failures that are not retried."""
        passing = [error for _, error in final if error.decision is RetryDecision.TRANSIENT]
        self._silent += len(passing)
        if passing and not self._answered and self._silent >= SILENT:
            self._refused = HaltedError(
                f"the model has answered none of {self._silent} requests, each asked several times. The last failure: "
                f"{passing[-1]} Fix the cause, then resume the run.",
                code="model.silent",
            )
        self.refuse(next((error for _, error in final if isinstance(error, AuthenticationError)), None))
        if self._wall is not None:
            for keyed, error in final:
                if error.decision is RetryDecision.PERMANENT:
                    self._wall.failed(keyed.request, error)
