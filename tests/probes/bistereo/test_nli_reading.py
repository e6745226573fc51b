"""The label that is read in answers in words, and that no label is read more readily than another."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from prejudge.core.contracts import Unreadable
from prejudge.probes.bistereo.nli_reading import DENIED, EMPTY, OTHER, SEVERAL, read_words

from .nli_answers import LABELS, LEFT, NATURAL, NUMBERED, READ, UNREADABLE, filled, orders

KINDS = {EMPTY, SEVERAL, DENIED, OTHER}
TEMPLATES = [
    *((text, "a", False) for text in READ.values()),
    *((text, "c", False) for text in LEFT.values()),
    *((text, None, False) for text in UNREADABLE.values()),
    *((text, place, True) for text, place in NUMBERED.items()),
]


def read(text: str, *, numbered: bool = False) -> str | None:
    found = read_words(text, numbered=numbered)
    assert isinstance(found, Unreadable) or found in LABELS
    assert not isinstance(found, Unreadable) or found.reason in KINDS
    return None if isinstance(found, Unreadable) else found


def test_table_is_large_and_balanced():
    answers = [filled(text, *order) for text, _, _ in TEMPLATES for order in orders()]
    assert len(set(answers)) >= 120
    for table in (READ, LEFT):
        expected = Counter(dict(zip("abc", o, strict=True))["c" if table is LEFT else "a"] for o in orders())
        assert len(set(expected.values())) == 1
    assert len(set(Counter(NATURAL.values()).values())) == 1


@pytest.mark.parametrize(("template", "place", "numbered"), TEMPLATES)
def test_template_is_read_alike_for_every_label(template, place, numbered):
    for order in orders():
        expected = None if place is None else dict(zip("abc", order, strict=True))[place]
        answer = filled(template, *order)
        assert read(answer, numbered=numbered) == expected, answer


@pytest.mark.parametrize(("answer", "label"), NATURAL.items())
def test_natural_answer_is_read(answer, label):
    assert read(answer) == label


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", EMPTY), ("<think>It is neutral", EMPTY), ("Neutral or entailment", SEVERAL), ("Not neutral", DENIED)],
)
def test_what_cannot_be_read_has_a_kind(text, kind):
    assert read_words(text, numbered=False) == Unreadable(kind)


@pytest.mark.parametrize("text", ["Yes", "2", "The texts differ.", "not_entailment", "neutral-toned", "True"])
def test_answer_without_a_label_is_other_words(text):
    assert read_words(text, numbered=False) == Unreadable(OTHER)


def test_hostile_answers_are_read_in_time():
    begun = time.process_time()
    for text in ("not ", "Neutral: ", "((((", "neutral, ", "-----", "premise ", "neutral"):
        read_words(text * 20_000, numbered=True)
    assert time.process_time() - begun < 30
