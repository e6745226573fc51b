"""`any-llm`: providers without an adapter of their own, through the package any-llm.

The package turns every provider's reply into a chat completion: words for refusals, filters and ends that a chat
completion does not have are lost on the way. The identity says so (`lossy`).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, ClassVar, TypeVar

import msgspec

from ...core.contracts import OptionEffect
from ...core.contracts.adapter import Identity, Limits, ModelAdapter, Worker, generation_number, unsupported
from ...core.contracts.errors import ModelError, ModelLoadError, TransientError, UsageError
from ...core.contracts.records import Generate, Generation, Image, Message, Request
from ..endpoint.answers import filtered_answer, with_reply
from ..endpoint.errors import FilteredError, explain_leak, explain_reply
from ..endpoint.failures import late
from ..endpoint.filters import filter_word
from ..endpoint.images import Look, Pictures, any_picture
from ..endpoint.keys import Home, check_extra, ensure_no_key, find_address, find_key
from ..endpoint.options import EndpointOptions, endpoint_of, endpoint_settings
from ..endpoint.scrub import Scrubber
from ..endpoint.wire import Reply, require_packages
from ..endpoint.wishes import JOINT, split_system, wish_of
from ..openai.chat import KNOWN, read_generation
from ..openai.replies import ChatReply

T = TypeVar("T")
HOME = Home(
    "any-llm", "", "http://127.0.0.1:8000", "", "", extra="any-llm", fixed=frozenset({"model", "messages", "n"})
)
_STATUS = {"RateLimitError": 429, "AuthenticationError": 401, "MissingApiKeyError": 401, "InvalidRequestError": 400}
_STATUS |= {"ModelNotFoundError": 404, "UnsupportedParameterError": 400, "ContextLengthExceededError": 400}
KEYLESS = frozenset({"llamacpp", "llamafile", "openai", "vllm"})
"""Providers whose packages send the key that they are handed, and look for no other."""


class AnyLlmOptions(EndpointOptions, frozen=True, kw_only=True):
    """Settings of `any-llm`."""

    option_effects = {"provider": "secret"}

    provider: str
    """any-llm's name for the provider, such as mistral, groq or cohere."""
    base_url: str | None = None
    """Address of the endpoint. None takes the provider's own."""
    api_key_env: str | None = None
    """NAME of the variable that holds the provider's key, or NAME_FILE its file; "": no key. It must be named."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do: the packages of most providers find credentials by themselves."""
        yield from super().list_effects()
        if self.provider not in KEYLESS:
            says = f"lets the package of the provider {self.provider!r} find credentials of its own"
            yield OptionEffect("secret", "provider", self.provider, says)


