"""`FailureDetector`: stops a stage whose requests all meet the same fault, before a whole study is spent on it.

A fault of single prompts never stops a run, and a refusal is an answer, not a fault. Counted are distinct prompts that
this run asked; samples, seeds and further attempts of one prompt are one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..contracts import Trial, Unreadable
from ..contracts.canonical import encode, question_of
from ..contracts.errors import HaltedError, ModelError
from ..contracts.records import AnyRequest, AnyResponse, Generate, Generation, Scalar, Text
from .stops import ALL_EMPTY, ALL_FAILING, ALL_UNREADABLE, SEED_REFUSED, Stop

LOG = logging.getLogger(__name__)
ERRORS, EMPTY, UNREADABLE = 20, 20, 100
"""Prompts in a row that fail with one error, or are answered with no text because the limit of tokens was reached; and
first answers of a stage of which none is readable."""
SHOWN, SHOWN_CHARACTERS = 3, 200
"""Examples in the message, and characters of each."""
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens"})
"""Finish reasons of an answer that reached its limit of tokens."""

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
        text = response.text if isinstance(response, Generation) else ""
        self._unreadable.setdefault(_prompt(request), (trial, f"{_short(text)!r} ({outcome.reason})"))
        if len(self._unreadable) < UNREADABLE or not _is_spread([t.factors for t, _ in self._unreadable.values()]):
            return None
        return _stopped(ALL_UNREADABLE, [answer for _, answer in self._unreadable.values()])


def _stopped(reason: Stop, prompts: Iterable[str]) -> HaltedError:
    """Return the error of a reason that so many prompts share, with the first of them as examples."""
    texts = list(prompts)
    shown = [f"({number}) {_short(text)}" for number, text in enumerate(texts[:SHOWN], 1)]
    return reason.error(count=len(texts), examples=f"The first {len(shown)}: {' '.join(shown)}.")


def _is_cut_off(response: AnyResponse) -> bool:
    if not isinstance(response, Generation) or response.text.strip():
        return False
    return response.finish_reason.lower() in _LENGTH


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
