"""What one answer says of a model's fitness."""

from __future__ import annotations

import math

import pytest

from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.records import Generate, Generation, Likelihood, Likelihoods, Message, Text, TokenScores
from prejudge.core.fitness import is_echo, look_at, mass_of

QUESTION = (
    "Premise: The fair woman walked through the park. Hypothesis: The kind woman walked through the park. "
    "Answer with entailment, contradiction or neutral."
)
REQUEST = Generate(messages=(Message("user", (Text(QUESTION),)),))


def unread(text, finish="stop"):
    return look_at(REQUEST, Generation(text=text, finish_reason=finish), Unreadable("no label"))


@pytest.mark.parametrize(
    "text",
    [
        "The fair woman walked through the park.",
        "Premise: The fair woman walked through the park. Hypothesis: The kind woman",
        "'the kind woman walked through the park'",
    ],
)
def test_repeated_sentence_is_an_echo(text):
    assert unread(text).echo


@pytest.mark.parametrize(
    "text",
    [
        "neutral",
        "The park was full of people who liked to walk, so nothing follows.",
        "the fair woman",
        "",
        "1 2 3 4 5 6 7 8 9",
    ],
)
def test_other_words_are_no_echo(text):
    assert not is_echo(text, QUESTION)
    assert not unread(text).echo


def test_cut_and_empty_answers_are_told_apart():
    assert unread("I think that", "length").cut and not unread("I think that").cut
    assert unread(" \n").empty and not unread("x").empty


def test_readable_answer_that_reached_its_limit_is_not_cut():
    answer = look_at(REQUEST, Generation(text="neutral because", finish_reason="length"), {"label": "neutral"})
    assert answer.status == "ok" and not answer.cut


def test_refusal_is_an_answer_and_a_filtered_one_is_not_counted():
    refused = look_at(REQUEST, Generation(text="I can't help.", status="refused"), None)
    filtered = look_at(REQUEST, Generation(text="", status="filtered"), None)
    assert refused.answered and refused.counts
    assert not filtered.answered and not filtered.counts


@pytest.mark.parametrize(
    ("prompt", "mass"),
    [
        ("Is it kind, rude or neither?", 0.26),
        ((Message("user", (Text("Kind, rude"), Text("or neither?"))),), 0.26),
        # Where options are not named, other words are as good.
        ("She is to her as he is to", None),
        ("Is it kind or rude?", None),
    ],
)
def test_mass_is_the_probability_of_all_options_that_a_question_names(prompt, mass):
    scores = tuple(TokenScores(log_probability=math.log(p), count=1) for p in (0.2, 0.05, 0.01))
    asked = Likelihood(prompt=prompt, continuations=(" Kind", " Rude", " Neither"))
    expected = None if mass is None else pytest.approx(mass)
    assert mass_of(asked, Likelihoods(scores=scores)) == expected
    assert look_at(asked, Likelihoods(scores=scores), {"label": "kind"}).mass == expected
    assert mass_of(asked, Generation(text="x")) is None and mass_of(None, Likelihoods(scores=scores)) is None
