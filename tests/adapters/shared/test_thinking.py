"""How much to think, in one word, as each adapter's own settings."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from prejudge.adapters.anthropic.adapter import Anthropic
from prejudge.adapters.bedrock.adapter import Bedrock
from prejudge.adapters.gemini.adapter import Gemini
from prejudge.adapters.openai.adapter import OpenAIApi
from prejudge.adapters.responses.adapter import Responses
from prejudge.adapters.shared.thinking import ROOM, by_template, check_arguments
from prejudge.adapters.vllm.adapter import VLLM
from prejudge.core.contracts.errors import ModelLoadError, UsageError
from prejudge.core.contracts.options import build_options
from prejudge.core.contracts.thinking import Level
from prejudge.testing import raises_code

QWEN, GPT_OSS, PLAIN = (
    "{% if enable_thinking %}<think>{% endif %}",
    "Reasoning: {{ reasoning_effort }}",
    "{{ messages }}",
)


def test_room_grows_with_the_level():
    rooms = [ROOM[level] for level in ("off", "minimal", "low", "medium", "high")]
    assert rooms == sorted(rooms) and rooms[0] == 0 and set(ROOM) == set(get_args(Level))


def test_template_takes_the_switch_or_the_level_that_it_names():
    assert by_template({}, "off", QWEN)["chat_template_kwargs"] == {"enable_thinking": False}
    assert by_template({}, "on", QWEN)["chat_template_kwargs"] == {"enable_thinking": True}
    assert by_template({}, "low", GPT_OSS)["chat_template_kwargs"] == {"reasoning_effort": "low"}
    kept = by_template(
        {"chat_template_kwargs": {"tools": None, "enable_thinking": True}, "answer_room": 9}, "off", QWEN
    )
    assert kept == {"chat_template_kwargs": {"tools": None, "enable_thinking": False}, "answer_room": 9}


@pytest.mark.parametrize(
    ("template", "level", "known"),
    [(QWEN, "low", ("off", "on")), (GPT_OSS, "off", ("low", "medium", "high")), (PLAIN, "on", ()), ("", "off", ())],
)
def test_level_that_a_template_does_not_have_is_refused(template, level, known):
    with raises_code(UsageError, "model.thinking") as told:
        by_template({}, level, template)
    assert told.value.fields["levels"] == known


def test_argument_that_a_template_would_ignore_is_refused_when_it_is_known():
    assert by_template({}, "on", None)["chat_template_kwargs"] == {"enable_thinking": True}
    check_arguments({"enable_thinking": True, "tools": None}, QWEN, "m")
    for template in (PLAIN, None):
        with raises_code(ModelLoadError, "model.template"):
            check_arguments({"enable_thinking": True}, template, "m")


def test_effort_of_an_endpoint_replaces_that_of_the_entry():
    assert OpenAIApi.options.think("off", {"effort": "high"}) == {"effort": "none", "answer_room": 0}
    assert OpenAIApi.options.think("high", {"effort": "low", "answer_room": 7}) == {"effort": "high", "answer_room": 7}
    body = {"chat_template_kwargs": {"enable_thinking": True, "x": 1}, "top_k": 3}
    made = OpenAIApi.options.think("off", {"extra_body": body})
    assert made["extra_body"] == {"chat_template_kwargs": {"enable_thinking": False, "x": 1}, "top_k": 3}
    assert "effort" not in made and json.dumps(body) == json.dumps(
        {"chat_template_kwargs": {"enable_thinking": True, "x": 1}, "top_k": 3}
    )


@pytest.mark.parametrize(
    ("kind", "entry", "level", "told"),
    [
        (Responses, {}, "off", {"effort": "none"}),
        (Responses, {"effort": "low"}, "high", {"effort": "high"}),
        (Anthropic, {}, "off", {"thinking": "off", "thinking_tokens": None}),
        (Anthropic, {"thinking": "adaptive"}, "off", {"thinking": "off"}),
        (Anthropic, {"thinking": "adaptive"}, "high", {"thinking": "adaptive", "effort": "high"}),
        (Anthropic, {"thinking_tokens": 9999}, "low", {"thinking_tokens": 4096, "thinking": None, "answer_room": 4096}),
        (Anthropic, {"answer_room": 2000}, "high", {"thinking_tokens": 32_768, "answer_room": 32_768}),
        (Anthropic, {"answer_room": 50_000}, "high", {"thinking_tokens": 32_768, "answer_room": 50_000}),
        (Gemini, {"thinking_tokens": 5}, "off", {"thinking_tokens": 0}),
        (Gemini, {}, "high", {"thinking_tokens": 24_576}),
        (Gemini, {"effort": "low"}, "minimal", {"effort": "minimal", "thinking_tokens": None}),
        (Bedrock, {}, "low", {"effort": "low"}),
        (Bedrock, {"effort": "low"}, "on", {"effort": None}),
        (VLLM, {}, "on", {"chat_template_kwargs": {"enable_thinking": True}}),
    ],
)
def test_each_dialect_has_settings_for_a_level(kind, entry, level, told):
    made = build_options("m", kind.options, kind.options.think(level, {"model": "m/n", **entry}))
    assert {name: getattr(made, name) for name in told} == told
    assert made.answer_room == max(entry.get("answer_room", 0), ROOM[level])


@pytest.mark.parametrize(
    ("kind", "entry", "level"),
    [
        (Gemini, {"effort": "low"}, "off"),
        (Bedrock, {}, "off"),
        (Bedrock, {}, "minimal"),
        (Anthropic, {"effort": "low"}, "minimal"),
    ],
)
def test_level_that_a_dialect_does_not_have_is_refused(kind, entry, level):
    with raises_code(UsageError, "model.thinking"):
        kind.options.think(level, entry)
