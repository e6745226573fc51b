"""`ModelAdapter`: the async interface of a model. A new backend is one class.

Write a method per operation of the model, named as in `OPERATIONS`: for one request (`async def generate(self,
request)`, which returns the answer or raises a `ModelError`) or for many (`async def generate_batch(self, requests)`,
which returns an answer or a `ModelError` for each, in order). A run calls the second where a class has both.

Duties of an adapter: `identity` is known without loading weights; nothing is retried inside (raise a `ModelError`
and the scheduler decides); blocking work runs in `Worker`, so that the event loop never blocks; an answer never
depends on the other requests of its batch; no exception contains a key or token.
"""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

import msgspec

from .abilities import OPERATIONS, Abilities, Need, methods_of, need_of
from .batch import BatchApi
from .cells import Cells
from .errors import ModelError, PermanentError, UnsupportedOperationError
from .model_files import ModelFiles, Recognised
from .records import AnyRequest, AnyResponse, Image, Request, Scalar, prompt_of

Q = TypeVar("Q")
R = TypeVar("R")
P = ParamSpec("P")
T = TypeVar("T")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """All that determines a model's answers. Never keys, secrets of a URL, time-outs, concurrency or device.

    Example:
        >>> import prejudge
        >>> prejudge.Identity(adapter="echo", version="1", model="tiny", settings={"dtype": "float32"}).pinned
        False
    """

    adapter: str
    version: str
    """Version of the adapter's behaviour; increase it when its answers change."""
    model: str
    """Its name."""
    digest: str = ""
    """Digest of the files it was loaded from (weights, word lists), or their revision."""
    pinned: bool = False
    """Whether `digest` alone says which files these are, as a sha256 or a commit does: `model` is then a name for
    people, and no part of a key. Answers stay valid when the file is renamed."""
    settings: dict[str, Scalar] = {}
    """All other settings that change answers: dtype, quantisation, chat template digest, system prompt ..."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How a model may be called.

    Example:
        >>> import prejudge
        >>> prejudge.Limits(concurrency=16).batch_items
        1
    """

    concurrency: int = 1
    """Calls in flight at once."""
    batch_items: int = 1
    """Requests per call."""
    requests_per_minute: float | None = None
    """A limit that is known beforehand; an unknown limit is inferred from the endpoint's answers."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """Rate-limit information that an endpoint sends with an answer."""

    remaining: float
    """Requests that remain in the current window."""
    reset_seconds: float
    """Seconds until the full limit is available again."""
    limit: float | None = None
    """Full limit, in requests."""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint says of itself beside an answer. It is no part of the answer, and is not stored with it.

    Example:
        >>> import prejudge
        >>> prejudge.Remark(model="tiny-2026-01-01", provider="somewhere").fingerprint
        ''
    """

    model: str = ""
    """Name of the model that answered, in the endpoint's words."""
    fingerprint: str = ""
    """Name of the system that answered, such as OpenAI's `system_fingerprint`."""
    provider: str = ""
    """Name of the provider that a router had answer, such as OpenRouter's `provider`."""


class RemoteEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The service behind a model that does not run in this process, and what its answers are checked against.

    Example:
        >>> import prejudge
        >>> prejudge.RemoteEndpoint(name="https://api.example.com/v1", answer_room=256, context=8192).max_tokens is None
        True
    """

    name: str
    """Name of its rate limit: adapters that name the same one share one limiter."""
    proxy: str = ""
    """Host and port of the proxy through which it is asked, for `doctor`; empty: none."""
    answer_room: int = 0
    """Tokens that the adapter adds to the limit of a request."""
    max_tokens: int | None = None
    """Limit of a request that sets none; None: there is none."""
    context: int | None = None
    """Tokens of the model's context, prompt and answer; None: not known."""
    names: tuple[str, ...] = ()
    """Names that replies may carry, as the user states them; empty: the name in the identity, and its versions."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """Services of a run for an adapter; a service that is None is not available.

    Example:
        >>> import prejudge
        >>> services = prejudge.Services(blobs={"ab12": b"image"}.__getitem__)
        >>> services.blobs("ab12"), services.keep
        (b'image', None)
    """

    blobs: Callable[[str], bytes] | None = None
    """Return the bytes of an image by its sha256 (hex); raise `DataError` if there is no such image."""
    keep: Callable[[bytes, str], str] | None = None
    """Store the bytes of an image of a media type, and return their sha256 (hex)."""
    hear: Callable[[Room], None] | None = None
    """Receive the rate-limit information of an endpoint."""
    note: Callable[[Remark], None] | None = None
    """Receive what an endpoint says of itself beside an answer."""
    generation: Callable[[Request], int] | None = None
    """Return how often a request was answered before, if it is asked anew; else 0. `wire_seed` needs it."""
    cells: Callable[[], Cells | None] | None = None
    """Return the table of the study's declared design, by question; None: an effect cannot be planted in it. It is set
    before the identity is read, and what of it answers depend on belongs to the identity."""


class Worker:
    """One thread for an adapter's blocking work: calls run one after another, off the event loop.

    Args:
        name: the name of the thread.

    Example:
        >>> import asyncio, prejudge
        >>> worker = prejudge.Worker("tiny")
        >>> asyncio.run(worker.run(sum, [1, 2]))
        3
        >>> worker.close()
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: call(*args, **kwargs))

    def close(self) -> None:
        """Finish the current call and end the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class ModelAdapter(ABC):
    """A model with an async interface.

    A subclass has a method for each operation of the model, for one request (`generate`) or for many
    (`generate_batch`). These methods are what the model can do; see `abilities`.

    Example:
        >>> import asyncio, prejudge
        >>> from prejudge import records
        >>> class Echo(prejudge.ModelAdapter):
        ...     identity = prejudge.Identity(adapter="echo", version="1", model="echo")
        ...     async def generate(self, request):
        ...         return records.Generation(text=request.messages[-1].parts[0].text)
        >>> request = records.Generate(messages=(records.Message("user", (records.Text("Hello."),)),))
        >>> asyncio.run(Echo().generate(request)).text
        'Hello.'
    """

    options: ClassVar[type[msgspec.Struct]]
    """Settings from the catalogue or the user; the class is called with one record of this type."""
    identity: Identity
    """All that determines its answers; known without loading weights."""
    limits: Limits = Limits()
    """How it may be called."""
    endpoint: RemoteEndpoint | None = None
    """The service behind it; None: a model in this process."""
    batch_api: BatchApi | None = None
    """The provider's batch interface; None: it has none, and every request is a call of its own."""
    services: Services = Services()
    """Services of a run, set before the first request."""
    _lacks: Mapping[str, str] = {}
    """What this model cannot do by its files, once they are opened: reasons as in `Abilities.without`."""
    __options: Any = None

    def __new__(cls, options: Any = None, *args: Any, **named: Any) -> Self:
        """Remember the options, of which `abilities` of the instance depend."""
        adapter = super().__new__(cls)
        adapter.__options = options
        return adapter

    @classmethod
    def abilities(cls, options: Any) -> Abilities:
        """Return what a model with these options can do; by default the operations that the class has methods for.

        Override it with `super().abilities(options).without(...)` where settings or small files on this machine say
        that a model cannot do something. It is called before anything is asked, for many models of the catalogue, so
        it reads no weights, downloads nothing and imports no large package. What it cannot tell is left to the loading
        of the model.
        """
        return Abilities(operations=methods_of(cls))

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Answer requests of one kind, in order; a request that failed, or needs what is missing, has its error.

        Raises:
            UnsupportedOperationError: the model cannot do the operation.
        """
        if not requests:
            return []
        operation = OPERATIONS[type(requests[0])]
        if why := self._abilities.missing(Need(operation=operation)):
            raise UnsupportedOperationError(f"model {self.identity.model!r}: {why}", code="model.operation")
        errors = [unsupported(self, request) for request in requests]
        accepted = [request for request, error in zip(requests, errors, strict=True) if error is None]
        answers = iter(await self._perform(operation, accepted) if accepted else ())
        return [next(answers) if error is None else error for error in errors]

    def check(self, request: Request) -> None:  # noqa: B027 - many adapters can send every request
        """Write a request as if to send it; nothing by default. It is called for samples before any is sent.

        The bytes of images are not available then.

        Raises:
            ModelError: it cannot be sent, by the settings or by the dialect of the endpoint.
            MissingExtraError: a package for its images is not installed.
        """

    def note_on(self, image: bytes) -> str:
        """Return what a reader needs to know of this model's answers about an image; nothing by default."""
        return ""

    def describe(self) -> Mapping[str, str]:
        """Return what the model's own files say of it for people, such as name, size and licence; nothing by default.

        It is shown in reports and cards, and is no part of the identity.
        """
        return {}

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Return the models among some files that this adapter reads, for `--model ./folder`; none by default.

        It reads small files only, as `abilities` does.
        """
        return ()

    async def aclose(self) -> None:  # noqa: B027 - many adapters hold nothing to free
        """Free the adapter's resources. Called once."""

    @cached_property
    def _abilities(self) -> Abilities:
        return self.abilities(self.__options).without(self._lacks)

    async def _perform(self, operation: str, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        perform: Callable[[Any], Awaitable[Sequence[AnyResponse | ModelError]]]
        perform = getattr(self, f"{operation}_batch", None) or partial(answer_each, getattr(self, operation))
        return await perform(requests)


def abilities_of(adapter: ModelAdapter) -> Abilities:
    """Return what an instance can do: the abilities of its class for its options, less what its files lack."""
    return adapter._abilities


def unsupported(adapter: ModelAdapter, request: Request) -> PermanentError | None:
    """Return the error of a request with fields that a model does not honour, such as a JSON schema; None if it can."""
    need = need_of(request)
    if not (why := abilities_of(adapter).missing(need)):
        return None
    return PermanentError(
        f"model {adapter.identity.model!r} of adapter {adapter.identity.adapter!r}: {why}",
        code="request.unsupported",
        names=tuple(sorted(need.fields - abilities_of(adapter).fields)),
    )


def refusal(adapter: ModelAdapter, request: Request) -> ModelError | None:
    """Return the error that a model gives to a request without being asked; None if it would be asked."""
    try:
        adapter.check(request)
    except ModelError as error:
        return error
    return unsupported(adapter, request)


async def answer_one(adapter: ModelAdapter, request: AnyRequest) -> Any:
    """Return the answer to one request.

    Raises:
        ModelError: it failed.
        UnsupportedOperationError: the model cannot do the operation.
    """
    (answer,) = await adapter.answer([request])
    if isinstance(answer, ModelError):
        raise answer
    return answer


async def answer_each(ask_one: Callable[[Q], Awaitable[R]], requests: Sequence[Q]) -> list[R | ModelError]:
    """Return the answer or error of each request, asked at the same time by a function for one."""

    async def settled(request: Q) -> R | ModelError:
        try:
            return await ask_one(request)
        except ModelError as error:
            return error

    if len(requests) == 1:
        return [await settled(requests[0])]  # no task is needed
    return await asyncio.gather(*(settled(request) for request in requests))


def generation_number(services: Services, request: Request) -> int:
    """Return how often a request was answered before, if it is asked anew; else 0."""
    return 0 if services.generation is None else services.generation(request)


def affinity(request: Request) -> str:
    """Return what a request shares with others that a model reads once for all of them; empty: nothing.

    Such requests are asked one after another, by the same worker where there are several: the images of a request,
    else all messages before the last. It changes no answer.
    """
    prompt = prompt_of(request)
    shown = [part.sha256 for message in prompt for part in message.parts if isinstance(part, Image)]
    if shown:
        return " ".join(shown)
    return repr(prompt[:-1]) if len(prompt) > 1 else ""
