"""A stranger's server on this machine: it notes all that it is sent, and refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Listener(ThreadingHTTPServer):
    """The server; `heard` has the request line, the headers and the body of every request."""

    daemon_threads = True

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Hear)
        self.status = status
        self.heard: list[str] = []


class _Hear(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0) or 0)).decode("latin-1")
        self.server.heard.append(f"{self.requestline}\n{self.headers}\n{body}")
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def listening(status: int) -> Iterator[Listener]:
    """Run a listener that answers with a status."""
    with Listener(status) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
