"""Every exception `prejudge` raises, in one tree.

PrejudgeError
├── UsageError                 the user can fix it: exit code 2, one line, no traceback
│   ├── UnknownNameError       an unknown study, model, adapter, metric or key
│   ├── MissingExtraError      an optional backend is not installed
│   ├── DataError              a user's file cannot be used (where, which value)
│   ├── ModelLoadError         a model cannot be loaded, or is of the wrong kind
│   ├── UnsupportedOperationError  the model does not support an operation of the study
│   ├── PluginError            a plugin breaks its contract
│   ├── BudgetError            a run spent its budget; it can be resumed
│   ├── HaltedError            a run met a fault that all its requests share; it can be resumed
│   │   └── UnfitError         the model cannot do the task; it can be resumed
│   ├── PendingError           a run's batches are with the provider; it can be resumed
│   └── StoreError             the store cannot be opened, read or written
│       └── ReplayMissError    requests of a `replay` have no stored answer
└── ModelError                 a model did not answer; carries a `RetryDecision`
    ├── RateLimitError         retry after the wait that the endpoint names
    ├── TransientError         retry after a back-off
    ├── PermanentError         this request will never be answered
    └── AuthenticationError    no request will be answered: the run stops at once

Each error has a `code` that stays the same when its message is reworded; `docs/errors.md` lists them.

Example:
    >>> import prejudge
    >>> try:
    ...     prejudge.plan("sutble-sai")
    ... except prejudge.errors.PrejudgeError as error:
    ...     print(error.code, dict(error.fields))
    unknown-study {'name': 'sutble-sai'}
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar

from .installing import install_line

MOST_NAMED = 40
"""Number of known names that a message lists."""
_OWNER = re.compile(r"(.*?)((?: (?:of|in|for|with) .*)?)$", re.DOTALL)
"""The unknown thing and its owner: `option`, ` of subtle-sai`."""


class RetryDecision(Enum):
    """What to do after a model failed to answer."""

    RATE_LIMIT = "rate_limit"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    AUTHENTICATION = "authentication"


class PrejudgeError(Exception):
    """Root of the tree: a message for people, a `code` and `fields` for programs.

    `raise DataError("... has no column 'text'.", code="data.column-missing", column="text")`. The default code is that
    of the class.
    """

    code: str = "error"
    """Stable name of the problem for programs, such as `data.column-missing`."""
    fields: Mapping[str, object] = MappingProxyType({})
    """Values in the message, by name; often empty."""
    listed: tuple[str, ...] = ()
    """The message in lines, where it lists something; a terminal shows these."""

    def __init__(self, *args: object, code: str | None = None, **fields: object) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code
        if fields:
            self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle without `__init__`: that of some errors makes a message from other arguments."""
        return restored, (type(self), self.args, self.__dict__)


E = TypeVar("E", bound=PrejudgeError)


def restored(kind: type[E], args: tuple[object, ...], values: Mapping[str, object]) -> E:
    """Return an error of a kind as it was: its message, and its attributes by name."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(values)
    return error


class UsageError(PrejudgeError):
    """Report an error that the user can fix: the problem, the value, the fix."""

    code = "usage"


class UnknownNameError(UsageError):
    """Report an unknown name, with the most similar known one.

    The kind may name the owner: `option of subtle-sai` gives "unknown option 'x' of subtle-sai". The code follows from
    the kind: `unknown-study` for a study, `unknown-option` for an option of a study. `meant` is the known name that is
    meant, if that is not the one spelt most alike.
    """

    code = "unknown-name"

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        hint: str = "",
        *,
        code: str | None = None,
        meant: str | None = None,
    ) -> None:
        self.kind, self.name, self.known, self.meant = kind, name, sorted(known), meant
        what, place = _OWNER.match(kind).groups()  # type: ignore[union-attr]  # it matches every text
        message = " ".join(filter(None, [f"unknown {what} {name!r}{place}.", self._mend(hint), hint]))
        super().__init__(message, code=code or f"unknown-{_slug(kind)}", name=name)

    def _mend(self, hint: str) -> str:
        near = nearest(self.name, self.known, 0.5) if self.meant is None else self.meant
        if near is not None:
            return f"Did you mean {near!r}?"
        if self.known:
            more = len(self.known) - MOST_NAMED
            return f"Known: {', '.join(self.known[:MOST_NAMED])}{f', and {more:,} more' if more > 0 else ''}."
        return "" if hint else "There is none."


class MissingExtraError(UsageError):
    """Report a backend that is not installed, with the pip line that installs it."""

    code = "missing-extra"

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        message = f"{what} needs packages that are not installed. Run: {install_line(extra)}"
        super().__init__(message, extra=extra)


class DataError(UsageError):
    """Report a user's file that cannot be used."""

    code = "data"


