"""What differs between texts side by side: the words that the first has and another has not, and the reverse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

Pieces = tuple[tuple[str, bool], ...]
"""Parts of a text, and whether each differs."""
MOST_WORDS = 2_000
"""Words of a text that are compared; longer texts are shown without marks, and the page says so."""
_WORDS = re.compile(r"\s+|\d+(?:[.,]\d+)*|\w+|[^\w\s]", re.UNICODE)


def marked(texts: Sequence[str]) -> list[Pieces]:
    """Return each text in pieces: those of the first that any other lacks, and those of the others that it lacks."""
    if len(set(texts)) < 2:
        return [((text, False),) for text in texts]
    words = [_WORDS.findall(text) for text in texts]
    if max(map(len, words)) > MOST_WORDS:
        return [((text, False),) for text in texts]
    first, *others = words
    lacking = [False] * len(first)
    result: list[Pieces] = []
    for other in others:
        own = [False] * len(other)
        for kind, a, b, c, d in SequenceMatcher(None, first, other, autojunk=False).get_opcodes():
            if kind != "equal":
                lacking[a:b] = [True] * (b - a)
                own[c:d] = [True] * (d - c)
        result.append(_pieces(other, own))
    return [_pieces(first, lacking), *result]


def _pieces(words: Sequence[str], differs: Sequence[bool]) -> Pieces:
    pieces: list[tuple[str, bool]] = []
    for word, is_other in zip(words, differs, strict=True):
        if pieces and (pieces[-1][1] == is_other):
            pieces[-1] = (pieces[-1][0] + word, is_other)
        else:
            pieces.append((word, is_other))
    return tuple(pieces)
