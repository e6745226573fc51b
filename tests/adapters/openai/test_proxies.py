"""A proxy of the environment, before a real server: it is used, exempted, and named where it is at fault."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import socket
import threading
from urllib.parse import urlsplit

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.errors import AuthenticationError, ModelError, PermanentError, TransientError
from prejudge.core.contracts.records import Generate, Generation, Message, Text
from prejudge.core.doctor.model import examine
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import chat

QUESTION = Generate(messages=(Message("user", (Text("q"),)),))


class TinyProxy:
    """Forwards requests and tunnels; with a status, it refuses each with that."""

    def __init__(self, status: int | None = None, user: str = "") -> None:
        self.status, self.user = status, user
        self.asked: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        for task in (tasks := asyncio.all_tasks(self._loop)):
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.run_until_complete(asyncio.sleep(0))  # the transports that these tasks closed end
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            contextlib.closing(writer),
            contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError),
        ):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target = head.decode().split(" ", 2)[:2]
            self.asked.append(f"{method} {target}")
            wanted = base64.b64encode(self.user.encode()).decode()
            status = 407 if self.user and wanted not in head.decode() else self.status
            if status is not None:
                writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
                await writer.drain()
            else:
                await self._pass(method, target, head, reader, writer)

    async def _pass(self, method, target, head, reader, writer):
        there = urlsplit(target if "://" in target else f"//{target}")
        far, back = await asyncio.open_connection(there.hostname, there.port)
        with contextlib.closing(back):
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                back.write(head.replace(target.encode(), there.path.encode(), 1))
            await asyncio.gather(self._pipe(reader, back), self._pipe(far, writer))

    async def _pipe(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()


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
