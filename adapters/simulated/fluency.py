"""What `simulated` knows of grammar: which small words cannot follow each other. It serves `prejudge doctor`.

No planted bias is touched. A sentence's score counts only the words that its pair shares, and so counts the same for
both; a continuation's counts only where no listed word stands, where nothing is planted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

CLASH = 8.0
"""What one clash costs, in nats: more than ease and noise make up for."""
_ARTICLES = frozenset({"a", "an", "the"})
_PREPOSITIONS = frozenset({"at", "by", "down", "for", "from", "in", "of", "on", "to", "with"})
_VERBS = frozenset({"am", "are", "is", "was", "were"})
_SUBJECTS = frozenset({"he", "i", "she", "they", "we"})
_UNFIT = {
    **dict.fromkeys(_ARTICLES, _ARTICLES | _PREPOSITIONS | _VERBS | _SUBJECTS),
    **dict.fromkeys(_PREPOSITIONS, _VERBS | _SUBJECTS),
}
_NOTHING: frozenset[str] = frozenset()


def clashes(words: Sequence[str]) -> int:
    """Count the neighbours of which the second cannot follow the first: `the of`, `in they`."""
    return sum(second in _UNFIT.get(first, _NOTHING) for first, second in pairwise(map(str.lower, words)))
