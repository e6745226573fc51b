"""Errors of rows that are not as they were stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..contracts.errors import DataError
from .evidence import answer_digest

UNREADABLE = (TypeError, ValueError, AttributeError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What values of other types, texts that are not unicode, and broken or deeply nested JSON raise."""


class DamageError(DataError):
    """A row of a store is not as it was stored."""

    problem = ""
    """Which row, and what is wrong with it."""


def damaged(what: str, problem: str) -> DamageError:
    """Return the error of a damaged row of a store."""
    mend = (
        "`prejudge cache verify` names every damaged row; `prejudge cache repair --from` restores them; "
        "`prejudge score --unproved` shows the numbers with a mark."
    )
    error = DamageError(f"the store is damaged: {what}: {problem}. {mend}", code="store.row-damaged")
    error.problem = f"{what}: {problem}"
    return error


def answer_fault(answer: Sequence[Any], digest: Any) -> str | None:
    """Return what is wrong with an answer whose columns, `evidence.ANSWER`, are not those of its digest, if any is."""
    try:
        sound = answer_digest(*answer) == digest
    except UNREADABLE:
        sound = False
    return None if sound else "its response, status, tokens, latency or time do not match its digest"


def ensure_answer(number: int, answer: Sequence[Any], digest: Any) -> None:
    """Refuse an answer whose columns, `evidence.ANSWER`, are not those of its digest.

    Raises:
        DataError: naming the exchange.
    """
    if (problem := answer_fault(answer, digest)) is not None:
        raise damaged(f"exchange {number}", problem)
