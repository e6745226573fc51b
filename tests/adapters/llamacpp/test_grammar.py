"""`llamacpp`: answers that must be one of some choices or fit a schema, and limits of draws."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from prejudge.adapters.llamacpp.sampling import draw, log_softmax
from prejudge.core.contracts.records import Generate, Sampling

from .asking import Pair, ask, say

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")


def bound(seed: int, **more: object) -> Generate:
    return msgspec.structs.replace(say("one two", temperature=1.0, seed=seed, max_tokens=40), **more)


def test_answer_is_one_of_the_choices(pair: Pair) -> None:
    choices = ("yes", "no", 'a "b"\n\u00fc')
    answers = ask(pair[0], [bound(seed, choices=choices) for seed in range(12)])
    texts = {answer.text for answer in answers}
    assert texts <= set(choices) and len(texts) > 1
    assert all(answer.finish_reason == "stop" for answer in answers)


def test_answer_fits_the_schema(pair: Pair) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    answers = ask(pair[0], [bound(seed, json_schema=json.dumps(schema)) for seed in range(6)])
    assert {json.loads(answer.text)["a"] for answer in answers} <= {"x", "y"}


def test_bound_answers_leave_free_ones_as_they_are(pair: Pair) -> None:
    (alone,) = ask(pair[0], [bound(3)])
    _, behind = ask(pair[0], [bound(1, choices=("yes",)), bound(3)])
    assert alone == behind


@pytest.mark.parametrize("schema", ["{", '{"type": "no-such-type"}'])
def test_schema_that_is_none_is_refused(pair: Pair, schema: str) -> None:
    (error,) = ask(pair[0], [bound(1, json_schema=schema)])
    assert error.code == "request.value"


def test_schema_and_choices_together_are_refused(pair: Pair) -> None:
    (error,) = ask(pair[0], [bound(1, json_schema="{}", choices=("a",))])
    assert error.code == "request.value"


@pytest.mark.parametrize("sampling", [{"top_k": 0}, {"min_p": 1.5}, {"min_p": -0.1}])
def test_limits_out_of_range_are_refused(pair: Pair, sampling: dict[str, float]) -> None:
    (error,) = ask(pair[0], [say("one", temperature=1.0, **sampling)])
    assert error.code == "request.value"


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_k": 1}, {0}),
        ({"min_p": 0.5}, {0, 1}),
        ({"min_p": 0.25}, {0, 1, 2}),
        ({"top_k": 3, "min_p": 0.7, "top_p": 0.9}, {0}),
        ({}, {0, 1, 2, 3}),
    ],
)
def test_limits_rule_tokens_out(limits: dict[str, float], kept: set[int]) -> None:
    row = log_softmax(np.log(np.array([0.5, 0.25, 0.15, 0.1])))
    points = (np.arange(1000) + 0.5) / 1000
    drawn = [draw(row, Sampling(temperature=1.0, **limits), float(point)) for point in points]  # type: ignore[arg-type]
    assert set(drawn) == kept
    weights = {token: float(np.exp(row[token])) for token in kept}
    for token, weight in weights.items():
        assert drawn.count(token) / 1000 == pytest.approx(weight / sum(weights.values()), abs=0.002)
