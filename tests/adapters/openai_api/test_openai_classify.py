"""`openai`: a probability per label."""

from __future__ import annotations

import math

import pytest
from fault_server import Answer, expected, log_probability

from prejudge.adapters.openai_api import OpenAIApi, OpenAIOptions
from prejudge.core.errors import PermanentError, UnsupportedOperationError, UsageError
from prejudge.core.records import Classify

LABELS = (" good", " bad")
GOOD = Classify(text="It is {fine}.")


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs"])
def test_likelihoods_become_probabilities(ask, way):
    (answer,) = ask(GOOD, likelihood=way, classify="likelihood", labels=LABELS, classify_prompt="Text: {text}\nLabel:")
    sums = [math.exp(sum(expected("Text: It is {fine}.\nLabel:", label))) for label in LABELS]
    assert list(answer.probabilities) == ["good", "bad"]
    assert answer.probabilities["good"] == pytest.approx(sums[0] / sum(sums))
    assert sum(answer.probabilities.values()) == pytest.approx(1.0)


def test_first_token_asks_in_a_conversation(ask, server):
    (answer,) = ask(GOOD, likelihood="first_token", classify="likelihood", labels=("A", "B"), classify_prompt="{text}?")
    ratio = math.exp(log_probability("It is {fine}.?", "A") - log_probability("It is {fine}.?", "B"))
    assert answer.probabilities["A"] / answer.probabilities["B"] == pytest.approx(ratio)
    assert server.seen[0].path == "/chat/completions"


def test_decisions_are_asked(ask, server):
    (answer,) = ask(GOOD, classify="decisions", labels=LABELS, classify_question="Which?")
    assert answer.probabilities == {"good": 0.5, "bad": 0.5}
    (question,) = server.seen[0].body["questions"]
    assert question["choices"] == [{"value": "good"}, {"value": "bad"}]
    assert question["instructions"] == "Which?"


def test_refused_decision_is_refused(ask, server):
    server.plan = [Answer(body={"answers": [{"type": "refusal", "name": "label"}]})]
    (answer,) = ask(GOOD, classify="decisions", labels=LABELS)
    assert (answer.status, answer.probabilities) == ("refused", {})


def test_systemone_is_asked(ask, server):
    (answer,) = ask(GOOD, classify="systemone", labels=LABELS)
    assert answer.probabilities == {"good": 0.5, "bad": 0.5}
    assert server.seen[0].body["questions"]["label"]["criteria"] == {"good": None, "bad": None}


def test_untold_label_is_an_error(ask, server):
    shares = [{"value": "good", "probability": 1.0}]
    server.plan = [Answer(body={"answers": [{"type": "choice", "probabilities": shares}]})]
    assert isinstance(ask(GOOD, classify="decisions", labels=LABELS)[0], PermanentError)


def test_pair_goes_where_the_prompt_says(ask, server):
    ask(Classify(text="a {pair}", pair="b"), classify="systemone", labels=LABELS, classify_prompt="{text} => {pair}")
    assert server.seen[0].body["state"] == "a {pair} => b"


@pytest.mark.parametrize(("pair", "template"), [("b", "{text}"), (None, "{text} {pair}")])
def test_pair_and_prompt_must_agree(ask, pair, template):
    (answer,) = ask(Classify(text="a", pair=pair), classify="systemone", labels=LABELS, classify_prompt=template)
    assert isinstance(answer, PermanentError)


def test_without_labels_it_is_refused(ask):
    with pytest.raises(UnsupportedOperationError, match="labels"):
        ask(GOOD)


@pytest.mark.parametrize(
    "settings",
    [
        {"classify": "decisions"},
        {"classify": "decisions", "labels": ("good",)},
        {"classify": "decisions", "labels": ("good", " good")},
        {"classify": "likelihood", "labels": LABELS},
        {"classify": "decisions", "labels": LABELS, "classify_prompt": "no place"},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(UsageError):
        OpenAIApi(OpenAIOptions(model="tiny", **settings))
