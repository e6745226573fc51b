"""`gemini`: Google's generateContent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from ...core.contracts.adapter import answer_each
from ...core.contracts.errors import ModelError
from ...core.contracts.records import Generate, Generation, Scalar
from ..endpoint.adapter import EndpointAdapter
from ..endpoint.answers import Answer
from ..endpoint.call import Body
from ..endpoint.images import Look
from ..endpoint.keys import Home
from ..endpoint.samples import ask_groups, dealt, settled
from .bodies import write_body
from .options import GeminiOptions
from .replies import KNOWN, ContentReply, in_order, read_answer, usage_of

HOME = Home(
    "gemini",
    "Google",
    "https://generativelanguage.googleapis.com",
    "GOOGLE_GEMINI_BASE_URL",
    "GEMINI_API_KEY",
    fixed=frozenset({"model", "contents", "systemInstruction"}),
)


class Gemini(EndpointAdapter):
    """A model behind generateContent. The key goes into a header, never into the address."""

    options: ClassVar[type[msgspec.Struct]] = GeminiOptions
    home = HOME
    reply: ClassVar[type[Body]] = ContentReply
    known = KNOWN
    named = False
    logprobs = True
    fields = frozenset({"top_k", "json_schema", "choices"})

    def __init__(self, options: GeminiOptions) -> None:
        """See `EndpointAdapter`."""
        super().__init__(options)
        self.limits = msgspec.structs.replace(self.limits, batch_items=options.samples_per_call)

    def settings(self, options: GeminiOptions) -> dict[str, Scalar]:
        """Return what only this dialect has."""
        settings: dict[str, Scalar] = {"api_version": options.api_version}
        named = {"thinking_tokens": options.thinking_tokens, "safety": options.safety}
        settings |= {name: value for name, value in named.items() if value is not None}
        settings |= {"samples_per_call": options.samples_per_call} if options.samples_per_call > 1 else {}
        return settings | ({"thoughts": True} if options.thoughts else {})

    def headers(self, options: GeminiOptions, key: str | None) -> Mapping[str, str]:
        """Return the key."""
        return {} if key is None else {"x-goog-api-key": key}

    def path(self) -> str:
        """Return the path that answers; a model of the user's own has its folder in its name."""
        model = self._options.model
        name = quote(model if "/" in model else f"models/{model}", safe="/")
        return f"/{self._options.api_version}/{name}:generateContent"

    def write(self, request: Generate, look: Look, generation: int) -> dict[str, Any]:
        """Return the body of a request."""
        return write_body(request, self._options, look, generation)

    def understand(self, reply: ContentReply, request: Generate) -> Answer:
        """Return what a reply says."""
        return read_answer(reply, self._caller.where, logprobs=bool(request.top_logprobs))

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages; with `samples_per_call`, samples of one question in one call."""
        if (most := self._options.samples_per_call) == 1:
            return await answer_each(self.generate, requests)
        return await ask_groups(requests, most, partial(answer_each, self.generate), self._several, self._filtered)

    async def _several(self, requests: Sequence[Generate]) -> list[Generation | ModelError]:
        body = await self.body(requests[0])
        config = {**body.get("generationConfig", {}), "candidateCount": len(requests)}
        sent = await self._caller.send(self.path(), {**body, "generationConfig": config})
        reply = self._caller.read(sent, ContentReply)
        usage, where = usage_of(reply.usage_metadata), self._caller.where
        # A prompt that was blocked has no candidate: all its samples are.
        each = [msgspec.structs.replace(reply, candidates=[one]) for one in in_order(reply)] or [reply] * len(requests)
        found = (settled(partial(self.record, one, sent.body, requests[0])) for one in each)
        return dealt(found, usage, len(requests), where)
