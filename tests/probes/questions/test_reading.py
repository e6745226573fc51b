"""What answers become, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from prejudge import Unreadable
from prejudge.core.contracts.records import Classification, Generation, Likelihoods, TokenScores
from prejudge.probes.questions.asking import read_judgement, read_likelihoods, read_words
from prejudge.probes.questions.declared import AnswerDeclared

OPTIONS = {"invite": "Invite them", "reject": "Turn them down"}
CHOICE = AnswerDeclared("choice", options=OPTIONS)
ROW = dict(OPTIONS)


def scores(*logs: float) -> Likelihoods:
    return Likelihoods(scores=tuple(TokenScores(log_probability=log, count=1) for log in logs))


@pytest.mark.parametrize(
    ("text", "shown", "name"),
    [
        ("A", ["invite", "reject"], "invite"),
        ("A", ["reject", "invite"], "reject"),
        ("B) Turn them down", ["invite", "reject"], "reject"),
        ("Turn them down", ["invite", "reject"], "reject"),
        ("The answer is (A).", ["reject", "invite"], "reject"),
    ],
)
def test_letter_stands_for_the_option_at_its_place(text, shown, name):
    row = read_words(CHOICE, Generation(text=text), shown, ROW)
    assert row == {"outcome": float(name == "invite"), "label": name}


def test_values_say_the_number_of_an_option():
    answer = AnswerDeclared("choice", options=("a good man", "a bad man", "unknown"), values={"a bad man": -1})
    row = read_words(answer, Generation(text="B"), ["a good man", "a bad man", "unknown"], {})
    assert row == {"outcome": -1.0, "label": "a bad man"}


@pytest.mark.parametrize(
    ("form", "text", "status", "outcome"),
    [
        ("yes_no", "Yes, I would.", "ok", 1.0),
        ("yes_no", "No.", "ok", 0.0),
        ("length", "It's a well-known fact, 3 times.", "ok", 6.0),
        ("length", "", "ok", 0.0),
        ("refusal", "I cannot help with that.", "ok", 1.0),
        ("refusal", "Prepare well.", "ok", 0.0),
        ("refusal", "", "filtered", 1.0),
        ("number", "I would say 7.", "ok", 7.0),
    ],
)
def test_words_become_numbers(form: Any, text, status: Any, outcome):
    answer = AnswerDeclared(form, range=(1, 10))
    row = read_words(answer, Generation(text=text, status=status), ["yes", "no"], {})
    assert not isinstance(row, Unreadable)
    assert row["outcome"] == outcome


@pytest.mark.parametrize("text", ["11", "nothing", "7 or 8"])
def test_number_out_of_range_or_unclear_is_unreadable(text):
    assert isinstance(read_words(AnswerDeclared("number", range=(1, 10)), Generation(text=text), [], {}), Unreadable)


def test_likelihoods_of_numbers_give_the_expected_number():
    shares = (0.2, 0.5, 0.3)
    row = read_likelihoods(AnswerDeclared("number", range=(1, 3)), scores(*(math.log(share) - 40 for share in shares)))
    assert not isinstance(row, Unreadable)
    assert row["outcome"] == pytest.approx(0.2 + 2 * 0.5 + 3 * 0.3)


def test_likelihoods_of_options_give_share_and_label():
    row = read_likelihoods(CHOICE, scores(math.log(0.3), math.log(0.1)))
    assert not isinstance(row, Unreadable)
    assert row["outcome"] == pytest.approx(0.75)
    assert row["label"] == "invite"


@pytest.mark.parametrize("logs", [(math.nan, -1.0), (-1.0,), (-math.inf, -math.inf)])
def test_likelihoods_that_are_none_are_unreadable(logs):
    assert isinstance(read_likelihoods(CHOICE, scores(*logs)), Unreadable)


def test_continuation_is_its_log_probability():
    assert read_likelihoods(AnswerDeclared("continuation"), scores(-3.5)) == {"outcome": -3.5, "label": None}
    assert isinstance(read_likelihoods(AnswerDeclared("continuation"), scores(math.nan)), Unreadable)


def test_judge_and_classifier():
    judged = AnswerDeclared("judged", judge="{answer}?", range=(1, 5))
    assert read_judgement(judged, Generation(text="4")) == {"outcome": 4.0, "label": None}
    assert read_judgement(AnswerDeclared("judged", judge="{answer}?"), Generation(text="no")) == {
        "outcome": 0.0,
        "label": "no",
    }
    labelled = AnswerDeclared("judged", label="Kind")
    classified = Classification(probabilities={"kind": 0.25, "rude": 0.75})
    assert read_judgement(labelled, classified) == {"outcome": 0.25, "label": "rude"}
    assert isinstance(read_judgement(AnswerDeclared("judged", label="x"), classified), Unreadable)
