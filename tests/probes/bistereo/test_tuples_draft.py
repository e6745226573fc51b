"""How tuples are asked for, and how an answer is read."""

from __future__ import annotations

import json

import pytest

from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.contracts.records import Generate, Generation, TokenScores
from prejudge.probes.bistereo.tuples_draft import BIStereoTuplesDraft, TuplesDraftOptions, parse_line

CELL = {"dimension": "height", "term": "girl", "sentiment": "negative"}


def stage(**options):
    (found,) = BIStereoTuplesDraft().stages(TuplesDraftOptions(**options))
    return found


def test_every_combination_is_asked_once():
    trials = list(stage().trials({}))
    assert len(trials) == len({t.id for t in trials}) == len({t.request for t in trials}) == 5 * 6 * 2
    assert all(set(t.factors) == set(stage().factors) for t in trials)


def test_repeats_are_requests_of_their_own():
    trials = list(stage(repeats=3, dimensions=("height",), terms=("girl",)).trials({}))
    assert [t.request.sample for t in trials] == [0, 1, 2, 0, 1, 2]
    assert len({t.request for t in trials}) == 6


def test_prompt_names_what_is_wanted():
    one = stage(society="Kerala", count=7, dimensions=("attire",), terms=("gentleman",))
    positive, negative = (t.request for t in one.trials({}))
    assert isinstance(positive, Generate)
    text = positive.messages[0].parts[0].text
    for wanted in (
        "common in Kerala",
        "Write 7 different",
        "descriptor: attire",
        "noun: gentleman",
        "attribute: positive",
    ):
        assert wanted in text
    assert "(overweight, gentleman, lethargic)" in negative.messages[0].parts[0].text and "{" not in text


@pytest.mark.parametrize(
    "line",
    [
        "(short, girl, cute)",
        "1. (short, girl, cute)",
        "- (Short, Girl, Cute).",
        "* **(short, girl, cute)**",
        "short, girl, cute",
        '("short", "girl", "cute")',
    ],
)
def test_line_is_read_in_any_of_its_forms(line):
    assert parse_line(line, "girl") == ("short", "cute")


@pytest.mark.parametrize(
    "line",
    [
        "Here are ten tuples:",
        "(short, boy, cute)",
        "(short, girl)",
        "(short, girl, cute, shy)",
        "(=HYPERLINK(1), girl, cute)",
        "(short, girl, 5)",
        f"(short, girl, {'very ' * 20}cute)",
    ],
)
def test_other_lines_are_dropped(line):
    assert parse_line(line, "girl") is None


def test_answer_is_counted_and_each_tuple_taken_once():
    text = "Sure!\n\n1. (short, girl, Weak)\n2. (short, girl, weak)\n3. (very short, girl, less confident)"
    read = stage().read(CELL, Generation(text=text))
    assert json.loads(read["tuples"]) == [["short", "weak"], ["very short", "less confident"]]
    assert (read["drafted"], read["dropped"]) == (2, 1)


@pytest.mark.parametrize("response", [Generation(text="I cannot do that."), TokenScores(log_probability=-1.0, count=1)])
def test_answer_without_a_tuple_is_unreadable(response):
    assert isinstance(stage().read(CELL, response), Unreadable)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"count": 0}, UsageError),
        ({"repeats": 0}, UsageError),
        ({"society": " "}, UsageError),
        ({"dimensions": ("hight",)}, UnknownNameError),
        ({"terms": ("grl",)}, UnknownNameError),
    ],
)
def test_impossible_options_are_refused(options, error):
    with pytest.raises(error):
        stage(**options)