class AnyLlm(ModelAdapter):
    """A model behind any provider that any-llm knows."""

    options: ClassVar[type[msgspec.Struct]] = AnyLlmOptions

    def __init__(self, options: AnyLlmOptions) -> None:
        """Find the key; the package is imported at the first call.

        Raises:
            MissingExtraError: the package is not installed.
            UsageError: a setting is invalid, or no key is named.
        """
        require_packages("any-llm", "any-llm", ("any_llm",))
        check_extra(options.extra_body, HOME.fixed)
        if options.api_key_env is None and options.api_key_file is None:
            raise UsageError(
                "api_key_env must name the variable of the provider's key, or be '' for a server without keys.",
                code="endpoint.key-missing",
            )
        address = f"any-llm:{options.provider}" if options.base_url is None else find_address(options, HOME)
        self._key = find_key(options, address, HOME)
        settings = endpoint_settings(options, address) | {"provider": options.provider, "lossy": True}
        digest = options.revision or ""
        self.identity = Identity(adapter="any-llm", version="1", model=options.model, digest=digest, settings=settings)
        ensure_no_key(self.identity, self._key)
        self.limits = Limits(concurrency=options.concurrency, batch_items=1)
        self._options, self._where = options, options.provider
        self.endpoint = endpoint_of(options, f"{address} {options.model}")
        self._scrub, self._pictures, self._worker = Scrubber(self._key), Pictures("any-llm"), Worker("any-llm-images")
        self._client: Any = None
        self._opening: Future[Any] | None = None

    async def generate(self, request: Generate) -> Generation:
        """Continue messages of text and images; an answer that a content filter stops has the status `filtered`."""
        if (error := unsupported(self, request)) is not None:
            raise error
        look = await self._pictures.of(request.messages, self.services.blobs, self._worker)
        body = self._body(request, look)
        raw = await self._ask(body)
        if isinstance(raw, FilteredError):
            return filtered_answer(raw, self._options.keep_replies, KNOWN)
        if isinstance(raw, ModelError):
            raise raw
        options = self._options
        cut = "stop" in options.omit
        answer = read_generation(
            msgspec.json.decode(raw, type=ChatReply),
            request,
            self._where,
            opened=options.think_opened,
            cut=cut,
        )
        return with_reply(answer, raw, options.keep_replies, KNOWN)

    def check(self, request: Request) -> None:
        """Write a request; see `ModelAdapter`."""
        self._pictures.ensure_readable(request)
        if isinstance(request, Generate):
            self._body(request, any_picture)

    async def aclose(self) -> None:
        """Close the connections of the provider's package, where it can, and end the thread."""
        close = getattr(getattr(self._client, "client", None), "close", None)
        if callable(close) and inspect.isawaitable(closing := close()):
            await closing
        self._worker.close()

    def _body(self, request: Generate, look: Look) -> dict[str, Any]:
        wish = wish_of(request, self._options, generation_number(self.services, request))
        system, messages = split_system(request.messages, self._options.system_prompt)
        made = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {"messages": [*made, *(_message(one, look) for one in messages)]}
        body |= wish.named(temperature="temperature", top_p="top_p", max_tokens="max_tokens", seed="seed")
        if wish.stop:
            body["stop"] = list(wish.stop)
        if self._options.effort is not None:
            body["reasoning_effort"] = self._options.effort
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        return body | self._options.extra_body

    async def _ask(self, body: dict[str, Any]) -> bytes | ModelError:
        seconds = self._options.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._ensure_open()
                reply = await self._client.acompletion(model=self._options.model, **body)
            raw = bytes(reply.model_dump_json().encode())
        except TimeoutError:
            return late(self._where, seconds)
        except ModelLoadError:
            raise
        except Exception as error:
            # Each provider's package has errors of its own, and the bridge passes on what it does not know.
            return self._explain(error)
        return explain_leak(self._where) if self._scrub.finds(raw) else raw

    async def _ensure_open(self) -> None:
        if self._client is not None:
            return
        if self._opening is None:
            self._opening = _in_thread(self._open)
        try:
            self._client = await asyncio.wrap_future(self._opening)
        except Exception:
            self._opening = None
            raise

    def _open(self) -> Any:
        """Make the provider's client.

        Raises:
            ModelLoadError: there is no such provider, or its package is not installed. Asking again changes nothing.
        """
        from any_llm import AnyLLM
        from any_llm.exceptions import UnsupportedParameterError, UnsupportedProviderError

        named: dict[str, Any] = {
            "api_key": self._key or "none",
            "api_base": self._options.base_url,
            "unified_exceptions": True,
        }
        if self._options.base_url is not None and self._options.provider in KEYLESS:
            from openai import Omit

            # The package would send the user's own account at OpenAI, by the environment, to every address.
            named["default_headers"] = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
        try:
            try:
                # The scheduler decides whether to ask again.
                return AnyLLM.create(self._options.provider, max_retries=0, **named)
            except UnsupportedParameterError:
                return AnyLLM.create(self._options.provider, **named)
        except (UnsupportedProviderError, ImportError) as error:
            code = "model.package" if isinstance(error, ImportError) else "model.provider"
            what = f"cannot open the provider {self._where!r} of any-llm: {self._scrub.text(str(error))}"
            raise ModelLoadError(what, code=code) from None

    def _explain(self, error: Exception) -> ModelError:
        kind, told = type(error).__name__, self._scrub.text(str(error))
        if filter_word((kind,), "") is not None:
            return FilteredError(told, getattr(error, "code", None) or "content_filter", self._scrub.raw(told.encode()))
        status = getattr(error, "status_code", None) or _STATUS.get(kind)
        if not isinstance(status, int):
            return TransientError(f"no answer from {self._where}: {kind}: {told}", code="endpoint.connection")
        wait = getattr(error, "retry_after", None)
        body = msgspec.json.encode({"error": {"message": told, "code": getattr(error, "code", None)}})
        headers = {"content-type": "application/json"} | ({"retry-after": str(wait)} if wait is not None else {})
        return explain_reply(Reply(status, headers, body), self._where, self._options.model, self._scrub)


def _in_thread(call: Callable[[], T]) -> Future[T]:
    """Run a call in a thread that the end of the program does not wait for.

    The package takes seconds to import, and some providers' packages wait for a machine that has credentials.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name="any-llm", daemon=True).start()
    return future


def _message(message: Message, look: Look) -> dict[str, Any]:
    if not any(isinstance(part, Image) for part in message.parts):
        text = JOINT.join(part.text for part in message.parts if not isinstance(part, Image))
        return {"role": message.role, "content": text}
    content = [
        {"type": "image_url", "image_url": {"url": look(part.sha256).url}}
        if isinstance(part, Image)
        else {"type": "text", "text": part.text}
        for part in message.parts
    ]
    return {"role": message.role, "content": content}
