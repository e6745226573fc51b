"""Every behaviour of the chaos server does what its name says, and `openai` takes each for what it is."""

from __future__ import annotations

import asyncio
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import Generate, Message, Sampling, Text
from prejudge.testing import BEHAVIOURS, Reply

KEY = "sk-test-Zq9very-secret-key-0123456789"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def question(text: str) -> Generate:
    return Generate(messages=(Message("user", (Text(text),)),), sampling=Sampling(temperature=0.0))


async def take(names: list[str], transport: str) -> dict[str, object]:
    """Ask a question per behaviour."""
    from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions

    adapter = OpenAIApi(OpenAIOptions(model="m", timeout_seconds=10.0, transport=transport, concurrency=8))
    slots = asyncio.Semaphore(8)

    async def one(name: str) -> object:
        async with slots:
            return (await adapter.answer([question(name)]))[0]

    try:
        return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
    finally:
        await adapter.aclose()


@pytest.mark.parametrize("transport", ["lean", "httpx"])
def test_each_behaviour_is_taken_for_what_it_is(chaos_server, monkeypatch, transport):
    for package in ("aiohttp", "httpx"):
        pytest.importorskip(package, reason="needs the clients of endpoints")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", chaos_server.url)
    names = [name for name in BEHAVIOURS if name != "refused"]  # that one would take the others with it
    for name in names:
        chaos_server.play(name, where=lambda call, name=name: call.text == name)
    found = asyncio.run(take(names, transport))
    taken = {
        name: one.decision.value if isinstance(one, ModelError) else {"ok": "answer"}.get(one.status, one.status)
        for name, one in found.items()
    }
    expected = {name: BEHAVIOURS[name].taken for name in names}
    expected["empty-no-tokens"] = "answer"  # the scheduler asks again
    assert {n: t for n, t in taken.items() if t != expected[n]} == {}
    errors = [str(one) for one in found.values() if isinstance(one, ModelError)]
    assert not [error for error in errors if KEY in error or "\n" in error or len(error) > 600]
    assert {seen.behaviour for seen in chaos_server.seen} == set(names)


def ask(server, text="a"):
    """Return the status of the answer to a call, or 0 if there was none."""
    body = f'{{"model": "m", "messages": [{{"role": "user", "content": "{text}"}}]}}'.encode()
    try:
        with urllib.request.urlopen(f"{server.url}/chat/completions", body, timeout=5) as reply:
            reply.read()
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError):
        return 0


def test_server_answers_well_without_a_rule(chaos_server):
    assert [ask(chaos_server) for _ in range(3)] == [200] * 3
    assert [seen.behaviour for seen in chaos_server.seen] == [""] * 3


@pytest.mark.parametrize(
    ("when", "statuses"),
    [
        ({}, [500] * 6),
        ({"first": 2}, [500, 500, 200, 200, 200, 200]),
        ({"every": 3}, [200, 200, 500, 200, 200, 500]),
        ({"every": 2, "first": 4}, [200, 500, 200, 500, 200, 200]),
        ({"share": 0.0}, [200] * 6),
        ({"where": lambda call: call.text == "a"}, [500, 200] * 3),
        ({"per_body": True, "first": 1}, [500, 500, 200, 200, 200, 200]),
    ],
)
def test_schedule_says_when(chaos_server, when, statuses):
    chaos_server.play("500", **when)
    texts = "ababab"
    assert [ask(chaos_server, text) for text in texts] == statuses


def test_seed_draws_by_the_request_and_not_by_its_turn(chaos_server):
    chaos_server.play("500", "404", share=0.5, seed=1)
    texts = [str(number) for number in range(60)]
    first = {text: ask(chaos_server, text) for text in texts}
    assert set(first.values()) == {200, 404, 500} and 15 < list(first.values()).count(200) < 45
    chaos_server.clear()
    chaos_server.play("500", "404", share=0.5, seed=1)
    assert {text: ask(chaos_server, text) for text in reversed(texts)} == first


def test_first_rule_that_concerns_a_call_is_played(chaos_server):
    chaos_server.play("404", first=1)
    chaos_server.play(Reply(418))
    chaos_server.plan = [Reply(503)]
    assert [ask(chaos_server) for _ in range(4)] == [503, 404, 418, 418]


def test_server_that_refuses_comes_back(chaos_server):
    chaos_server.play("refused", first=1)
    began = time.monotonic()
    assert ask(chaos_server) == 0 and ask(chaos_server) == 0
    while ask(chaos_server) != 200:
        assert time.monotonic() - began < 10
        time.sleep(0.05)
    assert time.monotonic() - began >= 0.9
    chaos_server.go_down(0.2)
    assert ask(chaos_server) == 0


def test_page_names_every_behaviour():
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (`.*`) \|$", PAGE.read_text("utf-8"), re.M))
    told = {kind.replace(" ", "_"): set(re.findall(r"`([^`]+)`", names)) for kind, names in rows.items()}
    kinds = {behaviour.taken for behaviour in BEHAVIOURS.values()}
    assert {kind: told.get(kind) for kind in kinds} == {
        kind: {name for name, one in BEHAVIOURS.items() if one.taken == kind} for kind in kinds
    }
