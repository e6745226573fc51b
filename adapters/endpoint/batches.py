"""`Courier`: the calls that batches need beside single questions, and what the batches of all providers share."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from ...core.contracts.batch import BatchLine, BatchStatus
from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate, Generation, Request
from .clients import make_wire
from .errors import explain_leak, explain_reply, explain_unreadable
from .options import Transport
from .repairs import UNREADABLE
from .scrub import Scrubber
from .wire import Endpoint, Reply

T = TypeVar("T")
SECONDS = 900.0
"""Time limit of a call: files of hundreds of megabytes go back and forth."""
MOST_BYTES = 2 << 30


class Courier:
    """Sends requests about batches to an endpoint, on connections of their own. Retries nothing."""

    def __init__(self, endpoint: Endpoint, scrub: Scrubber, model: str, transport: Transport = "lean") -> None:
        seconds = max(SECONDS, endpoint.timeout_seconds)
        own = msgspec.structs.replace(endpoint, connections=2, timeout_seconds=seconds, reply_bytes=MOST_BYTES)
        self._wire = make_wire(own, transport, scrub)
        self._where, self._scrub, self._model = endpoint.where, scrub, model

    async def ask(self, method: str, path: str, kind: type[T], body: object = None) -> T:
        """Send a JSON body, if any, and read the answer as `kind`.

        Raises:
            ModelError: no such answer was received.
        """
        return self._decode(await self._send(method, path, None if body is None else msgspec.json.encode(body)), kind)

    async def send_file(
        self, path: str, fields: Mapping[str, str], name: str, lines: Sequence[bytes], kind: type[T]
    ) -> T:
        """Send lines as a file of a form, and read the answer as `kind`.

        Raises:
            ModelError: no such answer was received.
        """
        edge = f"prejudge-{secrets.token_hex(16)}"
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
            for field, value in fields.items()
        ]
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        parts.append(f"{head}Content-Type: application/jsonl\r\n\r\n".encode())
        body = b"".join([*parts, *(part for line in lines for part in (line, b"\n")), f"\r\n--{edge}--\r\n".encode()])
        return self._decode(
            await self._send("POST", path, body, {"Content-Type": f"multipart/form-data; boundary={edge}"}), kind
        )

    async def lines(self, path: str) -> list[BatchLine]:
        """Return the lines of a file of results, each with its custom id.

        Raises:
            ModelError: it was not received whole.
        """
        reply = await self._send("GET", path)
        read = msgspec.json.Decoder(_Named)
        found = []
        for line in reply.body.split(b"\n"):
            if line.strip():
                try:
                    name = read.decode(line).custom_id
                except UNREADABLE:
                    name = ""
                found.append(BatchLine(name, line))
        return found

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    async def _send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        reply = await self._wire.send(method, path, body, headers)
        if not 200 <= reply.status < 300:
            raise explain_reply(reply, self._where, self._model, self._scrub)
        if self._scrub.finds(reply.body):
            raise explain_leak(self._where)
        return reply

    def _decode(self, reply: Reply, kind: type[T]) -> T:
        failure = None
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except UNREADABLE:
            failure = explain_unreadable(reply, self._where, self._model, self._scrub)
        raise failure


class Stated(Protocol):
    """A batch as a provider writes it."""

    def read(self) -> BatchStatus:
        """Return what it says."""


class EndpointBatches:
    """What the batches of one model have in common, whatever the provider calls them."""

    takes: frozenset[type[Request]] = frozenset({Generate})
    told: ClassVar[type[Stated]]
    """What the state of a batch is decoded as."""
    place: ClassVar[str]
    """The path below which batches stand."""

    def __init__(
        self,
        courier: Courier,
        body: Callable[[Generate], Awaitable[dict[str, Any]]],
        read: Callable[[Reply, Generate], Generation],
    ) -> None:
        """`body` makes the whole body of a single call, and `read` reads its reply."""
        self._courier, self._body, self._read = courier, body, read

    async def status(self, batch: str) -> BatchStatus:
        """Return the state of a batch."""
        try:
            return (await self._courier.ask("GET", f"{self.place}/{batch}", self.told)).read()
        except PermanentError as error:
            if error.code != "endpoint.not-found":
                raise
            return BatchStatus(id=batch, state="missing")

    async def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        await self._courier.ask("POST", f"{self.place}/{batch}/cancel", self.told, {})


class _Named(msgspec.Struct):
    custom_id: str = ""
