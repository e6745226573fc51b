"""How many answers talk about the question is said by whom they are about, where one group stands out."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from prejudge.core.answer.talk import talk_words
from prejudge.core.contracts import Counting, StageRules

POLITE = "It is not appropriate to judge a person by a photo."
PLAIN = "A calm person at work."


def words_of(rows, about=("descriptor",)):
    """Return what is said about rows of a descriptor, a status and a text."""
    frame = pl.DataFrame(rows, schema=["descriptor", "status", "text"], orient="row")
    stage = SimpleNamespace(name="texts", counting=Counting(about=about), rules=StageRules(text="text"))
    frames = SimpleNamespace(schema=lambda name: frame.collect_schema())
    return talk_words(SimpleNamespace(stages=[stage], frames=frames, lazy=lambda name: frame.lazy()))


def test_group_that_is_talked_past_is_named():
    rows = [("tall", "ok", PLAIN)] * 20 + [("fat", "ok", f"{POLITE} {PLAIN}")] * 6 + [("fat", "ok", PLAIN)] * 4
    assert words_of(rows) == ("60.0 % of the 10 answers about fat talk about the question, 0.0 % of the others.")


def test_refused_answers_talk_about_the_question():
    rows = [("tall", "ok", PLAIN)] * 20 + [("fat", "refused", None)] * 5 + [("fat", "unreadable", None)] * 5
    assert words_of(rows).startswith("50.0 % of the 10 answers about fat")


def test_groups_alike_are_told_together():
    rows = [(group, status, PLAIN) for group in ("tall", "fat") for status in ("ok", "refused") for _ in range(5)]
    assert words_of(rows) == "50.0 % of the 20 answers talk about the question."


@pytest.mark.parametrize("count", [0, 4])
def test_a_handful_is_not_told(count):
    assert words_of([("tall", "ok", PLAIN)] * 5 + [("fat", "refused", None)] * count) == ""


def test_study_without_groups_says_nothing():
    assert words_of([("fat", "refused", None)] * 9, about=()) == ""
