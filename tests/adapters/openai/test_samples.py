"""Several samples of one question in one call: the same keys, one call, and no token lost or counted twice."""

from __future__ import annotations

from typing import Any

import pytest

from prejudge.adapters.endpoint.samples import share
from prejudge.core.contracts.errors import ModelError, PermanentError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text, Usage
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import chat, problem


def draws(text: str, count: int, **sampling: Any) -> list[Generate]:
    how = Sampling(temperature=1.0, **sampling)
    return [Generate(messages=(Message("user", (Text(text),)),), sampling=how, sample=one) for one in range(count)]


def several(path: str, body: dict[str, Any]) -> dict[str, Any]:
    asked = body["messages"][-1]["content"]
    choices = [
        {"index": place, "message": {"role": "assistant", "content": f"{asked}{place}"}, "finish_reason": "stop"}
        for place in reversed(range(body.get("n", 1)))
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 5}}
    return {"choices": choices, "usage": usage}


def test_samples_of_one_question_are_one_call(ask, server):
    server.model = several
    answers = ask(*draws("a", 3), *draws("b", 1), *draws("a", 5)[3:], samples_per_call=4)
    assert [answer.text for answer in answers] == ["a0", "a1", "a2", "b0", "a3", "a0"]
    assert sorted(seen.body.get("n", 1) for seen in server.seen) == [1, 1, 4]


def test_no_token_is_lost(ask, server):
    server.model = several
    answers = ask(*draws("a", 4), samples_per_call=4)
    assert sum(answer.usage.input_tokens for answer in answers) == 10
    assert sum(answer.usage.output_tokens for answer in answers) == 7
    assert sum(answer.usage.reasoning_tokens for answer in answers) == 5
    assert all(answer.usage.reasoning_tokens <= answer.usage.output_tokens for answer in answers)


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 128])
def test_shares_add_up(parts):
    whole = Usage(input_tokens=1001, output_tokens=977, reasoning_tokens=900, cached_tokens=3)
    shares = share(whole, parts)
    assert len(shares) == parts
    for name in whole.__struct_fields__:
        assert sum(getattr(one, name) for one in shares) == getattr(whole, name)


def test_endpoint_that_does_not_know_n_answers_one_and_says_so(ask, server):
    server.model = lambda path, body: several(path, body | {"n": 1})
    first, *others = ask(*draws("a", 3), samples_per_call=3)
    assert isinstance(first, Generation) and first.usage.output_tokens == 7
    assert {one.code for one in others} == {"endpoint.samples"} and isinstance(others[0], PermanentError)


def test_failure_and_filter_are_those_of_all_samples(ask, server):
    server.plan = [Reply(500, problem(None)), Reply(400, problem("content_filter"))]
    failed = ask(*draws("a", 2), samples_per_call=2)
    assert all(isinstance(one, TransientError) for one in failed)
    filtered = ask(*draws("a", 2), samples_per_call=2)
    assert [one.status for one in filtered] == ["filtered"] * 2


def test_sample_that_broke_off_leaves_the_others(ask, server):
    reply = several("", {"messages": [{"content": "a"}], "n": 2})
    reply["choices"][0] |= {"error": {"message": "lost"}}  # index 1
    server.plan = [Reply(body=reply)]
    whole, broken = ask(*draws("a", 2), samples_per_call=2)
    assert whole.text == "a0" and isinstance(broken, ModelError) and broken.code == "endpoint.broken-off"


def test_requests_that_differ_in_more_than_the_sample_are_calls_of_their_own(ask, server):
    server.model = several
    ask(*draws("a", 2), *draws("a", 2, max_tokens=5), samples_per_call=4)
    assert [seen.body.get("n", 1) for seen in server.seen] == [2, 2]


class TestFieldsBeyond:
    def ask_for(self, **sampling: Any) -> Generate:
        return draws("a", 1, **sampling)[0]

    def test_fields_that_the_endpoint_takes_are_sent(self, ask, server):
        server.plan = [Reply(body=chat("yes")) for _ in range(2)]
        wish = Generate(messages=(Message("user", (Text("a"),)),), choices=("yes", "no"))
        ask(self.ask_for(top_k=5, min_p=0.1), wish, takes=["top_k", "min_p", "choices"])
        bodies = sorted((seen.body for seen in server.seen), key=lambda body: "top_k" in body)
        assert bodies[0]["structured_outputs"] == {"choice": ["yes", "no"]}
        assert (bodies[1]["top_k"], bodies[1]["min_p"]) == (5, 0.1)

    def test_others_are_refused_before_they_are_sent(self, ask, server):
        answers = ask(self.ask_for(top_k=5), self.ask_for(min_p=0.1), self.ask_for())
        assert [getattr(one, "code", "") for one in answers] == ["request.unsupported", "request.unsupported", ""]
        assert len(server.seen) == 1

    def test_schema_is_sent_in_the_api_s_own_way(self, ask, server):
        server.plan = [Reply(body=chat("{}"))]
        schema = '{"type": "object", "properties": {}}'
        ask(Generate(messages=(Message("user", (Text("a"),)),), json_schema=schema))
        sent = server.seen[0].body["response_format"]["json_schema"]
        assert sent["strict"] is True and sent["schema"] == {"type": "object", "properties": {}}

    @pytest.mark.parametrize("schema", ["{", "[]", "3"])
    def test_schema_that_is_none_is_refused(self, ask, server, schema):
        (error,) = ask(Generate(messages=(Message("user", (Text("a"),)),), json_schema=schema))
        assert error.code == "request.value" and not server.seen
