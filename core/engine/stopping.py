"""When a stage stops: its requests all meet the same fault (`FailureDetector`), or the model refuses all (`Stopping`).

A fault of single prompts never stops a run, and a refusal is an answer, not a fault. Counted are distinct prompts that
this run asked; samples, seeds and further attempts of one prompt are one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..contracts import Trial, Unreadable
from ..contracts.canonical import encode, question_of
from ..contracts.errors import AuthenticationError, HaltedError, ModelError, RetryDecision
from ..contracts.records import AnyRequest, AnyResponse, Generate, Generation, Scalar, Text
from .asking import Keyed
from .ending import ALL_EMPTY, ALL_FAILING, ALL_UNREADABLE, LONG_WAIT, NEVER_ANSWERED, SEED_REFUSED, Stop
from .limiter import Limiter
from .reading import CUT_OFF, as_read

LOG = logging.getLogger(__name__)
ERRORS, EMPTY, UNREADABLE = 20, 20, 100
"""Prompts in a row that fail with one error, or are answered with no text because the limit of tokens was reached; and
first answers of a stage of which none is readable."""
SILENT = 10
"""Number of failed requests, without a single answer, after which the model is considered unavailable."""
SHOWN, SHOWN_CHARACTERS = 3, 200
"""Examples in the message, and characters of each."""

Read = Callable[[Mapping[str, Scalar], AnyResponse], Mapping[str, Scalar] | Unreadable]


class FailureDetector:
    """Watches the answers of one stage. What it receives returns the reason to stop, once there is one."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._reading = True
        """Whether no answer of the stage was read yet."""
        self._trials: dict[bytes, Trial] = {}
        self._unreadable: dict[bytes, tuple[Trial, str]] = {}
        """By prompt: a trial of it, and the answer."""
        self._empty: dict[bytes, str] = {}
        self._failed: dict[bytes, str] = {}
        self._error = ""

    def expect(self, trials: Mapping[bytes, Trial]) -> None:
        """Receive the trials that keys answer, before they are asked; needed until an answer of the stage was read."""
        if self._reading:
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
        if response.status != "ok":
            return None
        if _is_cut_off(response):
            self._empty.setdefault(_prompt(request), _last_text(request))
        else:
            self._empty.clear()
        trial = self._trials.pop(key, None)
        unreadable = None if trial is None else self._try_reading(trial, request, response)
        return _stopped(ALL_EMPTY, self._empty.values()) if len(self._empty) >= EMPTY else unreadable

    def _try_reading(self, trial: Trial, request: AnyRequest, response: AnyResponse) -> HaltedError | None:
        try:
            outcome = self._read(trial.factors, response)
        except Exception as error:
            # A defect of the reader is reported when the run is scored; it costs no answer.
            LOG.debug("the reader raised", exc_info=error)
            outcome = {}
        if not isinstance(outcome, Unreadable):
            self._reading, self._trials, self._unreadable = False, {}, {}
            return None
        self._unreadable.setdefault(_prompt(request), (trial, f"{_shown(response)} ({outcome.reason})"))
        if len(self._unreadable) < UNREADABLE or not _is_spread([t.factors for t, _ in self._unreadable.values()]):
            return None
        return _stopped(ALL_UNREADABLE, [answer for _, answer in self._unreadable.values()])


def _shown(response: AnyResponse) -> str:
    """Return an answer for a message; where all of it is reasoning, the end of that and which setting may be wrong."""
    if not isinstance(response, Generation):
        return "''"
    if response.text.strip() or not response.reasoning or response.finish_reason.lower() in CUT_OFF:
        return repr(_short(response.text))
    end = _short(response.reasoning[-SHOWN_CHARACTERS // 2 :])
    return f"'' with {end!r} in the reasoning field; see --reasoning-parser of the server and enable_thinking"


def _stopped(reason: Stop, prompts: Iterable[str]) -> HaltedError:
    """Return the error of a reason that so many prompts share, with the first of them as examples."""
    texts = list(prompts)
    shown = [f"({number}) {_short(text)}" for number, text in enumerate(texts[:SHOWN], 1)]
    return reason.error(count=len(texts), examples=f"The first {len(shown)}: {' '.join(shown)}.")


def _is_cut_off(response: AnyResponse) -> bool:
    if not isinstance(response, Generation) or response.text.strip():
        return False
    return response.finish_reason.lower() in CUT_OFF


def _is_spread(factors: Sequence[Mapping[str, Scalar]]) -> bool:
    """Return whether trials are of more than one cell: a factor that does not merely number them has two values."""
    levels = ({row.get(name) for row in factors} for name in factors[0])
    return any(2 <= len(values) <= len(factors) // 2 for values in levels)


def _prompt(request: AnyRequest) -> bytes:
    return encode(question_of(request))


def _last_text(request: AnyRequest) -> str:
    if not isinstance(request, Generate):
        return ""
    return next((part.text for part in reversed(request.messages[-1].parts) if isinstance(part, Text)), "an image")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 3]}..."


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
