"""Batches of messages and of responses against imitations of Anthropic's and OpenAI's batch APIs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from importlib.util import find_spec

import pytest

from prejudge.core.contracts.batch import BatchLine
from prejudge.core.contracts.errors import (
    AuthenticationError,
    ModelError,
    PermanentError,
    RateLimitError,
    TransientError,
)
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text
from prejudge.testing.chaos import AnthropicBatches, OpenAIBatches

if find_spec("aiohttp") is None:
    pytest.skip("needs the extra endpoint", allow_module_level=True)

from prejudge.adapters.anthropic.adapter import Anthropic, AnthropicOptions
from prejudge.adapters.responses.adapter import Responses, ResponsesOptions

NAME = "ab" * 32


def ask(text):
    sampling = Sampling(temperature=0.0, max_tokens=10)
    return Generate(messages=(Message("user", (Text(text),)),), sampling=sampling)


def message(path, body):
    """Answer as Claude would."""
    text = body["messages"][-1]["content"].upper()
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": usage,
        "model": body["model"],
    }


@pytest.fixture
def desk(chaos_server):
    chaos_server.model = message
    return AnthropicBatches(chaos_server)


@pytest.fixture
def made(chaos_server, monkeypatch):
    monkeypatch.setenv("THEIR_KEY", "sk-ant-0123456789abcdefghij")
    root = chaos_server.url.removesuffix("/v1")
    return Anthropic(AnthropicOptions(model="claude-x", base_url=root, api_key_env="THEIR_KEY", batches=True))


def run(adapter, work):
    async def all_of_it():
        try:
            return await work(adapter.batch_api)
        finally:
            await adapter.aclose()

    return asyncio.run(all_of_it())


async def hand_in(api, requests):
    lines = [await api.encode(f"{number:064x}", request) for number, request in enumerate(requests)]
    return await api.submit("m", await api.upload("m", lines), lines, Generate)


def test_answers_are_those_of_single_calls(made, desk, chaos_server):
    requests = [ask(f"q {number}") for number in range(5)]

    async def work(api):
        started = await hand_in(api, requests)
        assert (started.state, started.items, started.mark) == ("running", 5, "")
        status = await api.status(started.id)
        assert (status.state, status.answered, status.items) == ("ended", 5, 5)
        lines = {line.name: line for line in await api.results(status)}
        read = [api.read(lines[f"{number:064x}"], request) for number, request in enumerate(requests)]
        return read, [await made.generate(request) for request in requests]

    batched, single = run(made, work)
    assert batched == single and [one.text for one in single] == [f"Q {number}" for number in range(5)]
    bodies = [seen.body for seen in chaos_server.seen if seen.path == "/messages"]
    assert [line["params"] for line in desk.batches["msgbatch_0"].lines] == bodies


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_batch_that_ended_early_says_so(made, desk, end):
    desk.ends = ["expired"] if end == "expired" else []
    desk.polls = 1 if end == "expired" else 99

    async def work(api):
        started = await hand_in(api, [ask(f"q {number}") for number in range(6)])
        if end == "cancelled":
            await api.cancel(started.id)
        status = await api.status(started.id)
        kinds = Counter()
        for line in await api.results(status):
            try:
                kinds[type(api.read(line, ask("q"))).__name__] += 1
            except ModelError as error:
                kinds[error.code] += 1
        return status.state, kinds

    assert run(made, work) == (end, {"Generation": 3, f"batch.{end}": 3})


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("rate_limit_error", RateLimitError),
        ("overloaded_error", TransientError),
        ("api_error", TransientError),
        ("invalid_request_error", PermanentError),
        ("authentication_error", AuthenticationError),
    ],
)
def test_failed_items_are_told_apart(made, kind, raised):
    error = {"type": "error", "error": {"type": kind, "message": "as told"}}
    line = json.dumps({"custom_id": NAME, "result": {"type": "errored", "error": error}}).encode()
    with pytest.raises(raised):
        made.batch_api.read(BatchLine(NAME, line), ask("q"))


def test_refusal_is_an_answer(made):
    said = {
        "content": [],
        "stop_reason": "refusal",
        "usage": {"input_tokens": 3, "output_tokens": 1},
        "model": "claude-x",
    }
    line = json.dumps({"custom_id": NAME, "result": {"type": "succeeded", "message": said}}).encode()
    found = made.batch_api.read(BatchLine(NAME, line), ask("q"))
    assert isinstance(found, Generation) and found.status == "refused"


def test_batches_of_a_time_are_found_without_a_mark(made, desk):
    async def work(api):
        started = await hand_in(api, [ask("q"), ask("r")])
        return started.created, await api.find("m", started.created - 5), await api.find("m", started.created + 5)

    _, found, none = run(made, work)
    assert [(one.id, one.items, one.mark) for one in found] == [("msgbatch_0", 2, "")] and not none


def test_unknown_batch_is_missing(made, desk):
    assert run(made, lambda api: api.status("msgbatch_9")).state == "missing"


def test_responses_go_to_their_own_path(chaos_server, monkeypatch):
    monkeypatch.setenv("THEIR_KEY", "sk-0123456789abcdefghij")
    desk = OpenAIBatches(chaos_server)
    options = ResponsesOptions(model="gpt-x", base_url=chaos_server.url, api_key_env="THEIR_KEY", batches=True)
    adapter = Responses(options)
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}
    chaos_server.model = lambda path, body: {
        "status": "completed",
        "output": [said],
        "usage": {"input_tokens": 7, "output_tokens": 3},
        "model": "gpt-x",
    }

    async def work(api):
        await hand_in(api, [ask("q")])
        (line,) = await api.results(await api.status("batch_0"))
        return api.read(line, ask("q"))

    assert run(adapter, work).text == "yes"
    assert desk.batches["batch_0"].asked["endpoint"] == "/v1/responses"
    assert desk.batches["batch_0"].lines[0]["url"] == "/v1/responses"
