"""Certificates, proxies, HTTP/2, cookies and limits are the same through either client."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import ssl
import threading
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.errors import PermanentError, TransientError, UsageError
from prejudge.core.contracts.records import Generate, Generation, Message, Text
from prejudge.testing import raises_code
from prejudge.testing.chaos.tiny import chat

from ..proxy_server import TinyProxy

pytest.importorskip("cryptography", reason="needs cryptography, which signs the certificates of this test")
from ..tls_server import Authority, TlsServer

QUESTION = Generate(messages=(Message("user", (Text("q"),)),))
BODY = json.dumps(chat("fine")).encode()


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture
def serve(authority):
    servers = []

    def start(**settings):
        servers.append(TlsServer(authority.issue("server"), BODY, **settings))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def answers(server, transport, count=1, **settings):
    """Return what `count` questions at once get."""

    async def work():
        options = {"model": "tiny", "base_url": f"{server.url}/v1", "api_key_env": "", "transport": transport}
        adapter = OpenAIApi(OpenAIOptions(**{**options, **settings}))
        try:
            return await asyncio.gather(*(adapter.answer([QUESTION]) for _ in range(count)))
        finally:
            await adapter.aclose()

    return [answer for (answer,) in asyncio.run(work())]


def test_server_of_a_private_authority_is_trusted_by_its_bundle(serve, transport, authority):
    (answer,) = answers(serve(), transport, ca_bundle=str(authority.bundle))
    assert isinstance(answer, Generation) and answer.text == "fine"


def test_server_of_a_private_authority_is_trusted_by_the_environment(serve, transport, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.bundle))
    (answer,) = answers(serve(), transport)
    assert isinstance(answer, Generation) and answer.text == "fine"


@pytest.mark.parametrize("other", [False, True])
def test_server_of_an_unknown_authority_gets_nothing(serve, transport, stranger, other):
    server = serve()
    (error,) = answers(server, transport, **({"ca_bundle": str(stranger.bundle)} if other else {}))
    assert isinstance(error, PermanentError) and error.code == "endpoint.certificate"
    assert "ca_bundle" in str(error) and server.requests == []


@pytest.mark.parametrize("files", [1, 2])
def test_client_shows_its_certificate(serve, transport, authority, tmp_path, files):
    certificate, key = authority.issue("client")
    if files == 1:
        (both := tmp_path / "both.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
        settings = {"client_cert": str(both)}
    else:
        settings = {"client_cert": str(certificate), "client_key": str(key)}
    (answer,) = answers(serve(clients=authority.bundle), transport, ca_bundle=str(authority.bundle), **settings)
    assert isinstance(answer, Generation) and answer.text == "fine"


@contextlib.contextmanager
def refusing(authority):
    """Run a server that wants certificates of the authority, and says in TLS what it misses; asyncio's cannot."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.bundle)

    def refuse():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                secure = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                with secure:
                    with pytest.raises(ssl.SSLError):
                        secure.do_handshake()
                    # The alert is lost with what the client has sent meanwhile, unless that is read.
                    socket.socket.shutdown(secure, socket.SHUT_WR)
                    while socket.socket.recv(secure, 4096):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        yield SimpleNamespace(url=f"https://127.0.0.1:{listener.getsockname()[1]}")
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.mark.parametrize("shown", ["none", "of a stranger"])
def test_client_without_the_certificate_that_a_server_wants_stops_with_the_setting(
    transport, authority, stranger, shown
):
    certificate, key = stranger.issue("client")
    settings = {} if shown == "none" else {"client_cert": str(certificate), "client_key": str(key)}
    with refusing(authority) as server:
        (error,) = answers(server, transport, ca_bundle=str(authority.bundle), **settings)
    assert isinstance(error, PermanentError) and error.code == "endpoint.certificate"
    assert "client_cert" in str(error)


