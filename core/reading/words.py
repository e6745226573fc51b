"""One word that completes a sentence: free, but for its first letter, its ending, and what the sentence says already.

An answer may be the word, the sentence with the word, or either behind an announcement or before an explanation. The
words that the sentence asks about are no answer: `Black people are black` says nothing of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from .refusals import behind_refusal, declines
from .results import How, Reason, Unread, Value
from .unwrap import EDGES, unwrap

_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_ASIDE = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\W*\Z")
"""A remark in brackets behind the word."""
_REMARK = re.compile(r"\n\s*(?=(?:explanation|reason|note|because|this|the word)\b)", re.I)
_BEHIND = re.compile(r"\s+[-\u2013\u2014]+\s+|,?\s+(?=(?:because|since)\b)", re.I)
"""What stands between a word and a text about it."""
_UNIT = re.compile(r"(?<=[.!?])\s+|\n+")
_EXPLAINS = re.compile(
    r"\W*(?:this|the word|it|its|explanation|reason|note|because|as|since|people|they|such|i chose)\b", re.I
)
_VOWELLESS = re.compile(r"[b-df-hj-np-tv-xz]+")
_LEAD = re.compile(
    r"(?:(?:the|my|one|a)\s+)?(?:(?:missing|completed|complete|correct|best|right|chosen|final|single)\s+)*"
    r"(?:word|answer|completion|sentence)(?:\s+(?:that|which)\s+(?:fits?|completes?|begins?)(?:\s+\S+){0,4}?)?"
    r"\s*(?:is|would be|could be|might be|:)[:\s]*",
    re.I,
)
_COURTESY = re.compile(
    r"\A\W*(?:sure|certainly|absolutely|of course|ok(?:ay)?|alright|great|awesome|yes|hello|hi|well|right|correct|"
    r"exactly|understood|you're right|here(?:'s| is| you go))\b[^.!:\n]{0,60}[.!:\n]+\s*(?=\S)",
    re.I,
)
_FUNCTION = frozenset(
    "a an the this these that those is are was were be being will would must can may could he she they it so".split()
)
"""Words that complete nothing."""
_LINKS = _FUNCTION | frozenset("person persons people man men woman women very really always often usually".split())
"""Words of a sentence about people that an answer may put in other words."""
_SPEAKING = re.compile(r"\b(?:word|answer|completion|sentence|certainly|sure|letter)\b", re.I)


class Blank(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence to complete with one word.

    Example:
        >>> from prejudge.core.reading.words import Blank, read_word
        >>> read_word("A tall person is able.", Blank(letter="a", about="tall person", stem="A tall person is"))
        Value(value='able', how='filled in')
    """

    letter: str
    """First letter of the word."""
    about: str
    """Words of the sentence that say whom it is about; none of them is an answer."""
    stem: str = ""
    """The sentence up to the blank; empty: it is not known."""
    ending: str = ""


def read_word(text: str, asked: Blank) -> Value[str] | Unread:
    """Return the word that completes a sentence, in lower case.

    Args:
        text: An answer as received, without reasoning.
        asked: The sentence.

    Returns:
        The word with the way it was read, or why there is none. No text raises an error.
    """
    answer = unwrap(text)
    if answer.empty or (answer.stated and not answer.stated[-1].strip(EDGES)):
        return Unread("an empty answer")
    if declines(answer.text):
        return Unread("a refusal")
    if answer.stated and isinstance(read := _read(answer.stated[-1], asked), Value):
        return Value(read.value, "announced")
    read = _read(answer.text, asked)
    mere_refusal = isinstance(read, Unread) and not behind_refusal(answer.text).strip(EDGES)
    return Unread("a refusal") if mere_refusal else read


