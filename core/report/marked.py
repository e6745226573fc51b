"""What differs between texts side by side: the words that the first has and another has not, and the reverse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

Pieces = tuple[tuple[str, bool], ...]
"""Parts of a text, and whether each differs."""
MOST_WORDS = 2_000
"""Words of a text that are compared; longer texts are shown without marks."""
MOST_PAIRS = 40_000
"""Pairs of equal words of two texts that are compared one by one: models in a loop say one word a thousand times. With
more, all between the first and the last difference is marked."""
_WORDS = re.compile(r"\s{2,}|[^\S ]| ?(?:\d+(?:[.,]\d+)*|\w+|[^\w\s])| ")


def marked(texts: Sequence[str]) -> list[Pieces]:
    """Return each text in pieces: those of the first that any other lacks, and those of the others that it lacks."""
    if len(set(texts)) < 2:
        return [((text, False),) for text in texts]
    words = [_WORDS.findall(text) for text in texts]
    if max(map(len, words)) > MOST_WORDS:
        return [((text, False),) for text in texts]
    # A word is the same with a space before it.
    (first, *others), bare = words, [[word.removeprefix(" ") or word for word in own] for own in words]
    lacking = [False] * len(first)
    result: list[Pieces] = []
    for other, own_bare in zip(others, bare[1:], strict=True):
        own = [False] * len(other)
        for a, b, c, d in _differing(bare[0], own_bare):
            lacking[a:b] = [True] * (b - a)
            own[c:d] = [True] * (d - c)
        result.append(_pieces(other, own))
    return [_pieces(first, lacking), *result]


def _differing(first: Sequence[str], other: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return the spans of two texts that differ."""
    short = min(len(first), len(other))
    start = next((n for n in range(short) if first[n] != other[n]), short)
    end = next((n for n in range(short - start) if first[-1 - n] != other[-1 - n]), short - start)
    a, b = first[start : len(first) - end], other[start : len(other) - end]
    counts = Counter(b)
    if sum(count * counts[word] for word, count in Counter(a).items()) > MOST_PAIRS:
        return [(start, start + len(a), start, start + len(b))]
    spans = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(start + i, start + j, start + k, start + m) for kind, i, j, k, m in spans if kind != "equal"]


def _pieces(words: Sequence[str], differs: Sequence[bool]) -> Pieces:
    pieces: list[tuple[str, bool]] = []
    for word, is_other in zip(words, differs, strict=True):
        if pieces and (pieces[-1][1] == is_other):
            pieces[-1] = (pieces[-1][0] + word, is_other)
        else:
            pieces.append((word, is_other))
    return tuple(pieces)
