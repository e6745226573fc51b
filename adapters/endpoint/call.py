"""`Caller`: a request to one endpoint as a typed answer or a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ...core.contracts.adapter import Remark, Room
from ...core.contracts.errors import ModelError
from .errors import UNREADABLE, explain_leak, explain_reply, explain_seed, explain_unreadable
from .scrub import Scrubber
from .waits import read_room
from .wire import Reply, Wire


class Body(msgspec.Struct, kw_only=True):
    """What every reply may hold, whatever its dialect; some gateways report an error with the status 200."""

    error: object = None

    def failed(self) -> object:
        """Return the error that stands in the place of an answer, or nothing."""
        return self.error

    def remark(self) -> Remark | None:
        """Return what the endpoint says of itself beside the answer, if the dialect has words for it."""
        return None


T = TypeVar("T", bound=Body)


class Caller:
    """Sends bodies to an endpoint and reads what comes back. Retries nothing."""

    def __init__(self, wire: Wire, where: str, scrub: Scrubber, model: str, extra: dict[str, Any]) -> None:
        self.where, self.model = where, model
        self.tell: Callable[[Room], None] | None = None
        self.note: Callable[[Remark], None] | None = None
        self._wire, self._scrub, self._extra = wire, scrub, extra
        self._encode = msgspec.json.Encoder().encode
        self._decoders: dict[type, msgspec.json.Decoder[Any]] = {}
        self._closed = False

    async def ask(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        """Send a body with the model's name and the settings' further fields; read the answer as `kind`.

        Raises:
            ModelError: no answer of that kind was received.
        """
        if self._closed:
            raise RuntimeError("this adapter is closed")
        reply = await self._wire.post(path, self._encode(self.whole(body)))
        if self.tell is not None and (room := read_room(reply.headers)) is not None:
            self.tell(room)
        if not 200 <= reply.status < 300:
            raise explain_seed(self.explain(reply), body)
        if self._scrub.finds(reply.body):
            raise explain_leak(self.where)
        return self.read(reply, kind)

    def read(self, reply: Reply, kind: type[T]) -> T:
        """Read a reply as `kind`; one of a batch comes as a part of a file.

        Raises:
            ModelError: it is no answer of that kind.
        """
        answer = self._read(reply, kind)
        if isinstance(answer, ModelError):
            raise answer
        if self.note is not None and (remark := answer.remark()) is not None:
            self.note(remark)
        return answer

    def explain(self, reply: Reply) -> ModelError:
        """Return the error of a reply that reports one."""
        return explain_reply(reply, self.where, self.model, self._scrub)

    async def aclose(self) -> None:
        """Close the connections."""
        if not self._closed:
            self._closed = True
            await self._wire.aclose()

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with the model's name and the settings' further fields."""
        whole = {"model": self.model, **body}
        for name, value in self._extra.items():
            if value is None:
                whole.pop(name, None)
            else:
                whole[name] = value
        return whole

    def _read(self, reply: Reply, kind: type[T]) -> T | ModelError:
        if kind not in self._decoders:
            self._decoders[kind] = msgspec.json.Decoder(kind)
        try:
            answer: T = self._decoders[kind].decode(reply.body)
        except UNREADABLE:
            return explain_unreadable(reply, self.where, self.model, self._scrub)
        failed = answer.failed()
        if failed:
            whole = reply if answer.error else reply._replace(body=msgspec.json.encode({"error": failed}))
            return explain_reply(whole, self.where, self.model, self._scrub)
        return answer
