"""Where a continuation begins among the tokens of context and continuation encoded together.

llama.cpp gives no offsets, so they are read off the bytes each token stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.contracts.errors import PermanentError
from ..shared.border import first_beyond


def cut(pieces: Sequence[bytes], context: bytes, whole: bytes) -> tuple[list[int], int]:
    """Return where each token ends, in bytes, and the number of the first that reaches past the context.

    The rule of the border is that of all adapters (`border.py`), in bytes.

    Args:
        pieces: the bytes of each token of `whole`.
        context: the context.
        whole: context and continuation.

    Raises:
        PermanentError: the tokens do not give the text back, so that the boundary cannot be found.
    """
    place = 0
    ends = []
    for piece in pieces:
        # SentencePiece vocabularies put a space of their own before a text and after each special token.
        own = not whole.startswith(piece, place) and piece.startswith(b" ")
        piece = piece[1:] if own else piece
        if not whole.startswith(piece, place):
            break
        place += len(piece)
        ends.append(place)
    first = first_beyond(ends, len(context))
    if place != len(whole) or first is None:
        raise PermanentError(
            f"the tokenizer does not give {whole.decode()[:60]!r} back as it was, so where the continuation begins is "
            "unknown. Write the text without unusual characters.",
            code="request.border",
        )
    return ends, first
