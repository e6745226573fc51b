"""The common base of the rules of adapters: the settings of a test class, and a new adapter for each rule."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal, TypeVar
from unittest import SkipTest

import msgspec

from ..core.contracts.adapter import Identity, ModelAdapter, Services
from ..core.contracts.errors import DataError, ModelError
from ..core.contracts.png import encode_png
from ..core.contracts.records import AnyRequest, Generate, Message, Sampling, Text
from ._compare import Answer, close, plain
from ._standin import StandIn
from .chaos.http import Call, Reply
from .dialect import OPENAI, Dialect

T = TypeVar("T")
Setting = Literal["temperature", "top_p", "max_tokens", "stop", "seed", "system"]
MODEL = "kit-model-1"
NOWHERE = "http://127.0.0.1:9"
"""An address where nothing listens."""
KEY = "kit-key-7Qm2Zx9Lr4Vt8Wb3Nd6Hs1Kp5Jc0Fg"
"""A key that opens nothing; it must be found nowhere but in a request."""
IMAGES = {
    hashlib.sha256(data).hexdigest(): data
    for data in (encode_png(bytes(colour) * 4, 2, 2) for colour in (b"red", b"sky"))
}


def ask(text: str, *, system: str = "", **sampling: object) -> Generate:
    """Return a question of one message, behind a system message if there is one."""
    turns = [Message("system", (Text(system),))] if system else []
    turns.append(Message("user", (Text(text),)))
    return Generate(messages=tuple(turns), sampling=msgspec.convert({"temperature": 0.0} | sampling, Sampling))


class AdapterKit:
    """Set `at`, or `make` and `requests`; the other settings are for unusual adapters."""

    make: ClassVar[Callable[[], ModelAdapter] | None] = None
    """Make the adapter, the same one at each call. Not needed with `at`."""
    requests: ClassVar[Sequence[AnyRequest]] = (
        ask("Who is it?"),
        ask("Describe a person in two words."),
        ask("Yes or no?"),
    )
    """Requests that it answers, of any operations."""
    at: ClassVar[Callable[[str, str], ModelAdapter] | None] = None
    """Make the adapter of an endpoint at a url (`http://127.0.0.1:PORT`), for a model of a name: the kit stands in for
    the endpoint. None for a model that runs in this process."""
    speaks: ClassVar[Dialect] = OPENAI
    """How that endpoint writes its replies."""
    key_env: ClassVar[str | None] = None
    """Environment variable from which that adapter takes its key. The kit sets it to a key of its own."""
    ignores: ClassVar[Collection[Setting]] = ()
    """Settings that the model does not have, such as `seed`; all others must reach it."""
    no_stand_in: ClassVar[str] = ""
    """Why the kit cannot stand in for the endpoint of an adapter without `at`, such as "speaks gRPC"."""
    tolerance: ClassVar[float] = 1e-6
    """Tolerance, absolute or relative, between the numbers of an answer alone and in a batch."""
    recipe: ClassVar[str | None] = None
    """Python code that binds `adapter` to the same adapter, to make it in another process; with `at`, from the names
    `url` and `model`."""
    others: ClassVar[Sequence[Callable[..., ModelAdapter]]] = ()
    """Makers of adapters that give other answers: another dtype, template or prompt. Each needs another identity. They
    are called as `make` is, or as `at` if there is no `make`."""
    same: ClassVar[Sequence[Callable[..., ModelAdapter]]] = ()
    """Makers of adapters that give the same answers: another device, batch size, time-out. One identity for all."""
    secrets: ClassVar[Sequence[str]] = ()
    """Environment variables with keys of the adapter, besides those whose name says that they hold a key."""
    blocked_seconds: ClassVar[float] = 0.25
    """Longest time in seconds that a call may block the event loop."""

    def _groups(self) -> list[list[AnyRequest]]:
        """Return the requests by kind, in the order in which they are asked."""
        assert self.requests, "set `requests`"
        by_kind: dict[type, list[AnyRequest]] = {}
        for request in self.requests:
            by_kind.setdefault(type(request), []).append(request)
        return list(by_kind.values())

    def _generates(self) -> list[Generate]:
        """Return those that ask for text."""
        found = [request for request in self.requests if isinstance(request, Generate)]
        if not found:
            raise SkipTest("it does not generate")
        return found

    @contextmanager
    def _standing(self) -> Iterator[Callable[[], ModelAdapter]]:
        """Return how to make the adapter; an endpoint that answers well stands in for that of `at`."""
        if (make := type(self).make) is not None:
            yield make
            return
        with self._endpoint(self.speaks.echo) as (_, made):
            yield made

    @contextmanager
    def _endpoint(self, reply: Callable[[Call], Reply]) -> Iterator[tuple[StandIn, Callable[[], ModelAdapter]]]:
        """Start an endpoint, with the kit's key in the environment; return it, and how to make its adapter."""
        if type(self).at is None:
            raise SkipTest("set `at` if it asks an endpoint")
        with variable(self.key_env, KEY), StandIn(reply) as server:
            yield server, lambda: self._at(server.address)

    def _at(self, url: str, model: str = MODEL) -> ModelAdapter:
        at = type(self).at
        assert at is not None, "set `make` and `requests`, or `at`"
        adapter = at(url, model)
        adapter.services = Services(blobs=_image, keep=lambda data, _: hashlib.sha256(data).hexdigest())
        return adapter

    def _with(self, rule: Callable[[ModelAdapter], Awaitable[T]]) -> T:
        """Run a rule on a new adapter, and close the adapter."""
        with self._standing() as make:
            return run(make, rule)

    def _identity(self, maker: Callable[..., ModelAdapter] | None = None) -> Identity:
        """Return the identity of an adapter, of the one under test by default."""

        async def rule(adapter: ModelAdapter) -> Identity:
            return adapter.identity

        kind = type(self)
        chosen = maker or kind.make or kind.at
        assert chosen is not None, "set `make` and `requests`, or `at`"
        place = (NOWHERE, MODEL) if kind.make is None else ()
        with variable(self.key_env, KEY):
            return run(lambda: chosen(*place), rule)

    def _same(self, first: Answer, second: Answer, request: AnyRequest) -> None:
        same = close(plain(first), plain(second), self.tolerance)
        assert same, f"two answers to {request!r} differ:\n{first!r}\n{second!r}"


def run(make: Callable[[], ModelAdapter], rule: Callable[[ModelAdapter], Awaitable[T]]) -> T:
    """Run a rule on a new adapter, and close the adapter."""

    async def whole() -> T:
        adapter = make()
        try:
            return await rule(adapter)
        finally:
            await adapter.aclose()

    return asyncio.run(whole())


async def settle(adapter: ModelAdapter, request: AnyRequest) -> Answer:
    """Return the answer to a request, or its error; an exception of another kind is the adapter's fault and passes."""
    try:
        (answer,) = await adapter.answer([request])
    except ModelError as error:
        return error
    return answer


def _image(sha256: str) -> bytes:
    if sha256 not in IMAGES:
        raise DataError(f"there is no image {sha256!r}.", code="store.no-image")
    return IMAGES[sha256]


@contextmanager
def variable(name: str | None, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while."""
    if name is None:
        yield
        return
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
