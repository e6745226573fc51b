"""`ModelAdapter`: the async interface of a model. A new backend is one class.

Override a method per operation of the model, for one request (`generate`) or many (`generate_batch`); each form
defaults to the other, and the overridden methods are the capabilities. The scheduler always calls the batch form.

Duties of an adapter: `identity` is known without loading weights; nothing is retried inside (raise a `ModelError`
and the scheduler decides); blocking work runs in `Worker`, so that the event loop never blocks; an answer never
depends on the other requests of its batch; no exception contains a key or token.
"""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar, get_args

import msgspec

from .batch import BatchApi
from .errors import ModelError, PermanentError, UnsupportedOperationError, UsageError
from .model_files import ModelFiles, Recognised
from .records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    PseudoLikelihood,
    Request,
    Response,
    Scalar,
    TokenScores,
)

Q = TypeVar("Q", bound=Request)
R = TypeVar("R", bound=Response)
P = ParamSpec("P")
T = TypeVar("T")

OPERATIONS: dict[type[Request], str] = {
    Generate: "generate",
    Likelihood: "likelihood",
    PseudoLikelihood: "pseudo_likelihood",
    Classify: "classify",
    Embed: "embed",
    Draw: "draw",
}
_BATCHES = {kind: f"{name}_batch" for kind, name in OPERATIONS.items()}


