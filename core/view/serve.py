"""Serve a reading room on this machine, until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn
from starlette.types import ASGIApp

from ..contracts.errors import UsageError
from .guard import Guard
from .opening import browser_at

HOST = "127.0.0.1"


def serve(
    app: ASGIApp,
    port: int = 0,
    landing: str = "/",
    ready: Callable[[str, uvicorn.Server], None] | None = None,
    *,
    browser: bool = False,
) -> None:
    """Serve an application until it is interrupted; `ready` is told the start link and the server, which it may stop.

    Port 0 is a free one. `browser`: open the user's browser at the start link.

    Raises:
        UsageError: the port is taken.
    """
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be used: {error.strerror or error}. Name another with --port.", code="view.port"
            ) from None
        guard = Guard(app, listening.getsockname()[1], landing)
        server = uvicorn.Server(
            uvicorn.Config(guard, log_level="warning", access_log=False, server_header=False, lifespan="off")
        )
        if ready is not None:
            ready(guard.link, server)
        if browser:
            guard.on_start = stack.enter_context(browser_at(guard.link))
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            return  # the way to end it
