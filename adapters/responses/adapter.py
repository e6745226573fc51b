"""`openai-responses`: any endpoint that speaks OpenAI's Responses API."""

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
from ..endpoint.keys import Home, is_home
from ..openai.account import Account
from ..openai.batches import OpenAIBatches
from ..openai.options import OPENAI_URL
from .bodies import write_body
from .options import ResponsesOptions
from .replies import KNOWN, ResponsesReply, read_answer

HOME = Home(
    "openai-responses",
    "OpenAI",
    OPENAI_URL,
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    fixed=frozenset({"model", "input", "instructions", "stream", "store", "background", "top_logprobs", "include"}),
)


class Responses(EndpointAdapter):
    """A model behind the Responses API. The dialect has no seed and no stop texts; these cut the answer instead."""

    options: ClassVar[type[msgspec.Struct]] = ResponsesOptions
    home = HOME
    reply: ClassVar[type[Body]] = ResponsesReply
    known = KNOWN
    stops = False
    logprobs = True
    fields = frozenset({"json_schema"})

    def settings(self, options: ResponsesOptions) -> dict[str, Scalar]:
        """Return what only this dialect has."""
        settings: dict[str, Scalar] = {} if options.summary is None else {"summary": options.summary}
        return settings | ({"image_detail": options.image_detail} if options.image_detail != "auto" else {})

    def headers(self, options: ResponsesOptions, key: str | None) -> Mapping[str, str]:
        """Return key, organisation and project."""
        return Account.at(is_home(self.address(options), self.home), key, options).headers()

    def path(self) -> str:
        """Return the path that answers."""
        return "/responses"

    def write(self, request: Generate, look: Look, generation: int) -> dict[str, Any]:
        """Return the body of a request."""
        return write_body(request, self._options, look)

    def batching(self, courier: Courier) -> BatchApi:
        """Return the Batches, of responses."""
        return OpenAIBatches(courier, self.batch_body, self.batch_answer, "/v1/responses")

    def understand(self, reply: ResponsesReply, request: Generate) -> Answer:
        """Return what a response says."""
        return read_answer(reply, self._caller.where)
