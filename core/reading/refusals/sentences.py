"""Sentences of an answer, in one wording: their places in the text, without speech that is only quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """Where a sentence stands in a text, as a slice."""

    start: int
    end: int


class Sentence(NamedTuple):
    """A sentence, its place, and its words in one wording."""

    span: Span
    words: str
    """In lower case, without contractions, markup and long quotations."""


_END = re.compile(r"(?<=[.!?])[\"'”’)*\]]*\s+(?!\d)|\n+(?![a-z])")
_ABBREVIATED = re.compile(r"(?:\b(?:mr|mrs|ms|dr|st|vs|e\.g|i\.e|[a-z])|^\s*\d+)\.$", re.IGNORECASE)
_MARKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "`": "'", "\u201c": '"', "\u201d": '"'})
_QUOTED = re.compile(r'"[^"\n]*"|(?<![\w"])\'[^\'\n]*(?:(?<=\w)\'(?=\w)[^\'\n]*)*\'(?!\w)')
_ENCLOSED = re.compile(r'\s*"[^"]*"\s*')
_FILL = "\u2063"
"""Stands in for the letters of quoted speech: no letter, mark or blank of any sentence."""
_LONGEST_TERM = 3
"""Words of a quotation that names something; a longer one is speech."""
_LEAD = re.compile(r"^[\s\"'*_>#|~\-\u2013\u2014\u2022]+")
_FULL: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), wording)
    for pattern, wording in (
        (r"\b(?:can't|can not|cant)\b", "cannot"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"\bain't\b", "is not"),
        (r"n't\b", " not"),
        (r"\b(?:i'm|im)\b", "i am"),
        (r"(?<=\w)'re\b", " are"),
        (r"(?<=\w)'ve\b", " have"),
        (r"(?<=\w)'ll\b", " will"),
        (r"\b(i|we|you|they|it)'d\b", r"\1 would"),
        (r"\b(it|that|there|here|what)'s\b", r"\1 is"),
        (r"\blet's\b", "let us"),
        (r"[*_]{1,3}(?=\w)|(?<=\w)[*_]{1,3}", ""),
        # A negated verb of opinion denies its clause (neg-raising, Horn 1978): "I do not think it is fair to judge".
        (
            r"\b(?:i|we) (?:\w+ly )?(?:do|would) not (?:\w+ly )?(?:think|believe|feel|find|consider|say)(?: that)?"
            r" (?:(it|that|this|\w+ing \w+) (?:is|would be)|(it)) ",
            r"\1\2 is not ",
        ),
    )
)


def sentences_of(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, blank ones left out.

    Args:
        text: An answer as the model gave it, without its reasoning.
    """
    plain = _without_speech(text)
    start = 0
    for end in _END.finditer(plain):
        if "\n" not in end[0] and _ABBREVIATED.search(plain[start : end.start()]):
            continue
        yield from _sentence(plain, start, end.end())
        start = end.end()
    yield from _sentence(plain, start, len(plain))


def one_wording(sentence: str) -> str:
    """Return the words of a sentence in lower case, without contractions and markup."""
    bare = _LEAD.sub("", sentence.translate(_MARKS).lower())
    for pattern, wording in _FULL:
        bare = pattern.sub(wording, bare)
    return " ".join(_LEAD.sub("", bare).split())


def _sentence(plain: str, start: int, end: int) -> Iterator[Sentence]:
    if plain[start:end].strip():
        yield Sentence(Span(start, end), one_wording(plain[start:end]))


def _without_speech(text: str) -> str:
    """Return a text of the same length, with blanks in place of speech that is quoted in it."""
    straight = text.translate(_MARKS)
    if _ENCLOSED.fullmatch(straight):
        return straight
    return _QUOTED.sub(_hidden, straight)


def _hidden(quotation: re.Match[str]) -> str:
    length = len(quotation[0])
    return quotation[0] if len(quotation[0].split()) <= _LONGEST_TERM else _FILL * length
