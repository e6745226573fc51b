"""Readers of any text: none raises, none reads what is not named, and none prefers a label."""

from __future__ import annotations

import re
import unicodedata

import hypothesis.strategies as st
from hypothesis import given, settings

from prejudge.core.reading.fields import read_fields
from prejudge.core.reading.label import read_label
from prejudge.core.reading.number import read_number
from prejudge.core.reading.results import REASONS, Unread, Value
from prejudge.core.reading.yes_no import read_yes_no

SIGNS = "()[]{}<>\\$*_`~#:;.,!?|/=-\"'\n \u200b\uff08\uff09"
WORDS = st.sampled_from(
    """answer Answer: is not or and I would pick option because than rather over (p) (q) p q P Q p. q) "p" [q] yes no
    Yes No. true 4 five 3/5 4.5 highly biased if can't choose the picture boxed \\boxed{p} <answer> </answer>
    {"answer": wrong: Antwort: Question: ? , . \n - / = **p** ```""".split()
)
SENTENCES = st.lists(WORDS | st.text(alphabet=SIGNS, max_size=3), max_size=14).map(" ".join)
TEXTS = SENTENCES | st.text(max_size=120)
SWAP = str.maketrans("pqPQ", "qpQP")


def swapped(text):
    return re.sub(r"(?<![^\W_])[pqPQ](?![^\W_])", lambda found: found[0].translate(SWAP), text)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_no_reader_raises_and_reasons_are_of_the_list(text):
    for result in (
        read_label(text, ("p", "q")),
        read_number(text, 1, 5, names={1: "not at all biased", 4: "highly biased"}),
        read_yes_no(text),
        read_fields(text, ("word", "answer")),
    ):
        assert isinstance(result, Value) or result.reason in REASONS


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_label_that_is_read_is_named(text):
    result = read_label(text, ("p", "q"))
    if isinstance(result, Value):
        assert result.value in unicodedata.normalize("NFKC", text).lower()


@settings(max_examples=600, deadline=None)
@given(SENTENCES)
def test_labels_are_read_alike(text):
    result, turned = read_label(text, ("p", "q")), read_label(swapped(text), ("p", "q"))
    if isinstance(result, Unread):
        assert turned == result
    else:
        assert isinstance(turned, Value) and turned.value == result.value.translate(SWAP)


@settings(max_examples=300, deadline=None)
@given(SENTENCES)
def test_number_that_is_read_is_in_the_scale_and_named(text):
    result = read_number(text, 1, 5, names={4: "highly biased"})
    if isinstance(result, Value):
        assert 1 <= result.value <= 5
        assert re.search(rf"{result.value}|five|highly biased", text, re.I)
