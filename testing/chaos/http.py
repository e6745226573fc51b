"""HTTP over asyncio streams, with every way to break a reply; a server's library would mend half of them."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.parser import Parser
from http import HTTPStatus
from typing import Any, Literal

Json = dict[str, Any]
Way = Literal["whole", "drip", "cut", "half", "short", "reset", "hang", "endless", "noise"]
_PIECES = 10
_TICK = 0.05
_TLS = b"\x16"
"""First byte of a caller that wants a secure connection where there is none."""


@dataclass(frozen=True)
class Reply:
    """What the server sends, or how it fails to."""

    status: int = 200
    body: Json | bytes | str = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    phrase: str = ""
    """What stands behind the status; by default, what HTTP calls it."""
    delay: float = 0.0
    """Seconds before the reply; of a `drip`, the seconds that its body takes."""
    way: Way = "whole"
    """`cut`: closes the connection before the first byte; `half`: in the middle of the body; `short`: a Content-Length
    below the length; `reset`: resets the connection; `hang`: sends nothing; `endless`: a body that never ends; `noise`:
    bytes that are not HTTP."""
    down_seconds: float = 0.0
    """Seconds from then on in which the whole server refuses connections."""

    @property
    def raw(self) -> bytes:
        """Return the bytes of the body."""
        if isinstance(self.body, dict):
            return json.dumps(self.body).encode()
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass(frozen=True)
class Call:
    """A request that arrived."""

    path: str
    """Without the `/v1` of the base url."""
    headers: Message
    """Looked up in any case."""
    body: Json
    """Empty if the body is not a JSON object."""
    target: str
    """Path and query as they were asked for."""
    raw: bytes
    """The body as it arrived."""
    well: Reply
    """What the server would answer without a fault."""

    @property
    def text(self) -> str:
        """Return the last text that the model is asked about."""
        last = (self.body.get("messages") or [{}])[-1].get("content")
        parts = last if isinstance(last, list) else [{"text": last or self.body.get("prompt") or ""}]
        return " ".join(str(part.get("text", "")) for part in parts)

    @property
    def key(self) -> str:
        """Return the key that the request carries, or nothing."""
        return str(self.headers.get("Authorization", "")).removeprefix("Bearer ")


async def read_request(reader: asyncio.StreamReader) -> tuple[str, Message, bytes] | None:
    """Return the target, the headers and the body of the next request; None if the caller left."""
    try:
        if (first := await reader.readexactly(1)) == _TLS:
            return None
        line, _, head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
        headers = Parser().parsestr(head)
        if "chunked" in headers.get("Transfer-Encoding", ""):
            return line.split(" ")[1], headers, await _read_chunks(reader)
        return line.split(" ")[1], headers, await reader.readexactly(int(headers.get("Content-Length", 0)))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError, IndexError):
        return None


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send a reply; return whether it was sent whole, so that the connection may be used again."""
    if reply.way != "drip":
        await asyncio.sleep(reply.delay)
    match reply.way:
        case "whole" | "drip":
            await _write(writer, reply)
            return True
        case "reset":
            reset(writer)
        case "hang":
            await reader.read(1)
        case "endless":
            writer.write(_head(reply, {"Transfer-Encoding": "chunked"}))
            while not reader.at_eof():
                writer.write(b"1\r\n \r\n")
                await writer.drain()
                await asyncio.sleep(_TICK)
        case "half":
            writer.write(_head(reply) + reply.raw[: len(reply.raw) // 2])
        case "short":
            writer.write(_head(reply, {"Content-Length": str(len(reply.raw) // 2)}) + reply.raw)
        case "noise":
            writer.write(b"\x00\xff\x1b[2J SSH-2.0-OpenSSH_9.6 \r\n\r\n" + reply.raw)
        case "cut":
            pass
    return False


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    raw = reply.raw
    if reply.way == "drip":
        writer.write(_head(reply))
        step = max(1, -(-len(raw) // _PIECES))
        for start in range(0, len(raw), step):
            writer.write(raw[start : start + step])
            await writer.drain()
            await asyncio.sleep(reply.delay / _PIECES)
        return
    writer.write(_head(reply) + raw)
    await writer.drain()


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection, as a machine does that crashed."""
    plain = writer.get_extra_info("socket")
    if plain is not None and plain.fileno() >= 0:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _head(reply: Reply, more: Mapping[str, str] = {}) -> bytes:
    length = {} if "Transfer-Encoding" in more else {"Content-Length": str(len(reply.raw))}
    headers = {"Content-Type": reply.content_type, **length, **more, **reply.headers}
    if reply.status == HTTPStatus.NO_CONTENT:
        headers.pop("Content-Length", None)
    usual = HTTPStatus(reply.status).phrase if reply.status in set(HTTPStatus) else "Unknown"
    lines = [
        f"HTTP/1.1 {reply.status} {reply.phrase or usual}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
