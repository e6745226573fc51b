"""`Stopping`: why a stage asks no more, and that it ends only when no call is open, so that no answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..contracts.errors import AuthenticationError, HaltedError, ModelError, RetryDecision
from ..contracts.records import AnyResponse
from .asking import Keyed
from .failure_detector import FailureDetector
from .limiter import Limiter
from .stops import LONG_WAIT, NEVER_ANSWERED

SILENT = 10
"""Number of failed requests, without a single answer, after which the model is considered unavailable."""


class Stopping:
    """The reasons to stop that all requests of a stage share."""

    def __init__(self, gate: Limiter, detector: FailureDetector | None) -> None:
        """`detector`: None where the stage goes on past faults that its requests share."""
        self._gate, self._detector = gate, detector
        self._refused: AuthenticationError | HaltedError | None = None
        self._answered, self._silent = False, 0
        self._open = 0
        self._landed: asyncio.Future[None] | None = None

    @property
    def reason(self) -> AuthenticationError | HaltedError | None:
        """Return why nothing more is asked, if there is a reason."""
        halt = self._gate.halt
        if self._detector is None and halt is not None and halt.code != LONG_WAIT.code:
            halt = None
        return self._refused or halt

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

    def answered(self, answers: Sequence[tuple[Keyed, AnyResponse]]) -> None:
        """Receive answers of the model."""
        self._answered = self._answered or bool(answers)
        if self._detector is not None:
            for keyed, answer in answers:
                self.refuse(self._detector.answered(keyed.key, keyed.request, answer))

    def failed(self, final: Sequence[tuple[Keyed, ModelError]]) -> None:
        """Receive failures that are not retried."""
        passing = [error for _, error in final if error.decision is RetryDecision.TRANSIENT]
        self._silent += len(passing)
        if passing and not self._answered and self._silent >= SILENT:
            self._refused = NEVER_ANSWERED.error(count=self._silent, failure=passing[-1])
        self.refuse(next((error for _, error in final if isinstance(error, AuthenticationError)), None))
        if self._detector is not None:
            for keyed, error in final:
                if error.decision is RetryDecision.PERMANENT:
                    self.refuse(self._detector.failed(keyed.request, error))
