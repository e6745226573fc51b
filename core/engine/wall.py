"""`Wall`: stops a stage whose requests all meet the same fault, before a whole study is spent on it.

A fault of single prompts never stops a run, and a refusal is an answer, not a fault. Counted are distinct prompts that
this run asked; samples, seeds and further attempts of one prompt are one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from ..contracts import Trial, Unreadable
from ..contracts.canonical import encode, question_of
from ..contracts.errors import HaltedError, ModelError
from ..contracts.records import AnyRequest, AnyResponse, Generate, Generation, Scalar, Text

LOG = logging.getLogger(__name__)
ERRORS, EMPTY, UNREADABLE = 20, 20, 100
"""Prompts in a row that fail with one error, or are answered with no text because the limit of tokens was reached; and
first answers of a stage of which none is readable."""
SEED = "endpoint.seed"
"""Code of the failure of a request whose seed an endpoint refuses."""
SHOWN, SHOWN_CHARACTERS = 3, 200
"""Examples in the message, and characters of each."""
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens"})
"""Finish reasons of an answer that reached its limit of tokens."""

Read = Callable[[Mapping[str, Scalar], AnyResponse], Mapping[str, Scalar] | Unreadable]


class Wall:
    """Watches the answers of one stage; `halt` is the reason to stop, once there is one."""

    def __init__(self, read: Read) -> None:
        self.halt: HaltedError | None = None
        self._read = read
        self._watching = True
        self._trials: dict[bytes, Trial] = {}
        self._unread: dict[bytes, tuple[Trial, str]] = {}
        self._empty: dict[bytes, str] = {}
        self._failed: dict[bytes, str] = {}
        self._error = ""

    def expect(self, trials: Mapping[bytes, Trial]) -> None:
        """Receive the trials that keys answer, before they are asked; needed until an answer of the stage was read."""
        if self._watching:
            self._trials |= trials

    def forget(self, keys: Iterable[bytes]) -> None:
        """Drop the trials of keys that were asked or found in the store, so that a long run holds those of a window."""
        for key in keys:
            self._trials.pop(key, None)

    def failed(self, request: AnyRequest, error: ModelError) -> None:
        """Receive a failure that no retry mends."""
        if error.code == SEED:
            # It meets every repeat, and those alone: first draws in between would end a row of equal failures.
            self.halt = self.halt or HaltedError(f"the run was stopped: {error}", code=SEED)
        # Numbers in a message, such as a count of tokens, belong to the prompt.
        if (told := re.sub(r"\d+", "#", f"{error.code} {error}")) != self._error:
            self._error, self._failed = told, {}
        self._failed.setdefault(_prompt(request), str(error))
        if len(self._failed) >= ERRORS:
            what = f"{len(self._failed)} prompts in a row failed with the same error"
            self._stop(what, self._failed.values(), "Mend what the error names.", "run.all-failing")

    def answered(self, key: bytes, request: AnyRequest, response: AnyResponse) -> None:
        """Receive an answer of the model."""
        self._failed.clear()
        if response.status != "ok":
            return
        if _is_cut_off(response):
            self._empty.setdefault(_prompt(request), _last_text(request))
        else:
            self._empty.clear()
        if len(self._empty) >= EMPTY:
            what = f"{len(self._empty)} prompts in a row got an answer without text that ended at its limit of tokens"
            mend = "Raise max_tokens; a model that reasons needs room for that too (answer_room in its entry)."
            self._stop(what, self._empty.values(), mend, "run.all-empty")
        if (trial := self._trials.pop(key, None)) is not None:
            self._look(trial, request, response)

    def _look(self, trial: Trial, request: AnyRequest, response: AnyResponse) -> None:
        try:
            outcome = self._read(trial.factors, response)
        except Exception as error:
            # A defect of the reader is reported when the run is scored; it costs no answer.
            LOG.debug("the reader raised", exc_info=error)
            outcome = {}
        if not isinstance(outcome, Unreadable):
            self._watching, self._trials, self._unread = False, {}, {}
            return
        said = response.text if isinstance(response, Generation) else ""
        self._unread.setdefault(_prompt(request), (trial, f"{_short(said)!r} ({outcome.reason})"))
        if len(self._unread) >= UNREADABLE and _is_spread([found.factors for found, _ in self._unread.values()]):
            what = f"none of the first {len(self._unread)} answers could be read"
            mend = "Ask in another way, or take a model that follows instructions."
            self._stop(what, [told for _, told in self._unread.values()], mend, "run.all-unreadable")

    def _stop(self, what: str, examples: Iterable[str], mend: str, code: str) -> None:
        shown = [f"({number}) {_short(one)}" for number, one in enumerate(islice(examples, SHOWN), 1)]
        said = f"the run was stopped: {what}. The first {len(shown)}: {' '.join(shown)}. {mend}"
        self.halt = self.halt or HaltedError(f"{said} To ask the rest all the same: --keep-going.", code=code)


def _is_cut_off(response: AnyResponse) -> bool:
    if not isinstance(response, Generation) or response.text.strip():
        return False
    return response.finish_reason.lower() in _LENGTH


def _is_spread(factors: Sequence[Mapping[str, Scalar]]) -> bool:
    """Return whether trials are of more than one cell: a factor that does not merely number them has two values."""
    values = ({one.get(name) for one in factors} for name in factors[0])
    return any(2 <= len(found) <= len(factors) // 2 for found in values)


def _prompt(request: AnyRequest) -> bytes:
    return encode(question_of(request))


def _last_text(request: AnyRequest) -> str:
    if not isinstance(request, Generate):
        return ""
    return next((part.text for part in reversed(request.messages[-1].parts) if isinstance(part, Text)), "an image")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 3]}..."
