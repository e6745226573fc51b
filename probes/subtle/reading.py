"""Reading of answers in words: the option that an answer chooses, or, as the authors match, the words of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ...core.contracts import Unreadable
from ...core.contracts.records import Scalar
from ...core.reading.choice import Choice, read_choice
from ...core.reading.results import Unread
from .asking import INSTRUCTION
from .items import BLANK
from .terms import POLARITIES

Reading = Literal["current", "paper"]
_LABEL = re.compile(r"option\s*\d+\s*:")


class Read(NamedTuple):
    """An answer that was read."""

    chosen: str
    """The polarity of the chosen option."""
    rescued: bool
    """Whether the authors' program does not read it."""


def normal(text: str) -> str:
    """Normalise as the authors do: strip, remove full stops, lower-case, cut at `option N:`."""
    low = text.strip().replace(".", "").lower()
    label = _LABEL.search(low)
    return (low[label.end() :] if label else low).strip()


class Asked(NamedTuple):
    """What the reading of an answer knows of its question."""

    numbered: bool = True
    """Whether it numbers the options."""
    blank: str = BLANK
    instruction: str = INSTRUCTION


PLAIN = Asked()
"""This project's question."""


def read_words(
    factors: Mapping[str, Scalar], text: str, *, reading: Reading = "current", asked: Asked = PLAIN
) -> Read | Unreadable:
    """Return the option that an answer chooses, or the kind of an unreadable answer.

    What the authors' program reads is read alike in both readings; `current` also reads an option that the answer
    states, the number of one, and the sentence filled in with one.
    """
    matched = {normal(str(factors[name])): name for name in POLARITIES}.get(normal(text))
    if matched is not None:
        return Read(matched, False)
    order = factors["order"] if asked.numbered else None
    choice = Choice(
        options={name: str(factors[name]) for name in POLARITIES},
        shown=str(order).split(", ") if order is not None else (),
        sentence=str(factors["context"]),
        blank=asked.blank,
        instruction=asked.instruction,
    )
    read = read_choice(text, choice)
    if isinstance(read, Unread):
        return read.unreadable()
    return Read(read.value, True) if reading == "current" else Unreadable("an answer among other words")
