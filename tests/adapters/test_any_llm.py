"""`any-llm`: the real package in front of an imitation of a provider. Nothing is retried, and no key is shown."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import (
    AuthenticationError,
    ModelLoadError,
    PermanentError,
    RateLimitError,
    TransientError,
    UsageError,
)
from prejudge.core.contracts.records import Generate, Message, Sampling, Text
from prejudge.testing import ChaosServer, Reply, raises_code
from prejudge.testing.chaos.tiny import chat, problem

from ..installed import need

need("any_llm", reason="any-llm-sdk is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
OWN = {"id": "1", "created": 1, "model": "tiny", "object": "chat.completion"}
KEY = "ak-test-0123456789abcdefghij"
QUESTION = Generate(messages=(Message("system", (Text("Be brief."),)), Message("user", (Text("Who?"),))))


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with ChaosServer() as running:
        yield running


def ask(server: ChaosServer, request: Generate = QUESTION, **settings: Any) -> Any:
    from prejudge.adapters.any_llm.adapter import AnyLlm, AnyLlmOptions

    async def once() -> Any:
        named = {"model": "tiny", "provider": "openai", "base_url": server.url, "api_key_env": "MY_KEY", **settings}
        adapter = AnyLlm(AnyLlmOptions(**named))
        adapter.services = Services()
        try:
            (answer,) = await adapter.answer([request])
            return answer
        finally:
            await adapter.aclose()

    return asyncio.run(once())


@pytest.mark.parametrize(("provider", "code"), [("ollama", "model.package"), ("no-such", "model.provider")])
def test_provider_that_cannot_be_opened_ends_at_once(server, provider, code):
    if provider == "ollama":
        pytest.importorskip("any_llm.providers.ollama")
        if importlib.util.find_spec("ollama") is not None:
            pytest.skip("its package is installed")
    with raises_code(ModelLoadError, code):
        ask(server, provider=provider)


def test_account_at_openai_is_not_told_to_another_address(server, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    server.plan = [Reply(body=chat("Nobody.") | OWN)]
    assert ask(server).text == "Nobody."
    assert not {"openai-organization", "openai-project"} & {name.lower() for name in server.seen[0].headers}


def test_answer_reasoning_and_tokens_are_read(server):
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    server.plan = [Reply(body=chat("Nobody.", reasoning="hm") | OWN | {"usage": usage})]
    answer = ask(server, Generate(messages=QUESTION.messages, sampling=Sampling(temperature=0.5, stop=("x",), seed=3)))
    assert (answer.text, answer.finish_reason, answer.usage.output_tokens) == ("Nobody.", "stop", 5)
    body = server.seen[0].body
    assert (body["temperature"], body["stop"], body["seed"]) == (0.5, ["x"], 3)
    assert [one["content"] for one in body["messages"]] == ["Be brief.", "Who?"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(500, problem(None)), TransientError),
        (Reply(429, problem("rate_limit_exceeded"), {"Retry-After": "7"}), RateLimitError),
        (Reply(401, problem("invalid_api_key", f"bad key {KEY}")), AuthenticationError),
        (Reply(400, problem(None, "no")), PermanentError),
        (Reply(way="cut"), TransientError),
    ],
)
def test_error_is_a_decision_and_nothing_is_retried(server, reply, kind):
    server.plan = [reply]
    error = ask(server)
    assert isinstance(error, kind) and len(server.seen) == 1
    assert KEY not in f"{error!r} {error.__cause__!r} {error.__context__!r}"


def test_key_in_an_answer_is_refused(server):
    server.plan = [Reply(body=chat(KEY) | OWN)]
    assert ask(server).code == "endpoint.key-echoed"


def test_slow_answer_is_transient(server):
    server.plan = [Reply(body=chat("late"), delay=2.0)]
    assert ask(server, timeout_seconds=0.3).code == "endpoint.timeout"


def test_server_without_a_key_that_is_not_there_is_transient_at_once(server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        error = ask(server, base_url=f"http://127.0.0.1:{free.getsockname()[1]}/v1", api_key_env="")
    assert isinstance(error, TransientError) and error.code == "endpoint.connection"


def test_server_without_a_key_that_says_nothing_ends_after_the_timeout(server):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        assert ask(server, base_url=url, api_key_env="", timeout_seconds=1.0).code == "endpoint.timeout"
    assert time.monotonic() - begun < 20


def test_package_that_does_not_return_ends_after_the_timeout(server, monkeypatch):
    """The packages of some providers look for credentials on other machines when they are opened."""
    ended = threading.Event()
    monkeypatch.setattr("any_llm.AnyLLM.create", lambda *_, **__: ended.wait(60))
    threading.Timer(20, ended.set).start()
    begun = time.monotonic()
    assert ask(server, api_key_env="", timeout_seconds=0.5).code == "endpoint.timeout"
    assert not ended.is_set() and time.monotonic() - begun < 15


def test_identity_says_that_it_is_lossy_and_the_key_must_be_named(server):
    from prejudge.adapters.any_llm.adapter import AnyLlm, AnyLlmOptions

    adapter = AnyLlm(AnyLlmOptions(model="m", provider="mistral", api_key_env="MY_KEY"))
    assert adapter.identity.settings["lossy"] is True and adapter.identity.settings["provider"] == "mistral"
    assert KEY not in repr(adapter.identity)
    with raises_code(UsageError, "endpoint.key-missing", "api_key_env"):
        AnyLlm(AnyLlmOptions(model="m", provider="mistral"))


def test_package_is_not_imported_before_it_is_used():
    code = "import sys, prejudge.adapters.any_llm.adapter; print('any_llm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
