"""`anthropic`: any endpoint that speaks Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from ...core.contracts.batch import BatchApi
from ...core.contracts.records import Generate, Scalar
from ..endpoint.adapter import EndpointAdapter
from ..endpoint.answers import Answer
from ..endpoint.batches import Courier
from ..endpoint.call import Body
from ..endpoint.images import Look
from ..endpoint.keys import Home
from .batches import AnthropicBatches
from .bodies import write_body
from .options import AnthropicOptions
from .replies import KNOWN, MessageReply, read_answer

HOME = Home(
    "anthropic",
    "Anthropic",
    "https://api.anthropic.com",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
    fixed=frozenset({"model", "messages", "system", "stream", "thinking", "max_tokens"}),
)


class Anthropic(EndpointAdapter):
    """A model behind the Messages API. The dialect has no seed and no log-probabilities."""

    options: ClassVar[type[msgspec.Struct]] = AnthropicOptions
    home = HOME
    reply: ClassVar[type[Body]] = MessageReply
    known = KNOWN
    fields = frozenset({"top_k", "json_schema"})

    def settings(self, options: AnthropicOptions) -> dict[str, Scalar]:
        """Return what only this dialect has."""
        named: dict[str, Scalar] = {"thinking": options.thinking, "thinking_tokens": options.thinking_tokens}
        named["anthropic_version"] = options.anthropic_version
        return {name: value for name, value in named.items() if value is not None}

    def headers(self, options: AnthropicOptions, key: str | None) -> Mapping[str, str]:
        """Return key and version."""
        own = {} if key is None else {"x-api-key": key}
        return {**own, "anthropic-version": options.anthropic_version}

    def path(self) -> str:
        """Return the path that answers."""
        return "/v1/messages"

    def write(self, request: Generate, look: Look, generation: int) -> dict[str, Any]:
        """Return the body of a request."""
        return write_body(request, self._options, look)

    def batching(self, courier: Courier) -> BatchApi:
        """Return the Message Batches."""
        return AnthropicBatches(courier, self.batch_body, self.batch_answer)

    def understand(self, reply: MessageReply, request: Generate) -> Answer:
        """Return what a message says."""
        return read_answer(reply, self._caller.where)
