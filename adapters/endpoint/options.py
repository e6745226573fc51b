"""Settings that all adapters of endpoints have, and the part of an identity that follows from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ...core.contracts import OptionEffect, Options, harmless
from ...core.contracts.adapter import RemoteEndpoint
from ...core.contracts.effects import texts_in
from ...core.contracts.errors import UnknownNameError
from ...core.contracts.records import Scalar
from ..shared.reasoning import thinking_settings
from .certificates import Certificates
from .proxies import Proxy

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\\/]{2}")
Transport = Literal["lean", "httpx"]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class EndpointOptions(Options, frozen=True, kw_only=True):
    """Settings of an endpoint."""

    option_effects = {
        "base_url": "address",
        "api_key_env": "secret",
        "api_key_file": "secret",
        "extra_body": "address",
        **harmless(
            "model endpoint revision named_as context concurrency timeout_seconds reply_mib batches "
            "system_prompt max_tokens answer_room effort think_opened omit "
            "keep_replies"
        ),
    }

    model: str
    """The endpoint's name for the model."""
    base_url: str | None = None
    """Address of the endpoint. None takes the environment's, else the provider's own."""
    endpoint: str | None = None
    """Name of the endpoint in the identity, for a model whose address changes; None takes the address."""
    revision: str | None = None
    """Version of the weights behind the name (a commit, a digest, a date); part of the identity, never sent."""
    named_as: tuple[str, ...] = ()
    """Names that replies give the model, if they are no versions of `model`: that behind an alias or a deployment."""
    context: Positive | None = None
    """Tokens of the model's context, if known: a longer prompt that is answered all the same is a finding."""
    api_key_env: str | None = None
    """NAME of the variable that holds the key, or NAME_FILE its file; "": no key. None: the provider's, at its host."""
    api_key_file: str | None = None
    """A file that holds the key and nothing else; used in place of the environment."""
    concurrency: Positive = 64
    """Maximum number of concurrent calls and of open connections."""
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """Time limit of a call in seconds; a call that takes longer fails and is sent again."""
    reply_mib: Positive = 16
    """Maximum size of a reply in MiB, decompressed; eight times as much for an image. A larger one fails."""
    batches: bool | None = None
    """Whether the endpoint takes batches, if the dialect has any. None: the provider's own address does, no other."""
    system_prompt: str | None = None
    """Text before every prompt; for messages, the system message, joined with their own."""
    max_tokens: Positive | None = None
    """Maximum number of tokens to generate if the request sets no limit."""
    extra_body: dict[str, Any] = {}
    """Further fields of every request, such as {top_k = 20}; a null removes a field. Part of the identity: no keys."""
    answer_room: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens added to the limit of every answer in words, for a model that reasons before it answers."""
    effort: str | None = None
    """How much to reason, in the provider's own words, such as none, minimal, low, medium, high."""
    think_opened: bool = False
    """The chat template writes the opening mark, and the endpoint leaves reasoning in the text: an answer without a
    closing mark was cut off while the model thought, and is none."""
    omit: tuple[str, ...] = ()
    """Fields of answers in words that the endpoint refuses, such as ["temperature", "stop"]; they are not sent.
    A `stop` that is not sent is applied to the answer."""
    keep_replies: Literal["none", "unusual", "all"] = "unusual"
    """Replies whose raw JSON is stored with the answer: those whose status is not `ok` or whose finish reason is not
    known (`unusual`), all, or none."""

    omissible: ClassVar[frozenset[str]] = frozenset(
        {"temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed"}
    )
    """Names that `omit` may have."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do: the provider's own key goes to the provider's own address, and to no other."""
        if self.base_url is None:
            yield OptionEffect("address", "base_url", says="asks the provider's own address")
        else:
            yield OptionEffect("address", "base_url", self.base_url)
        if self.api_key_file is not None:
            yield OptionEffect("secret", "api_key_file", self.api_key_file)
        elif self.api_key_env:
            yield OptionEffect("secret", "api_key_env", self.api_key_env)
        elif self.api_key_env is None and self.base_url is None:
            yield OptionEffect("secret", "api_key_env", says="sends the provider your key for it, if you have one")
        for text in texts_in(self.extra_body):
            if URL.search(text):
                yield OptionEffect("address", "extra_body", text)

    def __post_init__(self) -> None:
        """Refuse settings that would do nothing, or not what they say, before a study is planned with them."""
        if unknown := [name for name in self.omit if name not in self.omissible]:
            raise UnknownNameError("field in omit", unknown[0], self.omissible)

    def __repr__(self) -> str:
        """Return the model only: a mistaken setting may hold a key."""
        return f"{type(self).__name__}(model={self.model!r}, ...)"


