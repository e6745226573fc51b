"""`openai`: a probability per label."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.errors import PermanentError, UnsupportedOperationError, UsageError
from prejudge.core.contracts.records import Classify
from prejudge.core.engine.reading import NO_LABEL, as_read, read_answer
from prejudge.testing import Reply, raises_code
from prejudge.testing.chaos.tiny import chat, expected, log_probability, problem

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
    server.plan = [Reply(body={"answers": [{"type": "refusal", "name": "label"}]})]
    (answer,) = ask(GOOD, classify="decisions", labels=LABELS)
    assert (answer.status, answer.probabilities) == ("refused", {})


def test_systemone_is_asked(ask, server):
    (answer,) = ask(GOOD, classify="systemone", labels=LABELS)
    assert answer.probabilities == {"good": 0.5, "bad": 0.5}
    assert server.seen[0].body["questions"]["label"]["criteria"] == {"good": None, "bad": None}


def test_untold_label_is_an_error(ask, server):
    shares = [{"value": "good", "probability": 1.0}]
    server.plan = [Reply(body={"answers": [{"type": "choice", "probabilities": shares}]})]
    assert isinstance(ask(GOOD, classify="decisions", labels=LABELS)[0], PermanentError)


@pytest.mark.parametrize("said", ["good", " Good.\n", "**GOOD**", '"good"', "\u201cgood.\u201d"])
def test_label_in_words_is_read(ask, server, said):
    server.plan = [Reply(body=chat(said))]
    (answer,) = ask(GOOD, classify="generate", labels=LABELS)
    assert (answer.status, answer.probabilities) == ("ok", {"good": 1.0, "bad": 0.0})
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)


@pytest.mark.parametrize(
    "said", ["", ".", "not good", "good or bad", "good\nbad", "Label: good", "goodness", "good, I think", "1", "good!"]
)
def test_words_that_are_no_label_are_never_guessed(ask, server, said):
    server.plan = [Reply(body=chat(said))]
    (answer,) = ask(GOOD, classify="generate", labels=LABELS)
    assert (answer.status, answer.probabilities, answer.text) == ("ok", {}, said)
    stage = SimpleNamespace(read=lambda factors, response: pytest.fail("a stage has no label to read"))
    assert read_answer(stage, {}, answer) == Unreadable(NO_LABEL)


def test_label_that_was_cut_off_is_not_read(ask, server):
    server.plan = [Reply(body=chat("good", "length"))]
    (answer,) = ask(GOOD, classify="generate", labels=("good", "good enough"))
    assert isinstance(answer, PermanentError)


def test_words_are_asked_for_greedily_with_all_labels(ask, server):
    ask(GOOD, classify="generate", labels=LABELS, system_prompt="Be fair.")
    body = server.seen[0].body
    assert body["messages"][0] == {"role": "system", "content": "Be fair."}
    assert "good, bad" in body["messages"][1]["content"] and "It is {fine}." in body["messages"][1]["content"]
    assert (body["temperature"], body["max_tokens"]) == (0.0, 64)


def test_room_for_words_is_that_of_the_settings(ask, server):
    ask(GOOD, classify="generate", labels=LABELS, max_tokens=900)
    assert server.seen[0].body["max_tokens"] == 900


@pytest.mark.parametrize("body", [chat("I'm sorry, but I can't help with that."), chat(None, refusal="No.")])
def test_refused_words_are_refused(ask, server, body):
    server.plan = [Reply(body=body)]
    (answer,) = ask(GOOD, classify="generate", labels=LABELS)
    assert (as_read(answer).status, answer.probabilities) == ("refused", {})


def test_label_that_reads_like_a_refusal_is_a_label(ask, server):
    server.plan = [Reply(body=chat("I can't answer"))]
    (answer,) = ask(GOOD, classify="generate", labels=("yes", "I can't answer"))
    assert answer.probabilities == {"yes": 0.0, "I can't answer": 1.0}


def test_filtered_words_are_filtered(ask, server):
    server.plan = [Reply(body=chat("good", "content_filter"))]
    (answer,) = ask(GOOD, classify="generate", labels=LABELS)
    assert (answer.status, answer.probabilities) == ("filtered", {})


@pytest.mark.parametrize("way", ["likelihood", "generate", "decisions", "systemone"])
def test_filtered_question_is_filtered(ask, server, way):
    server.plan = [Reply(400, problem("content_filter"))]
    (answer,) = ask(GOOD, classify=way, labels=LABELS, likelihood="echo")
    assert (answer.status, answer.probabilities) == ("filtered", {})


def test_pair_goes_where_the_prompt_says(ask, server):
    ask(Classify(text="a {pair}", pair="b"), classify="systemone", labels=LABELS, classify_prompt="{text} => {pair}")
    assert server.seen[0].body["state"] == "a {pair} => b"


@pytest.mark.parametrize(("pair", "template"), [("b", "{text}"), (None, "{text} {pair}")])
def test_pair_and_prompt_must_agree(ask, pair, template):
    (answer,) = ask(Classify(text="a", pair=pair), classify="systemone", labels=LABELS, classify_prompt=template)
    assert isinstance(answer, PermanentError)


def test_without_labels_it_is_refused(ask):
    with raises_code(UnsupportedOperationError, "model.operation", "labels"):
        ask(GOOD)


@pytest.mark.parametrize(
    "settings",
    [
        {"classify": "decisions"},
        {"classify": "decisions", "labels": ("good",)},
        {"classify": "decisions", "labels": ("good", " good")},
        {"classify": "likelihood", "labels": LABELS},
        {"classify": "decisions", "labels": LABELS, "classify_prompt": "no place"},
        {"classify": "generate", "labels": ("US", "us")},
        {"classify": "generate", "labels": ("good", "*")},
        {"classify": "generate", "labels": LABELS, "classify_prompt": "{text}: good or not?"},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(UsageError):
        OpenAIApi(OpenAIOptions(model="tiny", **settings))
