"""When a stage stops: its requests all meet the same fault (`FailureDetector`), or the model refuses all (`Stopping`).

Whether the model can do the task at all is watched by `fitness.FitnessGuard`, which the detector hands every answer.
A fault of single prompts never stops a run, and a refusal is an answer, not a fault. Counted are distinct prompts that
this run asked; samples, seeds and further attempts of one prompt are one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..contracts import Trial
from ..contracts.canonical import encode, question_of
from ..contracts.errors import AuthenticationError, HaltedError, ModelError, RetryDecision
from ..contracts.records import AnyRequest, AnyResponse, Generate, Generation, Text
from ..fitness import is_cut
from ..fitness.words import SHOWN, short
from .asking import Keyed
from .ending import ALL_EMPTY, ALL_FAILING, LONG_WAIT, NEVER_ANSWERED, SEED_REFUSED, Stop
from .limiter import Limiter
from .reading import as_read

LOG = logging.getLogger(__name__)
ERRORS, EMPTY = 20, 20
"""Prompts in a row that fail with one error, or are answered with no text because the limit of tokens was reached."""
SILENT = 10
"""Number of failed requests, without a single answer, after which the model is considered unavailable."""

See = Callable[[Trial, AnyRequest, AnyResponse], HaltedError | None]


class FailureDetector:
    """Watches the answers of one stage. What it receives returns the reason to stop, once there is one."""

    def __init__(self, see: See | None = None) -> None:
        """`see`: receives a trial with its answer, and returns the reason to stop; None: nothing is read."""
        self._see = see
        self._trials: dict[bytes, Trial] = {}
        self._empty: dict[bytes, str] = {}
        """By prompt."""
        self._failed: dict[bytes, str] = {}
        self._error = ""

    def expect(self, trials: Mapping[bytes, Trial]) -> None:
        """Receive the trials that keys answer, before they are asked."""
        if self._see is not None:
            self._trials |= trials

    def forget(self, keys: Iterable[bytes]) -> None:
        """Drop the trials of keys that were asked or found in the store, so that a long run holds those of a window."""
        for key in keys:
            self._trials.pop(key, None)

    def failed(self, request: AnyRequest, error: ModelError) -> HaltedError | None:
        """Receive a failure that no retry mends."""
        if error.code == SEED_REFUSED.code:
            # It meets every repeat, and those alone: first draws in between would end a row of equal failures.
            return SEED_REFUSED.error(failure=error)
        # Numbers in a message, such as a count of tokens, belong to the prompt.
        if (message := re.sub(r"\d+", "#", f"{error.code} {error}")) != self._error:
            self._error, self._failed = message, {}
        self._failed.setdefault(_prompt(request), str(error))
        return _stopped(ALL_FAILING, self._failed.values()) if len(self._failed) >= ERRORS else None

    def answered(self, key: bytes, request: AnyRequest, response: AnyResponse) -> HaltedError | None:
        """Receive an answer of the model."""
        self._failed.clear()
        response = as_read(response)
        trial = self._trials.pop(key, None)
        unfit = None if trial is None or self._see is None else self._see(trial, request, response)
        if response.status != "ok":
            return unfit
        if _is_cut_off(response):
            self._empty.setdefault(_prompt(request), _last_text(request))
        else:
            self._empty.clear()
        return unfit or (_stopped(ALL_EMPTY, self._empty.values()) if len(self._empty) >= EMPTY else None)


def _stopped(reason: Stop, prompts: Iterable[str]) -> HaltedError:
    """Return the error of a reason that so many prompts share, with the first of them as examples."""
    texts = list(prompts)
    shown = [f"({number}) {short(text)}" for number, text in enumerate(texts[:SHOWN], 1)]
    return reason.error(count=len(texts), examples=f"The first {len(shown)}: {' '.join(shown)}.")


def _is_cut_off(response: AnyResponse) -> bool:
    return isinstance(response, Generation) and not response.text.strip() and is_cut(response)


def _prompt(request: AnyRequest) -> bytes:
    return encode(question_of(request))


def _last_text(request: AnyRequest) -> str:
    if not isinstance(request, Generate):
        return ""
    return next((part.text for part in reversed(request.messages[-1].parts) if isinstance(part, Text)), "an image")


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
