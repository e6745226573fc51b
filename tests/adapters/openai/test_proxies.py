"""A proxy of the environment, before a real server: it is used, exempted, and named where it is at fault."""

from __future__ import annotations

import asyncio
import re
import socket
import threading

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.errors import AuthenticationError, ModelError, PermanentError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Message, Text
from prejudge.core.doctor.model import examine
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import chat

from ..proxy_server import TinyProxy

QUESTION = Generate(messages=(Message("user", (Text("q"),)),))


@pytest.fixture
def make_proxy():
    made = []

    def make(**settings):
        made.append(TinyProxy(**settings))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def answer(url, transport, **settings):
    async def work():
        adapter = OpenAIApi(OpenAIOptions(model="tiny", base_url=url, api_key_env="", transport=transport, **settings))
        try:
            return (await adapter.answer([QUESTION]))[0]
        finally:
            await adapter.aclose()

    return asyncio.run(work())


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_endpoint_is_asked_through_the_proxy(server, transport, make_proxy, monkeypatch, name):
    proxy = make_proxy(user="me:secret")
    monkeypatch.setenv(name, f"http://me:secret@127.0.0.1:{proxy.port}")
    server.plan = [Reply(body=chat("fine"))]
    assert isinstance(found := answer(server.url, transport), Generation) and found.text == "fine"
    assert proxy.asked == [f"POST {server.url}/chat/completions"]


@pytest.mark.parametrize("rule", ["127.0.0.0/8", "127.*", "127.0.0.1", "*"])
def test_exempt_endpoint_is_asked_directly(server, transport, make_proxy, monkeypatch, rule):
    proxy = make_proxy()
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", rule)
    server.plan = [Reply(body=chat("fine"))]
    assert isinstance(answer(server.url, transport), Generation)
    assert proxy.asked == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_dead_proxy_is_named_without_its_password(server, transport, monkeypatch, scheme):
    monkeypatch.setenv("ALL_PROXY", "http://me:secret@127.0.0.1:9")
    error = answer(re.sub("^http", scheme, server.url), transport)
    assert isinstance(error, TransientError) and error.code == "proxy.unreachable"
    assert "the proxy 127.0.0.1:9" in str(error) and "secret" not in str(error)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("closes", "code"), [(False, "endpoint.timeout"), (True, "endpoint.connection")])
def test_proxy_that_takes_connections_and_nothing_else_is_named(server, transport, monkeypatch, scheme, closes, code):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{mute.getsockname()[1]}"
        if closes:
            threading.Thread(target=lambda: mute.accept()[0].close(), daemon=True).start()
        monkeypatch.setenv("ALL_PROXY", f"http://me:secret@{place}")
        error = answer(re.sub("^http", scheme, server.url), transport, timeout_seconds=0.5)
    assert isinstance(error, TransientError) and error.code == code and error.fields["proxy"] == place
    assert "secret" not in str(error)


def test_dead_endpoint_is_not_blamed_on_a_proxy(transport):
    error = answer("http://127.0.0.1:9/v1", transport)
    assert isinstance(error, TransientError) and error.code == "endpoint.unreachable"


def test_proxy_without_an_address_is_named(server, transport, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://no-such-host.invalid:3128")
    error = answer(server.url, transport)
    assert isinstance(error, TransientError) and error.code == "proxy.unreachable"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_that_wants_another_password_stops_the_run(server, transport, make_proxy, monkeypatch, scheme):
    proxy = make_proxy(user="me:right")
    monkeypatch.setenv("ALL_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
    error = answer(re.sub("^http", scheme, server.url), transport)
    assert isinstance(error, AuthenticationError) and error.code == "proxy.credentials"
    assert "secret" not in str(error) and server.seen == []


@pytest.mark.parametrize(("status", "kind"), [(403, PermanentError), (502, TransientError), (504, TransientError)])
def test_tunnel_that_a_proxy_refuses(server, transport, make_proxy, monkeypatch, status, kind):
    proxy = make_proxy(status=status)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    error = answer(server.url.replace("http:", "https:"), transport)
    assert isinstance(error, ModelError) and type(error) is kind and error.code == "proxy.refused"
    assert f"127.0.0.1:{proxy.port} answered {status}" in str(error)
    assert proxy.asked[0].startswith("CONNECT ")


def test_doctor_names_the_proxy(server, make_proxy, monkeypatch):
    proxy = make_proxy()
    monkeypatch.setenv("ALL_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")

    async def work():
        adapter = OpenAIApi(OpenAIOptions(model="tiny", base_url=server.url, api_key_env=""))
        try:
            return await examine(adapter, [Generate])
        finally:
            await adapter.aclose()

    first = asyncio.run(work())[0]
    assert first.name == "proxy" and first.detail.endswith(f"127.0.0.1:{proxy.port}")
