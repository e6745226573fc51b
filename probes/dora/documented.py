"""Associations that are documented: read from a list of pairs, or of sentences as CrowS-Pairs has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import polars as pl

from ...core.contracts.csv import read_rows
from ...core.contracts.errors import DataError
from .content_words import content_words, lemmas

PEOPLE = frozenset({"person", "people", "man", "woman"})
"""Words that many descriptors end in; a sentence need not have them."""
PAIRS, SENTENCES = ("descriptor", "word"), "sent_more"


class Documented:
    """Known associations, as pairs or as sentences that hold both the descriptor and the word."""

    def __init__(self, pairs: set[tuple[frozenset[str], str]], sentences: Sequence[frozenset[str]]) -> None:
        self._pairs, self._with = pairs, defaultdict[str, list[frozenset[str]]](list)
        for sentence in sentences:
            for word in sentence:
                self._with[word].append(sentence)

    def has(self, descriptor: frozenset[str], word: str) -> bool:
        """Say whether an association (lemmas) stands in the list."""
        if (descriptor, word) in self._pairs:
            return True
        needed = descriptor - PEOPLE or descriptor
        return word not in needed and any(needed <= sentence for sentence in self._with.get(word, ()))


def read_documented(path: str) -> Documented:
    """Read a list; of CrowS-Pairs the `sent_more` of pairs that are not `antistereo`.

    Raises:
        DataError: the file cannot be read, or has neither `descriptor` and `word` nor `sent_more`.
    """
    rows = read_rows(path, ())
    columns = rows[0].cells
    if set(PAIRS) <= set(columns):
        words = lemmas([row.cells["word"] for row in rows])
        return Documented(set(zip(_names([row.cells["descriptor"] for row in rows]), words, strict=True)), [])
    if SENTENCES in columns:
        told = [row.cells[SENTENCES] for row in rows if row.cells.get("stereo_antistereo") != "antistereo"]
        return Documented(set(), [frozenset(words) for words in content_words(told)])
    raise DataError(
        f"{path}: neither columns descriptor and word, nor sent_more. It has: {', '.join(columns)}.",
        code="data.column-missing",
    )


def mark_documented(pairs: pl.DataFrame, path: str) -> pl.DataFrame:
    """Add a column `documented`: whether the association stands in the list of this file."""
    known = read_documented(path)
    named = zip(_names(pairs["descriptor"].to_list()), pairs["word"].to_list(), strict=True)
    return pairs.with_columns(documented=pl.Series([known.has(*pair) for pair in named], dtype=pl.Boolean))


def _names(descriptors: Sequence[str]) -> list[frozenset[str]]:
    """Return the lemmas of descriptors, so that singular and plural, capital and small are one."""
    split = content_words(descriptors)
    return [frozenset(words) or frozenset({name.casefold()}) for words, name in zip(split, descriptors, strict=True)]
