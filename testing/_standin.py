"""An endpoint under the kit's control: it answers as a rule wants, and keeps all that was sent to it."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Sent:
    """A request as it arrived."""

    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str] = field(repr=False)
    """By name in lower case; not shown, because one may hold a key."""
    body: bytes

    @property
    def what(self) -> tuple[str, str, bytes]:
        """Return what two requests have in common that ask the same."""
        return self.method, self.path, self.body

    def values(self) -> list[Any]:
        """Return all texts and numbers in the query and in the body, in their order."""
        query = [value for _, value in parse_qsl(urlsplit(self.path).query)]
        try:
            return [*query, *_leaves(json.loads(self.body))]
        except ValueError:
            text = self.body.decode("utf-8", "replace")
            return [*query, *(value for _, value in parse_qsl(text)), text]

    def holds(self, wanted: str | float) -> bool:
        """Return whether a text or a number is in the path, the query or the body."""
        if isinstance(wanted, str):
            return wanted in self.path or any(wanted in value for value in self.values() if isinstance(value, str))
        return any(_number(value) == wanted for value in self.values())

    def digest(self) -> str:
        """Return a digest of what was asked; the order of names in a body does not matter."""
        try:
            body = json.dumps(json.loads(self.body), sort_keys=True).encode()
        except ValueError:
            body = self.body
        return hashlib.sha256(f"{self.method} {self.path} ".encode() + body).hexdigest()[:16]


@dataclass(frozen=True)
class Reply:
    """What the endpoint sends."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    """The phrase behind the status."""
    delay_seconds: float = 0.0
    cut: bool = False
    """Close the connection instead of answering."""


class StandIn:
    """A local endpoint; use it with `with`."""

    def __init__(self, reply: Callable[[Sent], Reply]) -> None:
        self.sent: list[Sent] = []
        self._reply, self._lock = reply, Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StandIn:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, sent: Sent) -> Reply:
        """Keep a request, and return the reply to it."""
        with self._lock:
            self.sent.append(sent)
            return self._reply(sent)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client may leave."""


def _handler(standin: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Header and body leave in one piece, or the second would wait for the client's acknowledgement.
        wbufsize = -1

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = standin.answer(Sent(self.command, self.path, headers, self._read(headers)))
            time.sleep(reply.delay_seconds)
            if reply.cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(reply.status, reply.reason)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def _read(self, headers: Mapping[str, str]) -> bytes:
            if "chunked" not in headers.get("transfer-encoding", ""):
                return self.rfile.read(int(headers.get("content-length", 0)))
            parts = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
