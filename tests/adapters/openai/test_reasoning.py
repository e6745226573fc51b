"""`openai`: models that reason, in the three forms in which endpoints tell it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from prejudge.adapters.openai.options import OpenAIOptions, make_identity
from prejudge.core.contracts.canonical import decode_response, encode
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text, Usage
from prejudge.core.engine.reading import as_read
from prejudge.testing.chaos.tiny import chat


def say(text: str, **sampling: Any) -> Generate:
    return Generate(messages=(Message("user", (Text(text),)),), sampling=Sampling(**sampling))


def read(answer: Any) -> Generation:
    found = as_read(answer)
    assert isinstance(found, Generation)
    return found


@pytest.mark.parametrize(
    ("message", "reasoning", "text"),
    [
        ({"content": "B", "reasoning_content": "Hm."}, "Hm.", "B"),
        ({"content": "B", "reasoning": "Hm."}, "Hm.", "B"),
        ({"content": "B", "reasoning": {"summary": 1}}, "", "B"),
        ({"content": "B", "reasoning_content": None}, "", "B"),
        ({"content": "<think>Hm.</think>\nB"}, "Hm.", "B"),
        ({"content": "<think>Hm."}, "Hm.", ""),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"text": "B"}]}, "Hm.", "B"),
        ({"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "B"}]}, "Hm.", "B"),
        # Some endpoints tell it twice, or in two parts; no study asks for thoughts.
        ({"content": "<think>a</think>B", "reasoning_content": "Hm."}, "Hm.\n\na", "B"),
        ({"content": "<think>\nHm.\n</think>\nB", "reasoning": "Hm.\n"}, "Hm.", "B"),
        ({"content": "<think>Hm, no", "reasoning": "Hm."}, "Hm.\n\nHm, no", ""),
        (
            {"content": "I'm sorry, but I can't help with that.", "reasoning_content": "I cannot say which."},
            "I cannot say which.",
            None,
        ),
    ],
)
def test_reasoning_is_kept_apart_from_the_answer(ask, server, message, reasoning, text):
    server.model = lambda path, body: chat(**{"content": None, **message})
    (answer,) = ask(say("Which?"))
    assert (read(answer).reasoning, read(answer).text) == (reasoning, message["content"] if text is None else text)
    # What is stored is what was received: the rule for refusals runs when the answer is read.
    assert answer.status == "ok" and read(answer).status == ("refused" if text is None else "ok")
    assert isinstance(message["content"], list) or answer.text == message["content"]
    assert decode_response(encode(answer)) == answer


@pytest.mark.parametrize(
    ("message", "reasoning", "text"),
    [
        ({"content": "Hm, A or"}, "Hm, A or", ""),
        ({"content": "Hm.\n</think>\nB"}, "Hm.", "B"),
        ({"content": "B", "reasoning": "Hm."}, "Hm.", "B"),
    ],
)
def test_reasoning_that_the_template_opens_is_no_answer_where_it_is_cut_off(ask, server, message, reasoning, text):
    server.model = lambda path, body: chat(**message, finish="length")
    (answer,) = ask(say("Which?"), think_opened=True)
    assert answer.opened == ("reasoning" not in message)
    assert (read(answer).reasoning, read(answer).text) == (reasoning, text)
    asked = OpenAIOptions(model="m", think_opened=True)
    assert make_identity(asked, "http://x/v1").settings["think_opened"] is True


def test_reasoning_that_reads_like_a_refusal_is_none(ask, server):
    server.model = lambda path, body: chat("B", reasoning_content="I cannot help with that, but I should.")
    (answer,) = ask(say("Which?"))
    assert read(answer).status == "ok"


@pytest.mark.parametrize("names", [("completion", "prompt"), ("output", "input")])
def test_tokens_of_reasoning_and_of_the_cache_are_counted_within_the_others(ask, server, names):
    wrote, read = names
    details = {f"{wrote}_tokens_details": {"reasoning_tokens": 90}, f"{read}_tokens_details": {"cached_tokens": 4}}
    server.model = lambda path, body: chat("B") | {"usage": {f"{read}_tokens": 7, f"{wrote}_tokens": 93, **details}}
    (answer,) = ask(say("Which?"))
    assert answer.usage == Usage(input_tokens=7, output_tokens=93, reasoning_tokens=90, cached_tokens=4)


@pytest.mark.parametrize("details", [None, 3, {"reasoning_tokens": "many"}, {"reasoning_tokens": -1}])
def test_nonsensical_details_count_nothing(ask, server, details):
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": details}
    server.model = lambda path, body: chat("B") | {"usage": usage}
    (answer,) = ask(say("Which?"))
    assert answer.usage == Usage(input_tokens=7, output_tokens=3)


def test_room_for_reasoning_is_added_to_the_limit(ask, server):
    ask(say("a", max_tokens=5), say("b"), answer_room=1000, effort="low", max_tokens=9)
    sent = {seen.body["messages"][0]["content"]: seen.body for seen in server.seen}
    assert {name: body["max_tokens"] for name, body in sent.items()} == {"a": 1005, "b": 1009}
    assert {body["reasoning_effort"] for body in sent.values()} == {"low"}


def test_no_limit_stays_none(ask, server):
    ask(say("a"), answer_room=1000)
    assert "max_tokens" not in server.seen[0].body and "reasoning_effort" not in server.seen[0].body


def test_stop_that_is_not_sent_is_applied_to_the_answer(ask, server):
    server.model = lambda path, body: chat("Yes. No.", reasoning_content="One. Two.")
    (answer,) = ask(say("Which?", stop=(".",)), omit=["stop"])
    assert (answer.text, answer.reasoning) == ("Yes", "One. Two.") and "stop" not in server.seen[0].body


def test_answers_and_keys_of_before_are_those_of_today():
    old = b'{"type":"generation","usage":{"input_tokens":7,"output_tokens":3},"text":"B","finish_reason":"stop"}'
    found = decode_response(old)
    assert found == Generation(text="B", finish_reason="stop", usage=Usage(input_tokens=7, output_tokens=3))
    assert msgspec.json.decode(encode(found)) == msgspec.json.decode(old)
    plain = make_identity(OpenAIOptions(model="m"), "a").settings
    assert not {"answer_room", "effort", "think_opened", "refusal_rule"} & plain.keys()
    more = make_identity(OpenAIOptions(model="m", answer_room=9, effort="low"), "a").settings
    assert {name: more[name] for name in more.keys() - plain.keys()} == {
        "answer_room": 9,
        "effort": "low",
    }