@pytest.mark.parametrize("case", ["missing bundle", "no bundle", "missing certificate", "encrypted key", "other key"])
def test_unusable_file_is_refused_before_anything_is_sent(authority, transport, tmp_path, case):
    (words := tmp_path / "words.pem").write_text("hello")
    certificate, _ = authority.issue("a")
    _, other = authority.issue("b")
    _, closed = authority.issue("a", b"secret") if case == "encrypted key" else (None, other)
    settings = {
        "missing bundle": {"ca_bundle": str(tmp_path / "none.pem")},
        "no bundle": {"ca_bundle": str(words)},
        "missing certificate": {"client_cert": str(tmp_path / "none.pem")},
        "encrypted key": {"client_cert": str(certificate), "client_key": str(closed)},
        "other key": {"client_cert": str(certificate), "client_key": str(other)},
    }[case]
    with raises_code(UsageError, "options.certificate", next(iter(settings))):
        OpenAIApi(OpenAIOptions(model="tiny", base_url="https://127.0.0.1:9", api_key_env="", **settings))


def test_key_without_a_certificate_is_refused(transport):
    with raises_code(UsageError, "options.conflict", "client_cert"):
        OpenAIApi(OpenAIOptions(model="tiny", base_url="https://127.0.0.1:9", api_key_env="", client_key="a.pem"))


@pytest.mark.parametrize("by", ["setting", "environment"])
def test_private_server_is_asked_through_a_tunnel(serve, transport, authority, monkeypatch, by):
    server, proxy = serve(), TinyProxy(user="me:secret" if by == "environment" else "")
    try:
        settings = {"proxy": f"http://127.0.0.1:{proxy.port}"}
        if by == "environment":
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
            settings = {}
        (answer,) = answers(server, transport, ca_bundle=str(authority.bundle), **settings)
    finally:
        proxy.close()
    assert isinstance(answer, Generation) and answer.text == "fine"
    assert proxy.asked == [f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1".rsplit(" ", 1)[0]]


def test_setting_decides_against_the_environment(serve, transport, authority, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    (answer,) = answers(serve(), transport, ca_bundle=str(authority.bundle), proxy="")
    assert isinstance(answer, Generation) and answer.text == "fine"
    monkeypatch.setenv("NO_PROXY", "*")
    (error,) = answers(serve(), transport, ca_bundle=str(authority.bundle), proxy="http://127.0.0.1:9")
    assert isinstance(error, TransientError) and error.code == "proxy.unreachable"


@pytest.mark.skipif(find_spec("h2") is None, reason="needs h2")
def test_http2_is_spoken_by_httpx_alone_and_gives_the_same_answers(serve, transport, authority):
    server = serve(http2=True)
    found = answers(server, transport, 8, ca_bundle=str(authority.bundle))
    assert [answer.text for answer in found] == ["fine"] * 8
    assert set(server.protocols) == ({"h2"} if transport == "httpx" else {"http/1.1"})
    paths, headers, bodies = zip(*server.requests, strict=True)
    assert set(paths) == {"/v1/chat/completions"} and len({body for body in bodies}) == 1
    assert {one["content-type"] for one in headers} == {"application/json"}


@pytest.mark.skipif(find_spec("h2") is None, reason="needs h2")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_late_answer_ends_alone(serve, transport, authority):
    server = serve(http2=True)
    server.delays = [9.0]
    found = answers(server, transport, 6, ca_bundle=str(authority.bundle), timeout_seconds=2.0)
    assert sorted(getattr(one, "code", "ok") for one in found) == ["endpoint.timeout", *["ok"] * 5]
    gc.collect()  # httpx leaves a connection to its destructor that is cut off while it opens


def test_cookies_are_not_kept(serve, transport, authority):
    server = serve()
    found = answers(server, transport, 4, ca_bundle=str(authority.bundle), concurrency=1)
    assert [answer.text for answer in found] == ["fine"] * 4
    assert len(server.requests) == 4 and not [headers for _, headers, _ in server.requests if "cookie" in headers]


def test_reply_beyond_the_limit_is_refused(serve, transport, authority):
    server = serve()
    server.body = json.dumps(chat("x" * (2 << 20))).encode()
    (error,) = answers(server, transport, ca_bundle=str(authority.bundle), reply_mib=1)
    assert isinstance(error, PermanentError) and error.code == "endpoint.too-large"