class ModelLoadError(UsageError):
    """Report a model that cannot be loaded, or that is of the wrong kind."""

    code = "model-load"


class UnsupportedOperationError(UsageError):
    """Report an operation that a model cannot do."""

    code = "unsupported-operation"


class PluginError(UsageError):
    """Report a plugin that breaks its contract; `plugin` names it."""

    code = "plugin"

    def __init__(self, plugin: str, problem: str, *, code: str | None = None, **fields: object) -> None:
        self.plugin = plugin
        super().__init__(f"plugin {plugin!r}: {problem}", code=code, **fields)


class BudgetError(UsageError):
    """Report a budget that is spent; all answers are stored."""

    code = "budget-spent"


class HaltedError(UsageError):
    """Report a fault that all requests of a run meet, so that it was stopped; all answers are stored."""

    code = "run.halted"


class UnfitError(HaltedError):
    """Report a model that answers fewer than half of the questions of a stage, so that the run was stopped."""

    code = "run.unfit"


class PendingError(UsageError):
    """Report a run that was left while its batches are with the provider; it can be resumed."""

    code = "batch.pending"


class StoreError(UsageError):
    """Report a store that cannot be opened, read or written."""

    code = "store"


class ReplayMissError(StoreError):
    """Report a replay that met `misses` requests without a stored answer."""

    code = "replay-miss"

    def __init__(self, misses: int, total: int) -> None:
        self.misses, self.total = misses, total
        super().__init__(
            f"replay: {misses} of {total} requests have no stored answer. "
            "Run without --mode replay to ask the model for them."
        )


class ModelError(PrejudgeError):
    """Report a model that did not answer; `retry_after` is the wait in seconds that the endpoint named, if any."""

    code = "model"
    decision = RetryDecision.PERMANENT

    def __init__(
        self, message: str = "", retry_after: float | None = None, *, code: str | None = None, **fields: object
    ) -> None:
        self.retry_after = retry_after
        super().__init__(message, code=code, **fields)


class RateLimitError(ModelError):
    """Report a rate limit."""

    code = "rate-limit"
    decision = RetryDecision.RATE_LIMIT


class TransientError(ModelError):
    """Report a failure that may pass: a time-out, a dropped connection, a server error."""

    code = "transient"
    decision = RetryDecision.TRANSIENT


class PermanentError(ModelError):
    """Report a request that will never be answered as it stands."""

    code = "permanent"
    decision = RetryDecision.PERMANENT


class AuthenticationError(ModelError):
    """Report a refused key or account; no request can succeed."""

    code = "authentication"
    decision = RetryDecision.AUTHENTICATION


def nearest(name: str, known: Iterable[str], cutoff: float) -> str | None:
    """Return the known name that is spelt most alike, if it is at least so similar (from 0 to 1)."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def _slug(kind: str) -> str:
    """Return the name of a kind in a code: `option` for `option of subtle`."""
    return re.sub(r"[^a-z0-9]+", "-", _OWNER.sub(r"\1", kind).lower()).strip("-")
