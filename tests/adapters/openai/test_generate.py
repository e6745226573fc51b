"""`openai`: generation, and the signals of a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prejudge.core.contracts.errors import PermanentError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text, Usage
from prejudge.core.engine.reading import as_read
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import chat, problem


def say(text: str, **fields: Any) -> Generate:
    return Generate(messages=(Message("user", (Text(text),)),), **fields)


def test_generate_answers(ask, transport):
    (answer,) = ask(say("hello"), transport=transport)
    assert answer == Generation(text="HELLO", finish_reason="stop", usage=Usage(input_tokens=7, output_tokens=3))


def test_answers_keep_their_order(ask, server):
    server.delay = 0.01
    assert [answer.text for answer in ask(*(say(f"n{i}") for i in range(20)))] == [f"N{i}" for i in range(20)]


def test_open_choices_are_not_sent(ask, server):
    ask(say("hello"))
    assert server.seen[0].body == {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}


def test_sampling_is_sent(ask, server):
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=5, stop=("x",), seed=3)
    ask(say("hello", sampling=sampling))
    sent = {name: server.seen[0].body[name] for name in ("temperature", "top_p", "max_tokens", "stop", "seed")}
    assert sent == {"temperature": 0.5, "top_p": 0.9, "max_tokens": 5, "stop": ["x"], "seed": 3}


def test_temperature_zero_is_sent(ask, server):
    ask(say("hello", sampling=Sampling(temperature=0.0)))
    assert server.seen[0].body["temperature"] == 0.0


def test_limit_of_settings_fills_in(ask, server):
    ask(say("a"), say("b", sampling=Sampling(max_tokens=2)), max_tokens=9, max_tokens_field="max_completion_tokens")
    assert {seen.body["messages"][0]["content"]: seen.body["max_completion_tokens"] for seen in server.seen} == {
        "a": 9,
        "b": 2,
    }


def test_repeats_have_seeds_of_their_own(ask, server):
    seeded = Sampling(seed=3)
    ask(*(say("a", sampling=seeded, sample=i) for i in range(3)), say("a", sampling=seeded, attempt=1), concurrency=1)
    seeds = [seen.body["seed"] for seen in server.seen]
    assert len(set(seeds)) == 4
    assert 3 in seeds
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_system_prompt_comes_first(ask, server):
    ask(say("hello"), system_prompt="Be brief.")
    assert server.seen[0].body["messages"][0] == {"role": "system", "content": "Be brief."}


def test_system_prompts_become_one(ask, server):
    own = Message("system", (Text("Be kind."),))
    ask(Generate(messages=(own, Message("user", (Text("q"),)))), system_prompt="Be brief.")
    assert [(m["role"], m["content"]) for m in server.seen[0].body["messages"]] == [
        ("system", "Be brief.\n\nBe kind."),
        ("user", "q"),
    ]


def test_fields_that_an_endpoint_refuses_are_not_sent(ask, server):
    request = say("a", sampling=Sampling(temperature=0.5, max_tokens=9, stop=("\n",)))
    ask(request, omit=("temperature", "stop"))
    sent = server.seen[0].body
    assert "temperature" not in sent and "stop" not in sent and 9 in sent.values()


def test_extra_body_is_sent_and_null_drops(ask, server):
    ask(say("a", sampling=Sampling(temperature=0.5)), extra_body={"top_k": 20, "temperature": None})
    assert server.seen[0].body["top_k"] == 20
    assert "temperature" not in server.seen[0].body


def test_alternatives_are_reported(ask):
    (answer,) = ask(say("q", top_logprobs=3))
    assert [one.token for one in answer.top_logprobs[0]] == ["A", "B", "C"]


def test_missing_alternatives_are_an_error(ask, server):
    server.plan = [Reply(body=chat("yes"))]
    (answer,) = ask(say("q", top_logprobs=3))
    assert isinstance(answer, PermanentError)
    assert answer.code == "endpoint.no-logprobs"


def test_marker_of_absence_is_no_log_probability(ask, server):
    body = chat("yes")
    alternatives = [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -9999.0}]
    body["choices"][0]["logprobs"] = {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": alternatives}]}
    server.plan = [Reply(body=body)]
    (answer,) = ask(say("q", top_logprobs=2))
    assert [one.token for one in answer.top_logprobs[0]] == ["yes"]


def test_empty_text_is_an_answer(ask, server):
    server.plan = [Reply(body=chat(None, "length"))]
    assert ask(say("q"))[0] == Generation(text="", finish_reason="length", usage=Usage(input_tokens=7, output_tokens=3))


def test_refusal_field_is_a_refusal(ask, server):
    server.plan = [Reply(body=chat(None, refusal="No, thank you."))]
    (answer,) = ask(say("q"))
    assert (answer.status, answer.text) == ("refused", "No, thank you.")


def test_content_filter_finish_is_filtered(ask, server):
    server.plan = [Reply(body=chat("half a", "content_filter"))]
    (answer,) = ask(say("q"))
    assert (answer.status, answer.text) == ("filtered", "half a")


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
def test_content_filter_error_is_filtered(ask, server, transport, code):
    server.plan = [Reply(400, problem(code))]
    (answer,) = ask(say("q"), transport=transport)
    assert json.loads(answer.reply) == problem(code)
    assert answer == Generation(text="", status="filtered", finish_reason=code, reply=answer.reply)


@pytest.mark.parametrize(
    ("reason", "status"), [("content_filter", "filtered"), ("SAFETY", "filtered"), ("refusal", "refused")]
)
def test_finish_reason_is_the_providers_signal(ask, server, reason, status):
    server.plan = [Reply(body=chat("A half", reason))]
    (answer,) = ask(say("q"))
    assert (answer.status, answer.text, answer.finish_reason) == (status, "A half", reason)


@pytest.mark.parametrize(
    ("pieces", "status", "text"),
    [
        ([{"type": "text", "text": "Yes, "}, {"type": "text", "text": "he is."}], "ok", "Yes, he is."),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "A"}],
            "ok",
            "A",
        ),
        ([{"type": "refusal", "refusal": "I won't."}], "refused", "I won't."),
        ([], "ok", ""),
    ],
)
def test_answer_in_pieces_is_read(ask, server, pieces, status, text):
    server.plan = [Reply(body=chat(pieces))]
    (answer,) = ask(say("q"))
    assert (answer.status, answer.text) == (status, text)


def test_worded_refusal_is_stored_as_received(ask, server):
    server.plan = [Reply(body=chat("I\u2019m sorry, but I can\u2019t assist with that."))]
    (answer,) = ask(say("q"))
    assert (answer.status, answer.text) == ("ok", "I\u2019m sorry, but I can\u2019t assist with that.")
    assert as_read(answer).status == "refused"


def test_no_choice_is_transient(ask, server):
    server.plan = [Reply(body={"choices": []})]
    (answer,) = ask(say("q"))
    assert isinstance(answer, TransientError)
