"""Which of several options an answer chooses: by words, by number, or by the sentence filled in with one of them.

An option counts where the answer states it (`stated`). Options of any words are replaced by signs of one letter first,
so that the clauses are read alike whatever the options are. A sentence that repeats the question's with exactly one
option in its blank states that option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from .results import Unread, Value
from .stated import DENIALS, Labels, read_clauses
from .unwrap import EDGES, normalize, unwrap

_SIGNS = "".join(map(chr, range(0xA4D0, 0xA4F8)))
"""Letters of a script that no answer is written in, one per option."""
_UNITS = re.compile(r"[^.!?\n:;]+(?:[.!?\n:;]+|\Z)")
_TOKEN = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
_LISTED = re.compile(r"^\W*(?:option\s*)?\(?(\d+)\s*[.):\]-]+\s*(.*?)\s*$", re.M | re.I)
_BROKEN_OFF = re.compile(r"^\W*option\W*\d\W.*\n\s*option\W*\d*\W*\Z", re.M | re.I)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_CARDINALS = {"one": 1, "two": 2, "three": 3, "four": 4}
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})\s+option\b|\boption\s+({'|'.join(_CARDINALS)})\b", re.I)
_SAYS = frozenset(
    """word words blank fill filled fills fits fit fitting appropriate suitable options sentence context completed
    complete which me here's chose chosen selected select selection you am
    """.split()
)
_LINKS = frozenset(
    """a an the is are was were be being and as who it he she they him her them his their to of in at from so like
    rather quite very likely probably clearly also
    """.split()
)
"""Words that an answer may add to a sentence that it repeats."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A question with options.

    Example:
        >>> from prejudge.core.reading.choice import Choice, read_choice
        >>> asked = Choice(options={"good": "wise", "bad": "foolish"}, sentence="The man is BLANK.")
        >>> read_choice("The man is foolish.", asked)
        Value(value='bad', how='filled in')
    """

    options: Mapping[str, str]
    """The words of each option, by its name."""
    shown: Sequence[str] = ()
    """Names of the options in the order in which the question numbers them, from 1; empty: it numbers none."""
    sentence: str = ""
    """The sentence to complete."""
    blank: str = "BLANK"
    instruction: str = ""


def read_choice(text: str, asked: Choice) -> Value[str] | Unread:
    """Return the option that an answer chooses.

    Args:
        text: An answer as received, without reasoning.
        asked: The question.

    Returns:
        The name of the option with the way it was read, or why there is none. No text raises an error.
    """
    names = sorted(asked.options)
    words = [" ".join(normalize(asked.options[name]).strip(EDGES).lower().split()) for name in names]
    answer = unwrap(text)
    if answer.empty or not all(words) or len(set(words)) < len(words):
        return Unread("an empty answer" if answer.empty else "several answers")
    reader = _Reader(asked, names, words)
    behind = [reader.read(part) for part in answer.stated if part.strip(EDGES)]
    if len({read.value for read in behind if isinstance(read, Value)}) == len(names) > 2:
        return Unread("several answers")
    if behind and answer.stated[-1].strip(EDGES) and isinstance(last := behind[-1], Value):
        return last if last.how == "filled in" else Value(last.value, "announced")
    return reader.read(answer.text)


class _Reader:
    """Reads texts without wrapping as answers to one question."""

    def __init__(self, asked: Choice, names: Sequence[str], words: Sequence[str]) -> None:
        self._asked = asked
        self._signs = dict(zip(words, _SIGNS, strict=False))
        longest = sorted(words, key=len, reverse=True)
        self._option = re.compile(
            rf"(?<!\w)(?<!\w[-'])(?<!\d[.,])(?:{'|'.join(map(_pattern, longest))})(?!\w|[-']\w|[.,]\d)", re.I
        )
        self._labels = Labels(
            tuple(names),
            tuple(self._signs.values()),
            says=_SAYS,
            numbers=tuple(asked.shown),
        )
        self._sentence = self._signed(normalize(asked.sentence.replace(asked.blank, " ")))
        self._sentence_words = [word.lower() for word in _TOKEN.findall(self._sentence)]

    def read(self, text: str) -> Value[str] | Unread:
        """Return the option that a text chooses."""
        if self._goes_on(text):
            return Unread("an answer among other words")
        answer, listed = self._without_list(text.translate(dict.fromkeys(map(ord, _SIGNS))))
        if listed and not answer.strip(EDGES):
            return Unread("echo of the question")
        signed = self._signed(_ORDINAL.sub(self._numbered, answer))
        filled, is_filled = self._filled_in(signed)
        read = read_clauses(filled, self._labels)
        if isinstance(read, Value):
            return Value(read.value, "filled in") if is_filled else read
        return Unread("echo of the question") if self._is_echo(signed) else read

    def _signed(self, text: str) -> str:
        """Return a text with a sign in place of each option."""
        return self._option.sub(lambda match: self._signs.get(_key(match[0]), self._nearest(match[0])), text)

    def _nearest(self, written: str) -> str:
        """Return the sign of an option that is written with other hyphens, blanks or full stops."""
        bare = re.sub(r"[-\s.]", "", written.lower())
        return next(sign for words, sign in self._signs.items() if re.sub(r"[-\s.]", "", words) == bare)

    def _goes_on(self, text: str) -> bool:
        """Return whether a text repeats the list of options and breaks off, or goes on with it, as base models do."""
        if _BROKEN_OFF.search(text):
            return True
        numbers = [int(match[0][:3]) for match in re.findall(r"^\W*option\s*((\d)\d*)\W", f"{text}\n", re.M | re.I)]
        return any(number > len(self._asked.options) for number in numbers)

    def _without_list(self, text: str) -> tuple[str, bool]:
        """Return a text without the list of all options, if it repeats that."""
        items = [item for item in _LISTED.finditer(text) if _key(item[2]) in self._signs]
        if {_key(item[2]) for item in items[: len(self._signs)]} != set(self._signs):
            return text, False
        start, end = items[0].start(), items[len(self._signs) - 1].end()
        return f"{text[:start]}\n{text[end:]}", True

    def _numbered(self, match: re.Match[str]) -> str:
        name = (match[1] or match[2]).lower()
        return f"option {_ORDINALS.get(name) or _CARDINALS[name]}"

    def _filled_in(self, text: str) -> tuple[str, bool]:
        """Return a text with each sentence that is filled in with one option replaced by that option."""
        parts, is_filled = [], False
        for unit in _UNITS.findall(text):
            sign = self._filling(unit)
            parts.append(unit if sign is None else f"\n{sign}\n")
            is_filled |= sign is not None
        return "".join(parts), is_filled

    def _filling(self, unit: str) -> str | None:
        words = [word.lower() for word in _TOKEN.findall(unit)]
        signs = {word for word in words if word in _SIGNS}
        others = [word for word in words if word not in _SIGNS]
        asked = self._sentence_words
        repeated = set(others) & set(asked)
        if len(signs) != 1 or "?" in unit or not _is_part(others, asked):
            return None
        if not repeated - _LINKS and (len(repeated) < 2 or repeated != set(others)):
            return None
        (sign,) = signs
        return sign if words.count(sign) > asked.count(sign) else None

    def _is_echo(self, text: str) -> bool:
        """Return whether a text without an option has hardly a word that the question has not."""
        words = [word.lower() for word in _TOKEN.findall(text)]
        if not words or any(word in _SIGNS and word not in self._sentence_words for word in words):
            return False
        asked = {*self._sentence_words, *_LINKS, self._asked.blank.lower(), "answer", "option", "options"}
        asked |= {word.lower() for word in _TOKEN.findall(self._asked.instruction)}
        return sum(word in asked for word in words) >= 0.75 * len(words)


def _is_part(words: Sequence[str], asked: Sequence[str]) -> bool:
    """Return whether all words are those of a sentence, but for links, and deny no more than it does."""
    denials = [sum(word in DENIALS or word.endswith("n't") for word in some) for some in (words, asked)]
    return denials[0] <= denials[1] and all(word in asked or word in _LINKS for word in words)


def _pattern(words: str) -> str:
    escaped = (re.escape(part) for part in re.split(r"([-\s.])", words))
    return "".join({"\\-": r"[-\s]?", "\\ ": r"[-\s]+", "\\.": r"\.?"}.get(part, part) for part in escaped)


def _key(words: str) -> str:
    return " ".join(words.strip(EDGES).lower().split())
