"""What a reader returns: a value with the way it was read, or one of a closed list of reasons why there is none."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar, get_args

import msgspec

from ..contracts import Unreadable

T = TypeVar("T")
How = Literal["alone", "announced", "stated", "named", "in a field", "filled in", "by elimination", "exact"]
"""`alone`: nothing but the value. `announced`: after `Answer:`, in a box, a tag or JSON. `stated`: in a clause that
says no more than that it is the answer. `named`: the only one that the text names. `filled in`: the sentence with the
option."""
Reason = Literal[
    "an empty answer",
    "cut off",
    "echo of the question",
    "several answers",
    "a denied answer",
    "an answer among other words",
    "other words",
    "out of range",
    "no number",
    "a number and other words",
    "no such field",
    "a field without a value",
    "a refusal",
    "another letter",
    "another form",
]
REASONS: tuple[str, ...] = get_args(Reason)


class Value(msgspec.Struct, Generic[T], frozen=True):
    """A value that was read.

    Example:
        >>> from prejudge.core.reading.results import Value
        >>> Value("a", "announced").value
        'a'
    """

    value: T
    how: How


class Unread(msgspec.Struct, frozen=True):
    """An answer without a value, and why.

    Example:
        >>> from prejudge.core.reading.results import Unread
        >>> Unread("cut off").unreadable().reason
        'cut off'
    """

    reason: Reason

    def unreadable(self) -> Unreadable:
        """Return the reason in the form that a stage returns."""
        return Unreadable(self.reason)