Level = Literal["off", "minimal", "low", "medium", "high", "on"]
"""How much a model thinks before it answers; `on`: as much as it does by itself."""


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


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the answers of an endpoint are checked against.

    Example:
        >>> import prejudge
        >>> prejudge.Expected(answer_room=256, context=8192).max_tokens is None
        True
    """

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

    Override a method per operation of the model, for one request (`generate`) or many (`generate_batch`). The
    overridden methods are what the model can do.

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
    limits: Limits = Limits()
    endpoint: str | None = None
    """Name of a rate limit: adapters that name the same endpoint share one limiter. None: a local model."""
    proxy: str = ""
    """Host and port of the proxy through which the endpoint is asked, for `doctor`; empty: none."""
    lacks: Mapping[type[Request], str] = MappingProxyType({})
    """Operations that the class supports but this model does not, with the fix. Refused before the first call."""
    expected: Expected = Expected()
    """What a run checks the answers of an endpoint against."""
    batch_api: BatchApi | None = None
    """The provider's batch interface; None: it has none, and every request is a call of its own."""
    honours: frozenset[str] = frozenset()
    """What of `Generate.beyond` this model can do: top_k, min_p, json_schema, choices. All else is refused."""
    blobs: Callable[[str], bytes] | None = None
    keep: Callable[[bytes, str], str] | None = None
    hear: Callable[[Room], None] | None = None
    note: Callable[[Remark], None] | None = None
    generation: Callable[[Request], int] | None = None

    def bind(self, services: Services) -> None:
        """Receive the services of a run, before the first request; they are then `self.blobs` and so on.

        Override it to pass them to parts of the adapter.
        """
        self.blobs, self.keep, self.hear = services.blobs, services.keep, services.hear
        self.note, self.generation = services.note, services.generation

    def note_on(self, image: bytes) -> str:
        """Return what a reader needs to know of this model's answers about an image; nothing by default."""
        return ""

    def affinity(self, request: Request) -> str:
        """Return what a request shares with others that a model reads once for all of them; empty: nothing.

        Such requests are asked one after another, by the same worker where there are several. By default: the images
        of a request, else all messages before the last. It changes no answer.
        """
        prompt = request.messages if isinstance(request, Generate) else getattr(request, "prompt", "")
        if isinstance(prompt, str):
            return ""
        shown = [part.sha256 for message in prompt for part in message.parts if isinstance(part, Image)]
        if shown:
            return " ".join(shown)
        return repr(prompt[:-1]) if len(prompt) > 1 else ""

    async def generate(self, request: Generate) -> Generation:
        """Continue messages."""
        return await self._one(self.generate_batch, request)

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages, many at once."""
        return await self._each(self.generate, requests)

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        """Score continuations of a prompt."""
        return await self._one(self.likelihood_batch, request)

    async def likelihood_batch(self, requests: Sequence[Likelihood]) -> Sequence[Likelihoods | ModelError]:
        """Score continuations of many prompts."""
        return await self._each(self.likelihood, requests)

    async def pseudo_likelihood(self, request: PseudoLikelihood) -> TokenScores:
        """Score a sentence token by token, each masked in turn."""
        return await self._one(self.pseudo_likelihood_batch, request)

    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        """Score many sentences."""
        return await self._each(self.pseudo_likelihood, requests)

    async def classify(self, request: Classify) -> Classification:
        """Return a probability per label."""
        return await self._one(self.classify_batch, request)

    async def classify_batch(self, requests: Sequence[Classify]) -> Sequence[Classification | ModelError]:
        """Classify many texts."""
        return await self._each(self.classify, requests)

    async def embed(self, request: Embed) -> Embedding:
        """Return a vector."""
        return await self._one(self.embed_batch, request)

    async def embed_batch(self, requests: Sequence[Embed]) -> Sequence[Embedding | ModelError]:
        """Embed many texts."""
        return await self._each(self.embed, requests)

    async def draw(self, request: Draw) -> Drawing:
        """Make an image."""
        return await self._one(self.draw_batch, request)

    async def draw_batch(self, requests: Sequence[Draw]) -> Sequence[Drawing | ModelError]:
        """Make many images."""
        return await self._each(self.draw, requests)

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Answer requests of one kind, in order; a failed request has its error in its place."""
        if not requests:
            return []
        kind = type(requests[0])
        self.ensure_supports(kind)
        if (why := self.lacks.get(kind)) is not None:
            raise UnsupportedOperationError(why, code="model.operation")
        batch: Callable[[Any], Awaitable[Sequence[AnyResponse | ModelError]]] = getattr(self, _BATCHES[kind])
        refused = {place: error for place, one in enumerate(requests) if (error := self.refuse_beyond(one)) is not None}
        if not refused:
            return await batch(requests)
        fit = [one for place, one in enumerate(requests) if place not in refused]
        answers = iter(await batch(fit) if fit else ())
        return [refused[place] if place in refused else next(answers) for place in range(len(requests))]

    def refuse_beyond(self, request: Request) -> PermanentError | None:
        """Return the error of a request for what this model cannot do, such as a JSON schema; None if it can."""
        beyond = request.beyond() if isinstance(request, Generate) else None
        if not beyond or not (missing := beyond - self.honours):
            return None
        return PermanentError(
            f"model {self.identity.model!r} of adapter {self.identity.adapter!r} cannot honour "
            f"{', '.join(sorted(missing))}. Ask without, or take a model that can.",
            code="request.unsupported",
            names=tuple(sorted(missing)),
        )

    def refuses(self, request: Request) -> ModelError | None:
        """Return the error that this model gives to a request without being asked; None if it would be asked."""
        try:
            self.rehearse(request)
        except ModelError as error:
            return error
        return self.refuse_beyond(request)

    def rehearse(self, request: Request) -> None:  # noqa: B027 - many adapters write nothing
        """Write a request as if to send it; nothing by default. Images are not there to look at.

        It is called for a few requests of a study before any is sent.

        Raises:
            ModelError: it cannot be sent, by the settings or by the dialect.
        """

    def ensure_sight(self) -> None:  # noqa: B027 - most adapters need nothing more
        """Check that images can be read here; nothing by default. It is called before a study that shows some.

        Raises:
            MissingExtraError: a package for images is not installed.
        """

    @classmethod
    def capabilities(cls) -> frozenset[type[Request]]:
        """Return the kinds of request for which this class overrides a method."""
        return _overridden(cls)

    @classmethod
    def lacking(cls, options: Any) -> Mapping[type[Request], str]:
        """Return operations that the class supports but a model with these settings does not, with the fix.

        It is called for every model of the catalogue, so it must not import large packages or read files.
        """
        return {}

    @classmethod
    def unfit(cls, options: Any) -> Mapping[type[Request], str]:
        """Return operations that the files of a model on this machine say it cannot do, with the fix.

        It is called for the models of a study before anything is asked. It reads small files only: no weights, no
        download, no large package. What it cannot tell from these it leaves to the loading of the model.
        """
        return {}

    @classmethod
    def sees(cls, options: Any) -> bool:
        """Return whether messages may have images; a study that shows some is refused where not. As `unfit`."""
        return True

    @classmethod
    def recognise(cls, files: ModelFiles) -> Sequence[Recognised]:
        """Return the models among some files that this adapter reads, for `--model ./folder`; none by default.

        It reads small files only, as `unfit` does.
        """
        return ()

    @classmethod
    def think(cls, level: Level, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings of a model that thinks this much, from those of its entry: `--vary thinking=off,high`.

        The entry's `answer_room` stays; where it sets none, the level decides.

        Raises:
            UsageError: models of this adapter, or this model, cannot be told so.
        """
        raise cannot_think(level, f"models of {cls.__name__} have no setting for it", ())

    @classmethod
    def ensure_supports(cls, operation: type[Request]) -> None:
        """Raise `UnsupportedOperationError` unless this class supports the operation."""
        if operation not in cls.capabilities():
            able = ", ".join(sorted(OPERATIONS[kind] for kind in cls.capabilities())) or "nothing"
            raise UnsupportedOperationError(
                f"{cls.__name__} cannot do {OPERATIONS[operation]!r}; it can do: {able}.", code="model.operation"
            )

    async def aclose(self) -> None:  # noqa: B027 - many adapters hold nothing to free
        """Free the adapter's resources. Called once."""

    async def _one(self, batch: Callable[[Sequence[Q]], Awaitable[Sequence[R | ModelError]]], request: Q) -> R:
        self.ensure_supports(type(request))
        (answer,) = await batch([request])
        if isinstance(answer, ModelError):
            raise answer
        return answer

    async def _each(self, single: Callable[[Q], Awaitable[R]], requests: Sequence[Q]) -> Sequence[R | ModelError]:
        if len(requests) == 1:
            try:
                return [await single(requests[0])]
            except ModelError as error:
                return [error]

        async def settled(request: Q) -> R | ModelError:
            try:
                return await single(request)
            except ModelError as error:
                return error

        return await asyncio.gather(*(settled(request) for request in requests))


def cannot_think(level: str, why: str, levels: Sequence[str]) -> UsageError:
    """Return the error of a level of thinking that a model cannot be told; `levels` are those that it can."""
    mend = f"It knows {', '.join(levels)}." if levels else "Vary another setting, or take another model."
    return UsageError(
        f"thinking = {level!r} cannot be set: {why}. {mend}", code="model.thinking", level=level, levels=tuple(levels)
    )


def ensure_level(level: Any) -> Level:
    """Return a level of thinking.

    Raises:
        UsageError: it is none.
    """
    if level not in get_args(Level):
        raise UsageError(
            f"thinking is {level!r}. It may be: {', '.join(get_args(Level))}.", code="options.choice", name="thinking"
        )
    return level  # type: ignore[no-any-return]


@cache
def _overridden(kind: type[ModelAdapter]) -> frozenset[type[Request]]:
    # Cached per class, since every call looks it up.
    return frozenset(
        operation
        for operation, name in OPERATIONS.items()
        if any(getattr(kind, form) is not getattr(ModelAdapter, form) for form in (name, f"{name}_batch"))
    )
