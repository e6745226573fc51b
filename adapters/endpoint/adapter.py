"""`EndpointAdapter`: a model behind an endpoint that answers in words, in whatever dialect.

An adapter of a dialect says where it is at home, which headers it sends, how it writes a request, and how it reads a
reply. All else is the same for all: keys, the wire, images, limits, refusals, reasoning, errors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from ...core.contracts.abilities import Abilities
from ...core.contracts.adapter import Identity, Limits, ModelAdapter, Worker, generation_number, unsupported
from ...core.contracts.batch import BatchApi
from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Generate, Generation, Request, Scalar
from ...core.contracts.version import VERSION
from .answers import Answer, filtered_answer, generation_of, with_reply
from .batches import Courier
from .call import Body, Caller
from .clients import make_wire, require_client
from .errors import FilteredError
from .images import Look, Pictures, any_picture
from .keys import Home, check_extra, ensure_no_key, find_address, find_key
from .options import WireOptions, endpoint_of, endpoint_settings
from .scrub import Scrubber
from .wire import Endpoint, Reply


class EndpointAdapter(ModelAdapter):
    """A model behind an endpoint."""

    options: ClassVar[type[msgspec.Struct]] = WireOptions
    home: ClassVar[Home]
    version: ClassVar[str] = "1"
    reply: ClassVar[type[Body]]
    """What a reply is decoded as."""
    known: ClassVar[frozenset[str]]
    """Finish reasons that the parser knows, in lower case."""
    named: ClassVar[bool] = True
    """The body holds the model's name."""
    packages: ClassVar[tuple[str, ...]] = ()
    """What the adapter needs beside a client."""
    stops: ClassVar[bool] = True
    """The dialect has stop texts; else they are applied to the answer."""
    logprobs: ClassVar[bool] = False
    """The dialect has log-probabilities of generated tokens."""
    fields: ClassVar[frozenset[str]] = frozenset()
    """Settings of `Generate` that the dialect honours; see `Abilities.fields`."""

    def __init__(self, options: Any) -> None:
        """Find address and key; nothing is sent.

        Raises:
            MissingExtraError: a package that the adapter needs is not installed.
            UsageError: a setting is invalid, or there is no key at the configured place.
        """
        require_client(self.home.adapter, self.home.extra, options.transport, self.packages)
        check_extra(options.extra_body, self.home.fixed)
        address = self.address(options)
        key = self.key(options, address)
        settings = endpoint_settings(options, address) | self.settings(options)
        self.identity = Identity(
            adapter=self.home.adapter,
            version=self.version,
            model=options.model,
            digest=options.revision or "",
            settings=settings,
        )
        ensure_no_key(self.identity, key)
        self.limits = Limits(concurrency=options.concurrency, batch_items=1)
        own = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"prejudge/{VERSION}"}
        endpoint = Endpoint.of(options, address, own | dict(self.headers(options, key)))
        scrub = self._scrub = Scrubber(key)
        self._options = options
        # Limits are counted per model, so that two models behind one address have a pace each.
        self.endpoint = endpoint_of(options, f"{endpoint.where} {options.model}", endpoint.proxy)
        self._caller = Caller(
            make_wire(endpoint, options.transport, scrub),
            endpoint.where,
            scrub,
            options.model,
            options.extra_body,
            services=lambda: self.services,
            named=self.named,
        )
        self._courier = Courier(endpoint, scrub, options.model, options.transport)
        if options.batches or (options.batches is None and address == self.home.url):
            self.batch_api = self.batching(self._courier)
        self._pictures = Pictures(self.home.adapter)
        self._worker = Worker(f"{self.home.adapter}-images")

    def address(self, options: Any) -> str:
        """Return the address of the endpoint."""
        return find_address(options, self.home)

    def key(self, options: Any, address: str) -> str | None:
        """Return the key, or None for a server that wants none."""
        return find_key(options, address, self.home)

    def settings(self, options: Any) -> dict[str, Scalar]:
        """Return the settings of the identity that only this dialect has."""
        return {}

    @abstractmethod
    def headers(self, options: Any, key: str | None) -> Mapping[str, str]:
        """Return the headers of every request that are the dialect's own."""

    @abstractmethod
    def path(self) -> str:
        """Return the path below the address that answers."""

    @abstractmethod
    def write(self, request: Generate, look: Look, generation: int) -> dict[str, Any]:
        """Return the body of a request, whose images `look` gives."""

    @abstractmethod
    def understand(self, reply: Any, request: Generate) -> Answer:
        """Return what a reply says.

        Raises:
            ModelError: it holds no answer.
        """

    def batching(self, courier: Courier) -> BatchApi | None:
        """Return the batch interface of the dialect, if it has one; see `batch_body` and `batch_answer`."""
        return None

    async def batch_body(self, request: Generate) -> dict[str, Any]:
        """Return the whole body of a single call, for a batch."""
        return self._caller.whole(await self.body(request))

    def batch_answer(self, reply: Reply, request: Generate) -> Generation:
        """Return the answer of a reply that stood in the results of a batch.

        Raises:
            ModelError: it holds none.
        """
        try:
            return self.read(self._caller.answered(reply), request)
        except FilteredError as stopped:
            return self._filtered(stopped)

    async def body(self, request: Generate) -> dict[str, Any]:
        """Return the body of a request, without the model's name and the settings' further fields.

        Raises:
            PermanentError: a request that the dialect cannot write, or an image that cannot be sent.
        """
        self._ensure_logprobs(request)
        if (error := unsupported(self, request)) is not None:
            raise error
        look = await self._pictures.of(request.messages, self.services.blobs, self._worker)
        return self.write(request, look, generation_number(self.services, request))

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return what the dialect can do."""
        return msgspec.structs.replace(super().abilities(options), fields=cls.fields)

    def check(self, request: Request) -> None:
        """Write a request; see `ModelAdapter`."""
        self._pictures.ensure_readable(request)
        if isinstance(request, Generate):
            self._ensure_logprobs(request)
            self.write(request, any_picture, 0)

    def _ensure_logprobs(self, request: Generate) -> None:
        if request.top_logprobs and not self.logprobs:
            raise PermanentError(
                f"adapter {self.home.adapter!r}: the endpoint gives no log-probabilities; ask without top_logprobs.",
                code="endpoint.no-logprobs",
            )

    def read(self, reply: Reply, request: Generate) -> Generation:
        """Return the answer of a reply to a request.

        Raises:
            ModelError: it holds none.
        """
        return self.record(self._caller.read(reply, self.reply), reply.body, request)

    def record(self, reply: Any, raw: bytes, request: Generate) -> Generation:
        """Return the answer of a reply that was decoded.

        Raises:
            ModelError: it holds none.
        """
        answer = self.understand(reply, request)
        cut = not self.stops or "stop" in self._options.omit
        made = generation_of(answer, request, self._options, cut=cut)
        return with_reply(made, raw, self._options.keep_replies, self.known)

    async def generate(self, request: Generate) -> Generation:
        """Continue messages of text and images; an answer that a content filter stops has the status `filtered`."""
        body = await self.body(request)
        try:
            return self.read(await self._caller.send(self.path(), body), request)
        except FilteredError as stopped:
            return self._filtered(stopped)

    def _filtered(self, stopped: FilteredError) -> Generation:
        return filtered_answer(stopped, self._options.keep_replies, self.known)

    async def aclose(self) -> None:
        """Close the connections; current calls fail."""
        await self._caller.aclose()
        await self._courier.aclose()
        self._worker.close()
