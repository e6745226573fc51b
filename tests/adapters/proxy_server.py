"""A proxy of a few lines, which remembers what it was asked for."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from urllib.parse import urlsplit


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
