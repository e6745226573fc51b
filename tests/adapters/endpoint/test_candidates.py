"""Several candidates of one call of Gemini: each has its own end, and no token is lost or counted twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prejudge.core.contracts.errors import PermanentError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text
from prejudge.testing import Reply

from .documented import PROVIDERS, google_error, told

COUNTS = {"promptTokenCount": 20, "candidatesTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 35}


def draws(text: str, count: int, **sampling: Any) -> list[Generate]:
    how = Sampling(temperature=1.0, max_tokens=50, **sampling)
    return [Generate(messages=(Message("user", (Text(text),)),), sampling=how, sample=one) for one in range(count)]


def candidate(index: int, text: str | None, finish: str = "STOP") -> dict[str, Any]:
    content = {"role": "model"} | ({"parts": [{"text": text}]} if text is not None else {})
    # Proto3 leaves out an index of 0.
    return {"content": content, "finishReason": finish} | ({"index": index} if index else {})


def several(*candidates: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": list(candidates), "usageMetadata": COUNTS, "modelVersion": "tiny"}


def test_samples_of_one_question_are_one_call(ask, server):
    def answer(path: str, body: dict[str, Any]) -> dict[str, Any]:
        said = body["contents"][-1]["parts"][0]["text"]
        count = body["generationConfig"].get("candidateCount", 1)
        return several(*(candidate(place, f"{said}{place}") for place in reversed(range(count))))

    server.model = answer
    answers = ask("gemini", *draws("a", 3), *draws("b", 1), *draws("a", 5)[3:], samples_per_call=4)
    assert [answer.text for answer in answers] == ["a0", "a1", "a2", "b0", "a3", "a0"]
    configs = sorted((seen.body["generationConfig"] for seen in server.seen), key=lambda c: c.get("candidateCount", 0))
    assert [config.get("candidateCount") for config in configs] == [None, None, 4]
    assert all(config["maxOutputTokens"] == 50 for config in configs)


def test_each_candidate_has_its_own_end_and_the_tokens_add_up(ask, server):
    mixed = (candidate(1, None, "SAFETY"), candidate(0, "whole"), candidate(2, "cut", "MAX_TOKENS"))
    server.plan = [told(several(*mixed, candidate(3, "odd", "MALFORMED_RESPONSE")))]
    whole, stopped, cut, broken = ask("gemini", *draws("a", 4), samples_per_call=4)
    assert [(one.text, one.status, one.finish_reason) for one in (whole, stopped, cut)] == [
        ("whole", "ok", "STOP"),
        ("", "filtered", "SAFETY"),
        ("cut", "ok", "MAX_TOKENS"),
    ]
    assert isinstance(broken, TransientError) and json.loads(stopped.reply)["candidates"] and not whole.reply
    assert [one.usage.input_tokens for one in (whole, stopped, cut)] == [5, 5, 5]
    assert sum(one.usage.output_tokens for one in (whole, stopped, cut)) == 15 - 15 // 4


def test_blocked_prompt_is_blocked_for_all(ask, server):
    server.plan = [told({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}})]
    answers = ask("gemini", *draws("a", 4), samples_per_call=4)
    assert [(one.status, one.finish_reason) for one in answers] == [("filtered", "SAFETY")] * 4
    assert sum(one.usage.input_tokens for one in answers) == 9


@pytest.mark.parametrize(
    "said",
    [
        "Multiple candidates is not enabled for this model",
        "Only one candidate can be specified",
        "Unable to submit request because candidateCount must be 1 but the entered value was 3.",
    ],
)
def test_model_that_gives_one_says_so(ask, server, said):
    server.plan = [Reply(400, google_error(400, "INVALID_ARGUMENT", said)), told(PROVIDERS["gemini"].answer("A."))]
    errors = ask("gemini", *draws("a", 3), samples_per_call=3)
    assert {one.code for one in errors} == {"endpoint.samples"} and len(server.seen) == 1
    assert said.rstrip(".") in str(errors[0]) and "samples_per_call = 1" in str(errors[0])
    (alone,) = ask("gemini", *draws("a", 1), samples_per_call=3)
    assert isinstance(alone, Generation)


def test_candidates_that_are_missing_or_too_many(ask, server):
    server.plan = [told(several(candidate(0, "a"), candidate(2, "c")))]
    first, second, missing = ask("gemini", *draws("a", 3), samples_per_call=3)
    assert (first.text, second.text, missing.code) == ("a", "c", "endpoint.samples")
    assert isinstance(missing, PermanentError)
    server.plan = [told(several(*(candidate(place, str(place)) for place in range(4))))]
    answers = ask("gemini", *draws("b", 2), samples_per_call=2)
    assert sum(one.usage.output_tokens for one in answers) == 15


def test_other_refusals_stay_what_they_are(ask, server):
    server.plan = [Reply(400, google_error(400, "INVALID_ARGUMENT", "The schema is invalid.")), Reply(503)]
    refused = ask("gemini", *draws("a", 2), samples_per_call=2)
    assert {one.code for one in refused} == {"endpoint.refused"}
    assert all(isinstance(one, TransientError) for one in ask("gemini", *draws("b", 2), samples_per_call=2))
