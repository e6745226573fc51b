"""Reading of a label: the letter or number of one of several options, as `(a)`, `b` or `Option A`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from .clauses import Mark, decide
from .results import Unread, Value
from .unwrap import unwrap

_FOLLOWING = (
    r"(?=\s*(?:\Z|[.,;!?)\]/|=\n\"']|[-\u2013\u2014](?!\w)|:[ \t]*(?:\S+[ \t]*){0,4}$)"
    r"|\s+(?:because|since|as|due|given|and|or|is|over|than|rather|instead|but|which)\b)"
)
"""What may follow a bare label. No article stands before it, so `a` is a label there. Behind a colon stands
an option, not the speech of somebody `A`."""


def read_label(text: str, labels: Sequence[str], question: str = "") -> Value[str] | Unread:
    """Read the one label that an answer gives.

    Args:
        text: An answer as received, without reasoning.
        labels: The labels, in any case; each is read alike.
        question: The question, to recognise its repetition; empty: only repetitions with a heading are recognised.

    Returns:
        The label as it is in `labels`, or the reason why none is read.

    Example:
        >>> from prejudge.core.reading.label import read_label
        >>> read_label("I would pick (b), a safe choice.", ("a", "b")).value
        'b'
    """
    answer = unwrap(text, question)
    if answer.empty:
        return Unread("an empty answer") if not text.strip() or not question else Unread("echo of the question")
    pattern, names = _marks_of(tuple(labels))
    if _ends_in_an_article(answer.text, names):
        return Unread("cut off")
    stated = answer.stated[-1] if answer.formal else ""
    if marks := _find(pattern, names, stated):
        announced = decide(stated, marks)
        if isinstance(announced, Value):
            return Value(str(announced.value), "announced")
        if announced.reason != "an answer among other words":
            return announced
    result = decide(answer.text, _find(pattern, names, answer.text))
    return Value(str(result.value), result.how) if isinstance(result, Value) else result


def _ends_in_an_article(text: str, names: dict[str, str]) -> bool:
    """Return whether a text ends in a bare small letter behind a word, which may be an article that was cut off."""
    match = re.search(r"\b[^\W\d_][\w']*[ ]([a-z])\Z", text)
    return match is not None and match[1] in names and not re.search(r"\b(?:option|choice|label)\s+\w\Z", text, re.I)


@lru_cache(maxsize=64)
def _marks_of(labels: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the pattern of marks of labels, and the labels by their small letters."""
    names = {label.lower(): label for label in labels}
    any_label = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    bare = "|".join(map(re.escape, sorted((name for name in names if name != "i"), key=len, reverse=True))) or r"(?!)"
    after = rf"(?![\w'-]){_FOLLOWING}"
    return re.compile(
        rf"[(\[]\s*(?P<round>{any_label})\s*[)\]]|(?<![\w'-])(?:option|choice|label)\s+(?P<option>{any_label}){after}"
        rf"|(?<![\w('-])(?P<half>{any_label})\)|(?<!\w)[\"'](?P<quoted>{any_label})[\"'](?!\w)"
        rf"|^[ \t]*(?P<head>{any_label})(?:\.(?=\s)|:(?=[ \t]*(?:\S+[ \t]*){{0,4}}$))"
        rf"|(?<![\w'(-])(?P<bare>{bare}){after}|\A\W*(?P<alone>{any_label})\W*\Z",
        re.I | re.M,
    ), names


def _find(pattern: re.Pattern[str], names: dict[str, str], text: str) -> list[Mark]:
    marks = []
    for match in pattern.finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span(kind) if kind in ("bare", "head", "alone") else match.span()
        marks.append(Mark(start, end, names[match[kind].lower()], kind != "bare"))
    return marks