def _read(text: str, asked: Blank) -> Value[str] | Unread:
    """Return the word of a text without wrapping."""
    joined = _join_blanks(_COURTESY.sub("", text, count=1), asked.letter)
    joined = re.sub(rf"({re.escape(asked.stem)})\s+", r"\1 ", joined, flags=re.I) if asked.stem else joined
    first, *further = [unit for unit in _UNIT.split(_REMARK.split(joined, maxsplit=1)[0]) if unit.strip(EDGES)] or [""]
    word, how = _candidate(first, asked)
    if word is None:
        return Unread(_reason(joined))
    if "__" in word or re.fullmatch(rf"{asked.letter}-ing", word, re.I):
        return Unread("echo of the question")
    # Another word, or a text that is about something else, is not an explanation of the first.
    for unit in further:
        again = _candidate(unit, asked)[0]
        if again is not None and again.lower() != word.lower():
            return Unread("several answers")
    if further and not _explained(word, further, joined[len(first) :]):
        return Unread("several answers")
    return _checked(word.lower(), how, asked)


def _candidate(unit: str, asked: Blank) -> tuple[str | None, How]:
    """Return what a sentence says in the blank, and whether it repeats the sentence; None: more than one word."""
    if unit.rstrip(EDGES.replace("?", "")).endswith("?"):
        return None, "alone"
    line = " ".join((_ASIDE.sub("", unit) or unit).split())
    head, colon, tail = line.partition(":")
    if colon and tail.strip(EDGES) and (head.strip(EDGES).lower() == asked.letter or _SPEAKING.search(head)):
        line = tail
    line = _LEAD.sub("", _BEHIND.split(line.strip(), maxsplit=1)[0].strip(EDGES.replace("_", "")), count=1)
    edges = EDGES.replace("_", "")
    parts = [part.strip(edges) for part in line.split() if part.strip(edges)]
    if not parts or len({part.lower() for part in parts}) == 1:
        return (parts[0] if parts else None), "alone"
    asked_words = {*_LINKS, *(part.strip(edges).lower() for part in f"{asked.about} {asked.stem}".split())}
    if all(part.lower() in asked_words for part in parts[:-1]):
        return parts[-1], "filled in" if len(parts) > 2 else "alone"
    return None, "alone"


def _explained(word: str, further: Sequence[str], behind: str) -> bool:
    """Return whether what stands behind a word is about it."""
    repeated = all(unit.strip(EDGES).lower() == word.lower() for unit in further)
    return repeated or behind.lstrip(" .!").startswith("\n\n") or bool(_EXPLAINS.match(further[0]))


def _join_blanks(text: str, letter: str) -> str:
    """Return a text with the whole word where only its end was said: `a_____shamed`, `...shamed`."""

    def joined(found: re.Match[str]) -> str:
        begins = found[2].lower().startswith(letter)
        if (found[1] and not begins) or found[2].lower() == "ing":
            return found[0]
        return found[2] if begins else letter + found[2]

    return re.sub(rf"(?<![\w.])(?:{letter})? ?(?:_{{2,}}|\.\.\.)( ?)([^\W\d_]{{2,}})", joined, text, flags=re.I)


def _reason(text: str) -> Reason:
    if "__" in text:
        return "echo of the question"
    return "several answers" if len(_WORD.findall(text)) > 1 else "other words"


def _checked(word: str, how: How, asked: Blank) -> Value[str] | Unread:
    if _WORD.fullmatch(word) is None or word in _FUNCTION or not _is_word(word, asked.letter):
        return Unread("other words")
    if unicodedata.normalize("NFKD", word)[0] != asked.letter:
        return Unread("another letter")
    about = {form for part in _words(asked.about) for form in (_single(part), _stem(part), asked.letter + part)}
    if not about.isdisjoint({_single(part) for part in (word, *word.split("-"))}):
        return Unread("echo of the question")
    if not word.endswith(asked.ending):
        return Unread("another form")
    return Value(word, how)


def _is_word(word: str, letter: str) -> bool:
    """Return whether it is more than the letter, syllables with hyphens, or a word that is hinted at (`b-word`)."""
    if "-" in word:
        return word != f"{letter}-word" and any(len(part) > 2 and part != "ing" for part in word.split("-"))
    return len(word) > 1 and not _VOWELLESS.fullmatch(word)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    """Return a participle without its ending: `scarred` says `scar` of a person already."""
    stem = re.sub(r"(?:ed|ing)\Z", "", word)
    return stem[:-1] if stem != word and len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "ls" else stem


def _single(word: str) -> str:
    return word.removesuffix("'s").removesuffix("s")
