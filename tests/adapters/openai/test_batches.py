"""Batches of chat completions against an imitation of OpenAI's Files and Batches."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.batch import BatchCancelledError, BatchExpiredError, BatchFullError, BatchLine
from prejudge.core.contracts.errors import ModelError, PermanentError, RateLimitError, TransientError
from prejudge.core.contracts.png import encode_png
from prejudge.core.contracts.records import Generate, Image, Message, Sampling, Text
from prejudge.testing import ChaosServer, Reply
from prejudge.testing.chaos import OpenAIBatches

NAME = "ab" * 32


def ask(text, **sampling):
    return Generate(messages=(Message("user", (Text(text),)),), sampling=Sampling(temperature=0.0, **sampling))


@pytest.fixture
def desk(server: ChaosServer) -> OpenAIBatches:
    return OpenAIBatches(server)


@pytest.fixture
def adapter(server, key):
    made = OpenAIApi(OpenAIOptions(model="gpt-x", base_url=server.url, api_key_env="OPENAI_API_KEY", batches=True))
    yield made
    asyncio.run(made.aclose())


def run(adapter, work):
    async def all_of_it():
        try:
            return await work(adapter.batch_api)
        finally:
            await adapter._courier.aclose()
            await adapter._caller._wire.aclose()

    return asyncio.run(all_of_it())


async def hand_in(api, requests, mark="m"):
    lines = [await api.encode(f"{number:064x}", request) for number, request in enumerate(requests)]
    return await api.submit(mark, await api.upload(mark, lines), (), Generate)


def test_only_openai_itself_takes_batches_unasked(server, key):
    plain = OpenAIApi(OpenAIOptions(model="gpt-x", base_url=server.url, api_key_env="OPENAI_API_KEY"))
    assert plain.batch_api is None
    own = OpenAIApi(OpenAIOptions(model="gpt-x"))
    assert own.batch_api is not None
    off = OpenAIApi(OpenAIOptions(model="gpt-x", batches=False))
    assert off.batch_api is None and off.identity == own.identity
    for made in (plain, own, off):
        asyncio.run(made.aclose())


def test_line_has_the_body_of_a_single_call(adapter, server, desk):
    request = ask("hello", max_tokens=5)

    async def work(api):
        await adapter.generate(request)
        return await api.encode(NAME, request)

    line = json.loads(run(adapter, work))
    assert line == {"custom_id": NAME, "method": "POST", "url": "/v1/chat/completions", "body": server.seen[0].body}


def test_answers_are_those_of_single_calls(adapter, server, desk):
    requests = [ask(f"q {number}") for number in range(7)]

    async def work(api):
        await hand_in(api, requests)
        status = await api.status("batch_0")
        assert (status.state, status.items, status.answered, status.failed, status.mark) == ("ended", 7, 7, 0, "m")
        lines = {line.name: line for line in await api.results(status)}
        read = [api.read(lines[f"{number:064x}"], request) for number, request in enumerate(requests)]
        return read, [await adapter.generate(request) for request in requests]

    batched, single = run(adapter, work)
    assert batched == single and desk.paid == Counter({f"{number:064x}": 1 for number in range(7)})


def test_key_stands_in_the_header_and_nowhere_else(adapter, server, desk, key):
    run(adapter, lambda api: hand_in(api, [ask("q")]))
    assert all(seen.headers["Authorization"] == f"Bearer {key}" for seen in server.seen)
    assert key.encode() not in desk.files["file-0"]


def test_image_travels_in_the_line(adapter, desk):
    data = encode_png(b"\x80\x80\x80" * 16, 4, 4)
    adapter.services = Services(blobs=lambda sha256: data)
    request = Generate(messages=(Message("user", (Text("what"), Image(hashlib.sha256(data).hexdigest()))),))
    line = run(adapter, lambda api: api.encode(NAME, request))
    assert b"data:image/png;base64," in line


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_both_files_are_read_of_a_batch_that_ended_early(adapter, desk, end):
    desk.ends = [end]
    errors = {"expired": BatchExpiredError, "cancelled": BatchCancelledError}

    async def work(api):
        await hand_in(api, [ask(f"q {number}") for number in range(6)])
        status = await api.status("batch_0")
        assert status.state == end and len(status.files) == 2
        return api, await api.results(status)

    api, lines = run(adapter, work)
    kinds = Counter()
    for line in lines:
        try:
            kinds[type(api.read(line, ask("q"))).__name__] += 1
        except ModelError as error:
            kinds[type(error)] += 1
    assert kinds == {"Generation": 3, errors[end]: 3}


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ({"status_code": 429, "body": {"error": {"message": "slow"}}}, RateLimitError, "endpoint.rate-limit"),
        ({"status_code": 500, "body": {"error": {"message": "x"}}}, TransientError, "endpoint.server"),
        ({"status_code": 400, "body": {"error": {"message": "bad field"}}}, PermanentError, "endpoint.refused"),
        ({"status_code": 200, "body": {"choices": []}}, TransientError, "endpoint.no-answer"),
    ],
)
def test_failed_items_are_told_apart(adapter, body, kind, code):
    line = BatchLine(NAME, json.dumps({"custom_id": NAME, "response": body, "error": None}).encode())
    with pytest.raises(kind) as raised:
        adapter.batch_api.read(line, ask("q"))
    assert raised.value.code == code


def test_filtered_item_is_an_answer(adapter):
    error = {"error": {"message": "no", "code": "content_policy_violation"}}
    line = {"custom_id": NAME, "response": {"status_code": 400, "body": error}, "error": None}
    assert adapter.batch_api.read(BatchLine(NAME, json.dumps(line).encode()), ask("q")).status == "filtered"


def test_line_without_anything_is_a_passing_failure(adapter):
    with pytest.raises(TransientError):
        adapter.batch_api.read(BatchLine(NAME, b'{"custom_id": "x", "response": null, "error": null}'), ask("q"))


@pytest.mark.parametrize(("end", "state"), [("invalid", "invalid"), ("token_limit_exceeded", "full")])
def test_file_that_fails_validation(adapter, desk, end, state):
    desk.ends = [end]

    async def work(api):
        await hand_in(api, [ask("q")])
        return await api.status("batch_0")

    status = run(adapter, work)
    assert status.state == state and status.problem == f"line 1: {end} here" and not desk.paid


def test_queue_that_is_full_at_once(adapter, desk):
    desk.ends = ["queue"]
    with pytest.raises(BatchFullError):
        run(adapter, lambda api: hand_in(api, [ask("q")]))
    assert not desk.batches


def test_batch_is_found_by_its_mark(adapter, desk):
    async def work(api):
        await hand_in(api, [ask("q")], "one")
        await hand_in(api, [ask("q")], "two")
        return await api.find("two", 0.0)

    (found,) = run(adapter, work)
    assert (found.id, found.mark) == ("batch_1", "two")


def test_unknown_batch_is_missing(adapter, desk):
    assert run(adapter, lambda api: api.status("batch_7")).state == "missing"


def test_cut_download_is_a_passing_failure(adapter, server, desk):
    async def work(api):
        await hand_in(api, [ask(f"q {number}") for number in range(20)])
        status = await api.status("batch_0")
        server._rules.insert(0, server._rules.pop())
        server.plan = [Reply(body=desk.files[status.files[0]], way="half")]
        return await api.results(status)

    with pytest.raises(TransientError):
        run(adapter, work)


def test_cancelled_batch_says_so(adapter, desk):
    desk.polls = 99

    async def work(api):
        await hand_in(api, [ask("q"), ask("r")])
        before = await api.status("batch_0")
        await api.cancel("batch_0")
        return before.state, (await api.status("batch_0")).state

    assert run(adapter, work) == ("running", "cancelled")
