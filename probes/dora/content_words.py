"""From texts to the words that carry their content, so that mentions of one thing are counted together.

Associations that are documented are found by them: in a list of pairs, or of sentences as CrowS-Pairs has them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

import polars as pl

from ...core.contracts.csv import read_rows
from ...core.contracts.errors import DataError, MissingExtraError, UsageError

EXTRA = "text"
APOSTROPHES = str.maketrans("’‘ʼ", "'''")
WORD = r"(?u)[^\W\d_]+(?:['\-][^\W\d_]+)*"
"""Letters, with hyphens and apostrophes inside: no digits, no underscores."""
LEAST = 2
"""Letters that a content word has at least: what is shorter is a contraction's rest or an initial."""


def content_words(texts: Sequence[str], language: str = "en") -> list[list[str]]:
    """Return the lemmatised content words of each text, in order, repeats included.

    Words are found and stop words left out by scikit-learn's `CountVectorizer`; lemmas are simplemma's, whose
    dictionaries come with the package. Nothing is downloaded. A text without content words gives an empty list.

    Args:
        texts: Plain texts.
        language: A code that simplemma knows. Stop words are known for English only; elsewhere none is left out.

    Raises:
        MissingExtraError: scikit-learn or simplemma is not installed.
        UsageError: simplemma does not know the language.
    """
    return [[word for word, _ in forms] for forms in content_forms(texts, language)]


def content_forms(texts: Sequence[str], language: str = "en") -> list[list[tuple[str, str]]]:
    """Return the same, each lemma with the word as it was written, in lower case."""
    split, stop, lemma = _tools(language)
    return [
        [
            (word, token.lower())
            for token in split(text.translate(APOSTROPHES))
            if token.lower() not in stop and len(word := lemma(token)) >= LEAST and word not in stop
        ]
        for text in texts
    ]


def lemmas(words: Sequence[str], language: str = "en") -> list[str]:
    """Return the lemma of each word, stop words included: a completion is a word whatever the word is.

    Raises:
        MissingExtraError: scikit-learn or simplemma is not installed.
        UsageError: simplemma does not know the language.
    """
    lemma = _tools(language)[2]
    return [lemma(word.strip().translate(APOSTROPHES)) for word in words]


@lru_cache
def _tools(language: str) -> tuple[Callable[[str], list[str]], frozenset[str], Callable[[str], str]]:
    """Return what splits a text, the stop words, and what makes a lemma."""
    # Inside, since both are an extra, and scikit-learn is slow to load.
    try:
        from simplemma import Lemmatizer
        from sklearn.feature_extraction.text import CountVectorizer
    except ImportError:
        raise MissingExtraError("counting content words", EXTRA) from None
    vectorizer = CountVectorizer(token_pattern=WORD, stop_words="english" if language == "en" else None)
    lemmatizer = Lemmatizer()

    @lru_cache(maxsize=1 << 16)
    def lemma(word: str) -> str:
        small = word.lower()
        found = lemmatizer.lemmatize(small, lang=language).lower()
        # Names of peoples stand in the dictionary with their capital only: "iraqis" has a lemma as "Iraqis".
        found = lemmatizer.lemmatize(small.capitalize(), lang=language).lower() if found == small else found
        return found.removesuffix("'s")

    try:
        lemma("word")
    except ValueError as error:
        raise UsageError(
            f"no lemmas for the language {language!r}: {error}. Use a code of simplemma's.", code="options.language"
        ) from None
    return vectorizer.build_tokenizer(), frozenset(vectorizer.get_stop_words() or ()), lemma


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
