"""Where a continuation begins among the tokens of prompt and continuation encoded together: one rule for all adapters.

Prompt and continuation are encoded as one text, so the merges are those of the real text, and then cut: a token belongs
to the continuation as soon as one of its characters does. A token of both is thus scored whole, with the continuation.
Encoding the prompt alone could give another border: its last tokens may merge differently without what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.contracts.errors import PermanentError


def first_beyond(ends: Sequence[int], border: int) -> int | None:
    """Return the number of the first token that reaches beyond the border; None if none does.

    Args:
        ends: Where each token ends in the text, in characters or bytes; 0 for one that was added in front.
        border: Length of the prompt in the same unit.
    """
    return next((number for number, end in enumerate(ends) if end > border), None)


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
