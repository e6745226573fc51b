"""`Caller`: a request to one endpoint as a typed answer or a typed error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ...core.contracts.adapter import Remark, Services
from ...core.contracts.errors import ModelError
from .errors import explain_field, explain_leak, explain_reply, explain_unreadable
from .repairs import UNREADABLE, repaired
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


def remark_of(model: object, fingerprint: object = None, provider: object = None) -> Remark | None:
    """Return the names of model, system and provider that a reply has; what is no text is none."""
    told = {"model": model, "fingerprint": fingerprint, "provider": provider}
    names = {field: name[:_NAME] for field, name in told.items() if isinstance(name, str) and name}
    return Remark(**names) if names else None


T = TypeVar("T", bound=Body)
_NAME = 200
"""Characters of a name that are kept."""


class Caller:
    """Sends bodies to an endpoint and reads what comes back. Retries nothing."""

    def __init__(
        self,
        wire: Wire,
        where: str,
        scrub: Scrubber,
        model: str,
        extra: dict[str, Any],
        *,
        services: Callable[[], Services] = Services,
        named: bool = True,
    ) -> None:
        self.where, self.model = where, model
        self.sign: Callable[[str, bytes], Awaitable[Mapping[str, str]]] | None = None
        """Return the headers of one request, where a dialect signs each; not sent by the package's own stack."""
        self.query = ""
        """What follows every path."""
        self._wire, self._scrub, self._extra, self._services = wire, scrub, extra, services
        self._fixed = {"model": model} if named else {}
        self._encode = msgspec.json.Encoder().encode
        self._decoders: dict[type, msgspec.json.Decoder[Any]] = {}
        self._closed = False

    async def ask(self, path: str, body: dict[str, Any], kind: type[T]) -> T:
        """Send a body with the model's name and the settings' further fields; read the answer as `kind`.

        Raises:
            ModelError: no answer of that kind was received.
        """
        return self.read(await self.send(path, body), kind)

    async def send(self, path: str, body: dict[str, Any]) -> Reply:
        """Send a body with the settings' further fields; return the reply of an endpoint that reports no error.

        Raises:
            ModelError: no such reply was received, or it holds the key.
        """
        if self._closed:
            raise RuntimeError("this adapter is closed")
        data, path = self._encode(self.whole(body)), path + self.query
        if self.sign is None:
            reply = await self._wire.post(path, data)
        else:
            reply = await self._wire.post(path, data, await self.sign(path, data))
        hear = self._services().hear
        if hear is not None and (room := read_room(reply.headers)) is not None:
            hear(room)
        if (fault := self.fault(reply)) is not None:
            raise explain_field(fault, data)
        return reply

    def fault(self, reply: Reply) -> ModelError | None:
        """Return the error of a reply that reports one, or that holds the key; else None."""
        if not 200 <= reply.status < 300:
            return self.explain(reply)
        return explain_leak(self.where) if self._scrub.finds(reply.body) else None

    def answered(self, reply: Reply) -> Reply:
        """Return a reply that stood in the results of a batch.

        Raises:
            ModelError: it reports an error.
        """
        if not 200 <= reply.status < 300:
            raise self.explain(reply)
        return reply

    def read(self, reply: Reply, kind: type[T]) -> T:
        """Return what a reply says.

        Raises:
            ModelError: it is no answer of that kind, or reports an error in its place.
        """
        answer = self._read(reply, kind)
        if isinstance(answer, ModelError):
            raise answer
        note = self._services().note
        if note is not None and (remark := answer.remark()) is not None:
            note(remark)
        return answer

    def explain(self, reply: Reply) -> ModelError:
        """Return the error of a reply that reports one."""
        return explain_reply(reply, self.where, self.model, self._scrub)

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with the model's name and the settings' further fields, which are put into inner tables."""
        return _merged({**self._fixed, **body}, self._extra)

    async def aclose(self) -> None:
        """Close the connections."""
        if not self._closed:
            self._closed = True
            await self._wire.aclose()

    def _read(self, reply: Reply, kind: type[T]) -> T | ModelError:
        if kind not in self._decoders:
            self._decoders[kind] = msgspec.json.Decoder(kind)
        try:
            answer: T = self._decoders[kind].decode(reply.body)
        except UNREADABLE:
            try:
                answer = self._decoders[kind].decode(repaired(reply.body) or b"")
            except UNREADABLE:
                return explain_unreadable(reply, self.where, self.model, self._scrub)
        failed = answer.failed()
        if failed:
            whole = reply if answer.error else reply._replace(body=msgspec.json.encode({"error": failed}))
            return explain_reply(whole, self.where, self.model, self._scrub)
        return answer


def _merged(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(body)
    for name, value in extra.items():
        inner = whole.get(name)
        if value is None:
            whole.pop(name, None)
        elif isinstance(value, dict) and isinstance(inner, dict):
            whole[name] = _merged(inner, value)
        else:
            whole[name] = value
    return whole
