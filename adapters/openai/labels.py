"""The label in an answer in words, by a strict rule: the whole answer is one label, or no label is read."""

from __future__ import annotations

from collections.abc import Sequence

RULE_VERSION = 1
"""Raised whenever the rule reads other labels; part of an identity."""
_MARKS = "\"'`*_.\u201c\u201d\u2018\u2019 \t\r\n"


def read_label(text: str, labels: Sequence[str]) -> str | None:
    """Return the one label that an answer is, or None.

    Blanks, quotation marks, asterisks, underscores, backticks and full stops at both ends and case are
    ignored. Everything else counts: "not positive", "positive or negative" and "Label: positive" are no label.
    """
    bare = bare_label(text)
    return next((label for label in labels if bare and bare_label(label) == bare), None)


def bare_label(text: str) -> str:
    """Return the part of a text that the rule compares."""
    return text.strip(_MARKS).casefold()


def one_hot(label: str, labels: Sequence[str]) -> dict[str, float]:
    """Return 1 for a label and 0 for the others."""
    return {name: float(name == label) for name in labels}
