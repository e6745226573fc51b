"""A sound adapter of an endpoint that speaks OpenAI's API, in pieces that a test can break one at a time."""

from __future__ import annotations

import os
from typing import Any

import aiohttp
import msgspec

from prejudge.core.contracts import Options
from prejudge.core.contracts.adapter import Identity, ModelAdapter, RemoteEndpoint
from prejudge.core.contracts.canonical import wire_seed
from prejudge.core.contracts.errors import (
    AuthenticationError,
    ModelError,
    PermanentError,
    RateLimitError,
    TransientError,
)
from prejudge.core.contracts.records import Generate, Generation, Text

KEY_ENV = "ENDPOINT_ADAPTER_KEY"


class Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class Choice(msgspec.Struct):
    message: Said
    finish_reason: str | None = None


class Whole(msgspec.Struct):
    choices: list[Choice]


class Remote(ModelAdapter):
    options = Options

    def __init__(self, url: str, model: str) -> None:
        self.url, self.model = url, model
        self.key = os.environ.get(KEY_ENV, "")
        self.endpoint = RemoteEndpoint(name=f"{url} {model}")
        self.identity = self.identify()
        self.session: aiohttp.ClientSession | None = None

    def identify(self) -> Identity:
        return Identity(adapter="remote", version="1", model=self.model)

    async def generate(self, request: Generate) -> Generation:
        return self.read(await self.send(self.body(request)))

    def body(self, request: Generate) -> dict[str, Any]:
        messages = [{"role": each.role, "content": self.content(each.parts)} for each in request.messages]
        if not messages:
            raise PermanentError("there is no message")
        sampling = request.sampling
        values = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "stop": list(sampling.stop) or None,
            "seed": self.seed(request),
        }
        return {
            "model": self.model,
            "messages": messages,
            **{name: value for name, value in values.items() if value is not None},
        }

    def content(self, parts: Any) -> str:
        if not all(isinstance(part, Text) for part in parts):
            raise PermanentError("no images")
        return "".join(part.text for part in parts)

    def seed(self, request: Generate) -> int | None:
        return wire_seed(request)

    async def send(self, body: dict[str, Any]) -> bytes:
        status, headers, data = await self.post(body)
        if status != 200:
            raise self.explain(status, headers, data)
        return data

    async def post(self, body: dict[str, Any]) -> tuple[int, Any, bytes]:
        if self.session is None:
            headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
            self.session = aiohttp.ClientSession(headers=headers)
        try:
            async with self.session.post(f"{self.url}/chat/completions", json=body, allow_redirects=False) as reply:
                return reply.status, reply.headers, await reply.read()
        except aiohttp.ClientError as error:
            raise self.translate(error) from None

    def translate(self, error: Exception) -> Exception:
        return TransientError(f"no answer: {type(error).__name__}")

    def explain(self, status: int, headers: Any, data: bytes) -> ModelError:
        message = f"status {status}"
        if status == 429:
            wait = headers.get("Retry-After", "")
            return RateLimitError(message, float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 9 else None)
        if status in (401, 403):
            return AuthenticationError(message)
        return (TransientError if status >= 500 else PermanentError)(message)

    def read(self, data: bytes) -> Generation:
        try:
            choice = msgspec.json.decode(data, type=Whole).choices[0]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError):
            raise TransientError("the reply is no answer") from None
        said = choice.message
        status = "refused" if said.refusal else "filtered" if choice.finish_reason == "content_filter" else "ok"
        return Generation(text=said.content or said.refusal or "", status=status)

    async def aclose(self) -> None:
        if self.session is not None:
            await self.session.close()
