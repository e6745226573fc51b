"""The labels of inference, and the label that an answer in words states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...core.reading.choice import Choice, read_choice
from ...core.reading.quoted import without_other_texts
from ...core.reading.results import Unread, Value
from ...core.reading.stated import Labels, read_stated
from .terms import LABELS

_FORMS = ("entail[a-z]*", "contradict[a-z]*", "neutral[a-z]*")
_SAYS = frozenset("inference relation relationship nli hypothesis premise statement sentence sentences pair".split())
_LABELS = Labels(LABELS, _FORMS, says=_SAYS, exhaustive=True)
_NUMBERED = Labels(LABELS, _FORMS, says=_SAYS, numbers=LABELS, exhaustive=True)
_TEXTS = ("premise", "hypothesis", "statement", "sentence")
_REPEATED = re.compile(r"\A\W*premise\W*:.*?\bhypothesis\W*:[^\n]*\n", re.S | re.I)
_FURTHER = re.compile(r"\bpremise\W*:|\n\W*hypothesis\W*:", re.I)
_GLOSS = re.compile(r"\(the hypothesis[^)]*\)?", re.I)
"""Explanations of the labels in prompts 1 and 2. A model may repeat them, and one explanation names another label."""


class OwnWords(NamedTuple):
    """Words of a question in another language: for the labels, and before the answer."""

    answers: tuple[str, ...]
    lead: str


def read_words(
    text: str, *, numbered: bool, pair: Sequence[str] = (), own: OwnWords | None = None
) -> Value[str] | Unread:
    """Return the label of an answer.

    Args:
        text: The answer, without reasoning.
        numbered: Whether the prompt numbers the labels from 1 to 3.
        pair: The premise and the hypothesis, so that what is said of an example's is not read; empty: not known.
        own: Words in another language. In these an answer must state the label: which words deny one is not known.
    """
    if own is not None:
        return _read_own(text, own)
    # The pair that a model repeats, and the further pairs that a base model adds, are no part of the answer.
    answer = _FURTHER.split(_REPEATED.sub("", text), maxsplit=1)[0]
    if answer.strip() and not (answer := without_other_texts(answer, _TEXTS, pair)).strip():
        return Unread("other words")
    return read_stated(_GLOSS.sub("", answer), _NUMBERED if numbered else _LABELS)


def _read_own(text: str, own: OwnWords) -> Value[str] | Unread:
    # The lead that an answer repeats says nothing; the words of the labels may be several.
    lead = re.escape(own.lead.strip().rstrip(":"))
    plain = re.sub(rf"\A\s*{lead}\s*:?\s*", "", text, flags=re.I) if lead else text
    return read_choice(plain, Choice(options=dict(zip(LABELS, own.answers, strict=True))))
