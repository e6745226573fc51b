"""From texts to the words that carry their content, so that mentions of one thing are counted together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ...core.contracts.errors import MissingExtraError, UsageError

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
    split, stop, lemma = _tools(language)
    return [
        [
            word
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
