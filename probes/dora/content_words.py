"""Lemmas of the content words of texts, so that all forms of a word are counted together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ...core.contracts.errors import MissingExtraError, UsageError

EXTRA = "text"
APOSTROPHES = str.maketrans("’‘ʼ", "'''")
WORD = r"(?u)[^\W\d_]+(?:['\-][^\W\d_]+)*"
"""Letters, with hyphens and apostrophes inside: no digits, no underscores."""
LEAST = 2
"""Minimum length of a content word: shorter ones are parts of contractions, or initials."""


def content_words(texts: Sequence[str], language: str = "en") -> list[list[str]]:
    """Return the lemmatised content words of each text, in order, repeats included.

    scikit-learn's `CountVectorizer` splits the texts and removes stop words; lemmas are simplemma's, whose dictionaries
    are part of its package. Nothing is downloaded. A text without content words gives an empty list.

    Args:
        texts: Plain texts.
        language: A code that simplemma knows. Stop words are removed for English only.

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
    """Return the lemma of each word, stop words included, because any word can be a completion.

    Raises:
        MissingExtraError: scikit-learn or simplemma is not installed.
        UsageError: simplemma does not know the language.
    """
    lemma = _tools(language)[2]
    return [lemma(word.strip().translate(APOSTROPHES)) for word in words]


@lru_cache
def _tools(language: str) -> tuple[Callable[[str], list[str]], frozenset[str], Callable[[str], str]]:
    """Return the tokenizer, the stop words, and the lemmatizer."""
    # Imported here, because both are an extra, and scikit-learn is slow to load.
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
        # The dictionary has names of peoples only with a capital: "iraqis" has a lemma only as "Iraqis".
        found = lemmatizer.lemmatize(small.capitalize(), lang=language).lower() if found == small else found
        return found.removesuffix("'s")

    try:
        lemma("word")
    except ValueError as error:
        raise UsageError(
            f"no lemmas for the language {language!r}: {error}. Use a code of simplemma's.", code="options.language"
        ) from None
    return vectorizer.build_tokenizer(), frozenset(vectorizer.get_stop_words() or ()), lemma