class WireOptions(EndpointOptions, frozen=True, kw_only=True):
    """Settings of an endpoint that one of this package's own clients asks; none is part of the identity."""

    option_effects = {
        "proxy": "address",
        "ca_bundle": "file",
        "client_cert": "secret",
        "client_key": "secret",
        **harmless("transport"),
    }

    transport: Transport = "lean"
    """Client that sends the calls: `lean` (aiohttp), or `httpx`: slower, with HTTP/2 where h2 is installed."""
    proxy: str | None = None
    """Proxy for this model, such as `http://HOST:PORT`; "": none. None takes the environment's (passwords go there)."""
    ca_bundle: str | None = None
    """PEM file of the certificate authorities to trust. None trusts the system's, or those of SSL_CERT_FILE."""
    client_cert: str | None = None
    """PEM file of the certificate that this side shows to the server, with its key unless `client_key` is set."""
    client_key: str | None = None
    """PEM file of the key of `client_cert`, not encrypted."""

    def list_effects(self) -> Iterable[OptionEffect]:
        """Return what these values do; see `EndpointOptions.list_effects`."""
        yield from super().list_effects()
        if self.proxy:
            yield OptionEffect("address", "proxy", self.proxy)
        if self.ca_bundle is not None:
            yield OptionEffect("file", "ca_bundle", self.ca_bundle)
        for name in ("client_cert", "client_key"):
            if (file := getattr(self, name)) is not None:
                yield OptionEffect("secret", name, file)

    @property
    def certificates(self) -> Certificates:
        """Return the files of certificates."""
        return Certificates(ca_bundle=self.ca_bundle, client_cert=self.client_cert, client_key=self.client_key)


def endpoint_settings(options: EndpointOptions, address: str) -> dict[str, Scalar]:
    """Return the part of these settings that belongs to a model's identity: all that change answers, if set."""
    settings: dict[str, Scalar] = {"endpoint": options.endpoint or address}
    named = {"system_prompt": options.system_prompt, "max_tokens": options.max_tokens, "effort": options.effort}
    settings |= {name: value for name, value in named.items() if value is not None}
    settings |= thinking_settings(options)
    # It says what the model read, and is stored with each answer, which a stop text cuts by it.
    settings |= {"think_opened": True} if options.think_opened else {}
    # A seed chooses a draw, and no other model: an endpoint that turns out to refuse it keeps its answers.
    if omitted := sorted(set(options.omit) - {"seed"}):
        settings["omit"] = msgspec.json.encode(omitted).decode()
    if options.extra_body:
        settings["extra_body"] = msgspec.json.encode(options.extra_body, order="sorted").decode()
    return settings


def endpoint_of(options: EndpointOptions, name: str, proxy: Proxy | None = None) -> RemoteEndpoint:
    """Return an endpoint whose rate limit has a name, with what its answers are checked against."""
    return RemoteEndpoint(
        name=name,
        proxy=proxy.where if proxy is not None else "",
        answer_room=options.answer_room,
        max_tokens=options.max_tokens,
        context=options.context,
        names=options.named_as,
    )
