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
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum

MOST_NAMED = 40
"""How many known names a message lists."""


class RetryDecision(Enum):
    """Say what to do after a model failed to answer."""

    RATE_LIMIT = "rate_limit"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    AUTHENTICATION = "authentication"


class PrejudgeError(Exception):
    """Root of the tree."""


class UsageError(PrejudgeError):
    """Report something a person can mend: what is wrong, which value, how to mend it."""


class UnknownNameError(UsageError):
    """Report a name nobody registered, with the nearest known one."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        super().__init__(" ".join(filter(None, [f"unknown {kind} {name!r}.", self._mend(hint), hint])))

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

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs packages that are not installed. Run: pip install 'prejudge[{extra}]'")


class DataError(UsageError):
    """Report a user's file that cannot be used."""


class ModelLoadError(UsageError):
    """Report a model that cannot be loaded, or that is of the wrong kind."""


class UnsupportedOperationError(UsageError):
    """Report an operation that a model cannot do."""


class PluginError(UsageError):
    """Report a plugin that breaks its contract; `plugin` names it."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin = plugin
        super().__init__(f"plugin {plugin!r}: {problem}")


class BudgetError(UsageError):
    """Report a budget that is spent; what was answered is kept."""


class StoreError(UsageError):
    """Report a store that cannot be opened, read or written."""


class ReplayMissError(StoreError):
    """Report a replay that met `misses` requests without a stored answer."""

    def __init__(self, misses: int, total: int) -> None:
        self.misses, self.total = misses, total
        super().__init__(
            f"replay: {misses} of {total} requests have no stored answer. "
            "Run without --mode replay to ask the model for them."
        )


class ModelError(PrejudgeError):
    """Report a model that did not answer."""

    decision = RetryDecision.PERMANENT


class RateLimitError(ModelError):
    """Report a rate limit; `retry_after` is the endpoint's own wait in seconds, if it named one."""

    decision = RetryDecision.RATE_LIMIT

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class TransientError(ModelError):
    """Report a failure that may pass: a time-out, a dropped connection, a server error."""

    decision = RetryDecision.TRANSIENT


class PermanentError(ModelError):
    """Report a request that will never be answered as it stands."""

    decision = RetryDecision.PERMANENT


class AuthenticationError(ModelError):
    """Report a refused key or account; no further request can succeed."""

    decision = RetryDecision.AUTHENTICATION
