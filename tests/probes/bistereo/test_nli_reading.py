"""The label that is read in answers in words, and that no label is read more readily than another."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prejudge.core.reading.results import REASONS, Unread, Value
from prejudge.probes.bistereo.nli_reading import read_words

from ...core.reading.answer_kinds import PAIR, kinds_of, labelled
from .nli_answers import LABELS, LEFT, NATURAL, NUMBERED, READ, UNREADABLE, filled, orders

DATA = Path(__file__).parents[4] / "shared" / "data"
KINDS = kinds_of("stated")
PIECES = [
    "entailment",
    "neutral",
    "contradiction",
    "not",
    "The",
    "answer",
    "is",
    ",",
    "or",
    ".",
    "\n",
    "?",
    "premise",
    ":",
    "so",
]
TEMPLATES = [
    *((text, "a", False) for text in READ.values()),
    *((text, "c", False) for text in LEFT.values()),
    *((text, None, False) for text in UNREADABLE.values()),
    *((text, place, True) for text, place in NUMBERED.items()),
]


def read(text: str, *, numbered: bool = False) -> str | None:
    found = read_words(text, numbered=numbered, pair=PAIR)
    assert found.value in LABELS if isinstance(found, Value) else found.reason in REASONS
    return found.value if isinstance(found, Value) else None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kind_is_read_alike_for_every_label(kind):
    for text, expected in labelled(kind):
        assert read(text) == expected, text


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
    ("text", "reason"),
    [
        ("", "an empty answer"),
        ("Neutral or entailment", "several answers"),
        ("Not neutral", "a denied answer"),
        ("Is it neutral?", "an answer among other words"),
        *((text, "other words") for text in ("Yes", "2", "The texts differ.", "not_entailment", "neutral-toned")),
    ],
)
def test_what_is_not_read_has_a_reason(text, reason):
    assert read_words(text, numbered=False) == Unread(reason)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)))
def test_no_text_raises_and_exchanged_labels_exchange_what_is_read(text):
    text = text.replace("\0", "")
    exchanged = text.replace("entailment", "\0").replace("neutral", "entailment").replace("\0", "neutral")
    if not set("0123456789") & set(text):
        swap = {"entailment": "neutral", "neutral": "entailment"}
        plain = read(text)
        assert read(exchanged) == swap.get(plain, plain)


@pytest.mark.skipif(not DATA.exists(), reason="the cases are not beside this checkout")
def test_cases_without_reasoning_are_read_as_they_must_be():
    cases = [json.loads(line) for line in (DATA / "cases" / "answers.jsonl").read_text("utf-8").splitlines()]
    own = [case for case in cases if case["reader"] == "nli" and "reasoning in the text" not in case["source"]]
    assert own and all(read(case["text"]) == case["must"] for case in own)


def test_hostile_answers_are_read_in_time():
    begun = time.process_time()
    for text in ("not ", "Neutral: ", "((((", "neutral, ", "-----", "premise ", "neutral"):
        read_words(text * 20_000, numbered=True)
    assert time.process_time() - begun < 30
