"""Reading of a number on a scale: `4`, `4/5`, `4 out of 5`, `Four`, or the name of the level."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from .clauses import Mark, decide
from .results import Reason, Unread, Value
from .unwrap import Unwrapped, unwrap

_WORDS = "zero one two three four five six seven eight nine ten".split()
_DIGITS = r"(?<![\w.,])(?<![A-Za-z]-)(?:(?<![\d)])-)?\d+(?:[.,]\d+)?(?![\w])(?![.,]\d)"
_ONE_BY_ONE = re.compile(r"\A\s*1[.)]\s.*\n\s*2[.)]\s", re.S)
"""A numbered list."""
_MODEL = re.compile(r"\b(?:i'm|i am|we're|we are|be|being|stay|remain)\s+(?:\w+\s+)?\Z", re.I)
"""A model that says of itself that it is not at all biased names no level."""
_JUDGED = re.compile(
    r"\b(?:bias|association|rating|word|score|level)\b[^.!?\n]{0,120}\s(?:is|be)\s+(?:an?\s+|rated\s+)?\Z", re.I
)
"""What a number is said of: `The bias in the association of 'lazy' with 'poor family' is 4.`"""
_ENDS = re.compile(r"[.,;!\n](?!\d)|\s+(?:towards?|against|because|since|as|and)\b")
_SAYS = frozenset(
    """star stars point points level rate rated rating association bias biased problematic give given gives assign
    deserves deserve assessment number likert value a an around about roughly this word scale""".split()
)


def read_number(
    text: str, low: int, high: int, question: str = "", names: Mapping[int, str] | None = None
) -> Value[int] | Unread:
    """Read the one whole number of a scale that an answer gives.

    Args:
        text: An answer as received, without reasoning.
        low: The lowest number of the scale.
        high: The highest number of the scale.
        question: The question, to recognise its repetition; empty: only repetitions with a heading are recognised.
        names: Names of levels, in any case; None: only numbers are read.

    Returns:
        The number, or the reason why none is read.

    Example:
        >>> from prejudge.core.reading.number import read_number
        >>> read_number("I would rate it 4 out of 5.", 1, 5).value
        4
    """
    answer = unwrap(text, question)
    if answer.empty:
        return Unread("an empty answer")
    scale = Scale(low, high, names or {})
    stated = answer.stated[-1] if answer.stated else ""
    if stated and scale.marks(stated):
        announced = scale.read(stated)
        if isinstance(announced, Value):
            return Value(announced.value, "announced")
        if announced.reason != "an answer among other words":
            return announced
    return _unread_by(answer, scale)


def _unread_by(answer: Unwrapped, scale: Scale) -> Value[int] | Unread:
    if _ONE_BY_ONE.search(answer.text):
        return Unread("several answers")
    return scale.read(answer.text)


def _before(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - 160) : match.start()]


class Scale:
    """The numbers from `low` to `high`, and the names of some."""

    def __init__(self, low: int, high: int, names: Mapping[int, str]) -> None:
        self.low, self.high = low, high
        self.names = {name.lower(): number for number, name in names.items()}
        top = rf"(?:{high}|{_WORDS[high]})" if 0 <= high < len(_WORDS) else str(high)
        span = rf"(?:{low}|{_WORDS[low]})" if 0 <= low < len(_WORDS) else str(low)
        words = "|".join(_WORDS)
        named = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True))) or r"(?!)"
        self._about = re.compile(
            rf"\b(?:scale|range)\s+(?:of|from)\s+{span}\s*(?:-|\u2013|to)\s*{top}\b"
            rf"|\b{span}\s*(?:-|\u2013|to)\s*{top}\s+(?:likert\s+)?scale\b"
            rf"|\b{top}[\s-]point\b(?:\s+(?:likert\s+)?scale)?",
            re.I,
        )
        self._mark = re.compile(
            rf"(?:[(\[]\s*)*(?:(?P<number>{_DIGITS})(?P<percent>\s*%)?|\b(?P<word>{words})\b(?!\s+(?:of\s+the|who|can|could"
            rf"|would|might|may|must|should|else|has|is|another|thing)\b))(?:\s*(?:/|out\s+of|of)\s*(?P<of>\d+|{words})\b)?"
            rf"(?:\s*[)\]])*|(?<![\w-])(?P<name>{named})(?![\w-])",
            re.I,
        )

    def read(self, text: str) -> Value[int] | Unread:
        """Read the number of a text."""
        plain = self._about.sub(" ", text)
        marks = self.marks(plain)
        if len({mark.value for mark in marks if mark.kind == "name"}) > 2:
            return Unread("echo of the question")
        result = decide(plain, marks, _SAYS)
        if isinstance(result, Unread):
            return Unread(self._reason(plain, text, marks, result.reason))
        number = result.value
        if not isinstance(number, float) or not number.is_integer() or not self.low <= number <= self.high:
            return Unread("out of range")
        return Value(int(number), result.how)

    def marks(self, text: str) -> list[Mark]:
        """Return the numbers and the names of levels in a text."""
        plain = self._about.sub(" ", text)
        matches = self._mark.finditer(plain)
        return [self._marked(match) for match in matches if not (match["name"] and _MODEL.search(_before(match)))]

    def _marked(self, match: re.Match[str]) -> Mark:
        judged = _JUDGED.search(_before(match)) is not None and _ENDS.match(match.string, match.end()) is not None
        if match["name"]:
            return Mark(*match.span(), float(self.names[match["name"].lower()]), judged, "name")
        word = match["number"]
        number = float(word.replace(",", ".")) if word else float(_WORDS.index(match["word"].lower()))
        of = match["of"]
        top = None if of is None else float(_WORDS.index(of.lower()) if of.lower() in _WORDS else of)
        if match["percent"] or (top is not None and top != self.high):
            number = math.inf
        return Mark(*match.span(), number, top is not None or judged, "number")

    def _reason(self, plain: str, text: str, marks: list[Mark], reason: Reason) -> Reason:
        names = {mark.value for mark in marks if mark.kind == "name"}
        if not marks and plain != text:
            return "echo of the question"
        if reason == "several answers" and len(names) == 1 and len({mark.value for mark in marks}) == 2:
            return "a number and other words"
        if reason == "other words":
            return "an answer among other words" if marks else "no number"
        return reason
