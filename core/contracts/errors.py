"""Every exception `prejudge` raises, in one tree.

PrejudgeError
├── UsageError                 a person can mend it: exit code 2, one line, no traceback
│   ├── UnknownNameError       a study, model, adapter, metric or key nobody registered
│   ├── MissingExtraError      an optional backend is not installed
│   ├── DataError              a user's file cannot be used (where, which value)
│   ├── ModelLoadError         a model cannot be loaded, or is of the wrong kind
│   ├── UnsupportedOperationError  the model cannot do what the study asks
│   ├── PluginError            a plugin breaks its contract
│   ├── BudgetError            a run spent what it may; it can be resumed
│   └── StoreError             the store cannot be opened, read or written
│       └── ReplayMissError    `replay` met requests that were never answered
└── ModelError                 a model did not answer; carries a `RetryDecision`
    ├── RateLimitError         ask again after the wait the endpoint names
    ├── TransientError         ask again after a back-off
    ├── PermanentError         this request will never be answered
    └── AuthenticationError    nothing will be answered: the run stops at once

Each error has a `code` that stays the same when its message is reworded; `docs/errors.md` lists them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

MOST_NAMED = 40
"""How many known names a message lists."""
_OWNER = re.compile(r"(.*?)((?: (?:of|in|for|with) .*)?)$", re.DOTALL)
"""What is unknown, and of what: `option`, ` of subtle-sai`."""


class RetryDecision(Enum):
    """Say what to do after a model failed to answer."""

    RATE_LIMIT = "rate_limit"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    AUTHENTICATION = "authentication"


class PrejudgeError(Exception):
    """Root of the tree: a message for people, a `code` and `fields` for programs.

    `raise DataError("... has no column 'text'.", code="data.column-missing", column="text")`; without a code, an error
    has that of its class.
    """

    code: str = "error"
    """What is wrong, in one word that a program may rely on, such as `data.column-missing`."""
    fields: Mapping[str, object] = MappingProxyType({})
    """Values the message is about, by name; often empty."""

    def __init__(self, *args: object, code: str | None = None, **fields: object) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code
        if fields:
            self.fields = fields


class UsageError(PrejudgeError):
    """Report something a person can mend: what is wrong, which value, how to mend it."""

    code = "usage"


class UnknownNameError(UsageError):
    """Report a name nobody registered, with the nearest known one.

    The kind may say where: `option of subtle-sai` gives "unknown option 'x' of subtle-sai". The code follows from it:
    `unknown-study` for a study, `unknown-option` for an option of a study.
    """

    code = "unknown-name"

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "", *, code: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        what, place = _OWNER.match(kind).groups()  # type: ignore[union-attr]  # it matches every text
        message = " ".join(filter(None, [f"unknown {what} {name!r}{place}.", self._mend(hint), hint]))
        super().__init__(message, code=code or f"unknown-{_slug(kind)}", name=name)

    def _mend(self, hint: str) -> str:
        near = difflib.get_close_matches(self.name, self.known, n=1, cutoff=0.5)
        if near:
            return f"Did you mean {near[0]!r}?"
        if self.known:
            more = len(self.known) - MOST_NAMED
            return f"Known: {', '.join(self.known[:MOST_NAMED])}{f', and {more:,} more' if more > 0 else ''}."
        return "" if hint else "There is none."


class MissingExtraError(UsageError):
    """Report a backend that is not installed, with the pip line that installs it."""

    code = "missing-extra"

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        message = f"{what} needs packages that are not installed. Run: pip install 'prejudge[{extra}]'"
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
    """Report a budget that is spent; what was answered is kept."""

    code = "budget-spent"


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
    """Report a model that did not answer."""

    code = "model"
    decision = RetryDecision.PERMANENT


class RateLimitError(ModelError):
    """Report a rate limit; `retry_after` is the endpoint's own wait in seconds, if it named one."""

    code = "rate-limit"
    decision = RetryDecision.RATE_LIMIT

    def __init__(
        self, message: str, retry_after: float | None = None, *, code: str | None = None, **fields: object
    ) -> None:
        self.retry_after = retry_after
        super().__init__(message, code=code, **fields)


class TransientError(ModelError):
    """Report a failure that may pass: a time-out, a dropped connection, a server error."""

    code = "transient"
    decision = RetryDecision.TRANSIENT


class PermanentError(ModelError):
    """Report a request that will never be answered as it stands."""

    code = "permanent"
    decision = RetryDecision.PERMANENT


class AuthenticationError(ModelError):
    """Report a refused key or account; no further request can succeed."""

    code = "authentication"
    decision = RetryDecision.AUTHENTICATION


def _slug(kind: str) -> str:
    """Return what a kind is called in a code: `option of subtle` is an `option`."""
    return re.sub(r"[^a-z0-9]+", "-", _OWNER.sub(r"\1", kind).lower()).strip("-")
