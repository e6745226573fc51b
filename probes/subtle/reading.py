"""Reading of answers in words: as the authors' program does, or tolerant of marks and labels around an option."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from ...core.contracts import Unreadable
from ...core.contracts.records import Scalar
from .terms import POLARITIES

Reading = Literal["strict", "tolerant"]
LABEL = re.compile(r"option\s*\d+\s*:")
_NUMBER = re.compile(r"(?:option\s*)?\(?([123])\)?")
_WORD = re.compile(r"\w+(?:[-']\w+)*")
AROUND = "*_`~#>\"'“”‘’«»()[]{}.,;:!? \t\r\n\u00a0"
"""Marks of emphasis, quotes, brackets and punctuation that may stand around an answer."""
_NUMBERED = re.compile(
    r"(?:option\s*)?[(\[]?[123]\s*[).\]:](?:\s+(?=\S)|(?=[^\s\d]))"  # 2. wise, (2) wise; not 1.27
    r"|option\s*[123]\s*[-–—]\s*(?=\S)"  # Option 2 - wise
)
_ANNOUNCED = re.compile(  # Answer: wise; The correct answer is wise
    r"(?:(?:my|the)\s+)?(?:(?:final|correct|best|most appropriate|most suitable|appropriate)\s+)?"
    r"(?:answer|response|choice|option|word|blank)(?:\s+is|\s+would be)?"
    r"\s*(?:[:=]|[-–—]\s|(?<=is)\s|(?<=be)\s)\s*(?=\S)"
)


class Read(NamedTuple):
    """An answer that was read."""

    chosen: str
    """The polarity of the chosen option."""
    rescued: bool
    """Whether only the tolerant reading reads it."""


def normal(text: str) -> str:
    """Normalise as the authors do: strip, remove full stops, lower-case, cut at `option N:`."""
    low = text.strip().replace(".", "").lower()
    label = LABEL.search(low)
    return (low[label.end() :] if label else low).strip()


def read_words(
    factors: Mapping[str, Scalar], text: str, *, labels: bool = False, reading: Reading = "strict"
) -> Read | Unreadable:
    """Return the option that an answer names, or the kind of an unreadable answer.

    Only the words of one option are an answer, as in the paper; with `labels`, its number alone is one too. The
    tolerant reading takes away marks, numbers and announcements around the answer, and never words of it: an option
    among other words stays unreadable. As in the authors' program, words count for more than a number before them.
    """
    options = {normal(str(factors[name])): name for name in POLARITIES}
    shown = str(factors["order"]).split(", ") if factors["order"] is not None else []
    answer = normal(text)
    if answer in options:
        return Read(options[answer], False)
    if reading == "tolerant" and (found := _tolerant(text, options)) is not None:
        return Read(found, True)
    bare = answer.strip(AROUND) if reading == "tolerant" else answer
    if number := _NUMBER.fullmatch(answer) or _NUMBER.fullmatch(bare):
        if not (labels and shown):
            return Unreadable("the number of an option alone")
        return Read(shown[int(number[1]) - 1], _NUMBER.fullmatch(answer) is None)
    return Unreadable(_kind(answer, options, str(factors["context"])))


def _tolerant(text: str, options: Mapping[str, str]) -> str | None:
    """Return the polarity of the option that is left when all around it is taken away; None if there is none."""
    bare = {option.strip(AROUND): name for option, name in options.items()}
    if len(bare) < len(options):
        return None
    return next((bare[left] for rest in _peeled(text.lower()) if (left := normal(rest).strip(AROUND)) in bare), None)


def _peeled(text: str) -> Iterator[str]:
    """Yield a text, with more and more taken away before it."""
    yield text
    rest = text.strip(AROUND.replace("(", "").replace("[", ""))
    if found := _ANNOUNCED.match(rest) or _NUMBERED.match(rest):
        yield from _peeled(rest[found.end() :])


def _kind(answer: str, options: dict[str, str], context: str) -> str:
    """Return the kind of an answer that names no option."""
    if not answer:
        return "an empty answer"
    if answer in normal(context):
        return "words of the sentence"
    named = sum(_holds(answer, option) for option in options)
    if named > 1:
        return "several options"
    return "an option among other words" if named else "other words"


def _holds(answer: str, option: str) -> bool:
    words, part = _WORD.findall(answer), _WORD.findall(option)
    return any(words[at : at + len(part)] == part for at in range(len(words) - len(part) + 1))
