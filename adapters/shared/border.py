"""Where scoring begins among the tokens of prompt and continuation encoded together: one rule for all adapters.

Prompt and continuation are encoded as one text, so the merges are those of the real text, and then cut: a token belongs
to the continuation as soon as one of its characters does. A token of both is thus scored whole, with the continuation.
Encoding the prompt alone could give another border: its last tokens may merge differently without what follows.

All continuations of a request are scored from the same token on: the earliest that belongs to any of them, or that they
do not share. After "Answer: ", " A" may be one token where a blank and "C" are two: the blank is then scored with both,
or the probability of "C" would be one given the blank, and that of "A" one without it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...core.contracts.errors import PermanentError


def first_beyond(ends: Sequence[int], border: int) -> int | None:
    """Return the number of the first token that reaches beyond the border; None if none does.

    Args:
        ends: Where each token ends in the text, in characters or bytes; 0 for one that was added in front.
        border: Length of the prompt in the same unit.
    """
    return next((number for number, end in enumerate(ends) if end > border), None)


def common_start(rows: Sequence[Sequence[Hashable]], firsts: Sequence[int]) -> int:
    """Return the number of the token from which on every continuation of a request is scored.

    Args:
        rows: The tokens of prompt and continuation, one row per continuation.
        firsts: Per row, the number of the first token that belongs to the continuation.
    """
    least = min(firsts)
    columns = zip(*(row[:least] for row in rows), strict=True)
    return next((number for number, column in enumerate(columns) if len(set(column)) > 1), least)


def check_continuations(continuations: Sequence[str]) -> None:
    """Refuse a request without continuations, or with an empty one.

    Raises:
        PermanentError: saying which.
    """
    if not continuations:
        raise PermanentError("the request has no continuation to score.", code="request.empty")
    if "" in continuations:
        number = list(continuations).index("")
        raise PermanentError(
            f"continuation {number} is empty, so it has no likelihood. Leave it out.", code="request.empty"
        )
