"""Sentences about a text that the question does not ask about, such as an example of its prompt.

A small model that is shown an example may judge the example: `This contradicts the premise "It is raining"`, where the
question is about other texts. What such a sentence states is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .unwrap import normalize

_SENTENCE = re.compile(r"(?:[^.!?\n\"]|\"[^\"\n]*(?:\"|\Z)|[.!?](?=\w))+[.!?\n\"]*\s*")
_WORD = re.compile(r"[^\W_]+")


def without_other_texts(text: str, nouns: Sequence[str], asked: Sequence[str]) -> str:
    """Return an answer without the sentences that quote another text than those asked about.

    Args:
        text: An answer as received, without reasoning.
        nouns: What the question calls its texts, such as `premise`; only a quotation behind one of them counts.
        asked: The texts of the question. A part of one is a quotation of it; an empty sequence: nothing is left out.

    Returns:
        The sentences that stay. No text raises an error.
    """
    plain = normalize(text)
    quotation = re.compile(rf"\b(?:{'|'.join(nouns)})\b[\s:,]*(?:(?:is|was|says|that|states)\s+)*\"([^\"\n]+)", re.I)
    if not asked or not quotation.search(plain):
        return text
    questions = [_words(question) for question in asked]
    return "".join(
        sentence
        for sentence in _SENTENCE.findall(plain)
        if all(_is_part(_words(quoted), questions) for quoted in quotation.findall(sentence))
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(normalize(text).lower())


def _is_part(quoted: Sequence[str], questions: Sequence[Sequence[str]]) -> bool:
    """Return whether words stand in a text; the last one may be cut."""
    if not quoted:
        return True
    *first, last = quoted
    return any(
        list(words[start : start + len(first)]) == first and words[start + len(first)].startswith(last)
        for words in questions
        for start in range(len(words) - len(first))
    )
