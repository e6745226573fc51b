"""`openai`: any endpoint that speaks OpenAI's API.

OpenAI itself, vLLM, llama.cpp's server, `transformers serve`, Ollama, LM Studio and others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import msgspec

from ...core.contracts.abilities import OPERATIONS, Abilities
from ...core.contracts.adapter import (
    Limits,
    ModelAdapter,
    Worker,
    abilities_of,
    answer_each,
    generation_number,
    unsupported,
)
from ...core.contracts.errors import ModelError, PermanentError, TransientError, UnsupportedOperationError
from ...core.contracts.records import (
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    Request,
)
from ..endpoint.answers import filtered_answer
from ..endpoint.batches import Courier
from ..endpoint.call import Caller
from ..endpoint.clients import make_wire, require_client
from ..endpoint.errors import FilteredError
from ..endpoint.images import Look, Pictures, any_picture, keep_image
from ..endpoint.keys import ensure_no_key, find_address, find_key, is_home
from ..endpoint.options import endpoint_of
from ..endpoint.samples import ask_groups, dealt, settled
from ..endpoint.scrub import Scrubber
from ..endpoint.wire import Endpoint, Reply
from .account import Account
from .batches import OpenAIBatches
from .chat import KNOWN, ChatBodies
from .classify import Classifier
from .likelihood import Scorer
from .options import HOME, OPENAI_URL, OpenAIOptions, check_options, make_identity
from .replies import ChatReply, EmbeddingReply, ImageReply, usage_of

_ALWAYS_BASE64 = ("gpt-image", "chatgpt-image")
"""Models that always send images as base64 and refuse the parameter for it."""


class OpenAIApi(ModelAdapter):
    """A model behind an endpoint that speaks OpenAI's API."""

    options: ClassVar[type[msgspec.Struct]] = OpenAIOptions

    def __init__(self, options: OpenAIOptions) -> None:
        """Find address and key; nothing is sent.

        Raises:
            MissingExtraError: the client of the settings is not installed.
            UsageError: a setting is invalid, or there is no key at the configured place.
        """
        require_client("openai", "openai", options.transport)
        check_options(options)
        address = find_address(options, HOME)
        key = find_key(options, address, HOME)
        self.identity = make_identity(options, address)
        ensure_no_key(self.identity, key)
        self.limits = Limits(concurrency=options.concurrency, batch_items=options.samples_per_call)
        account = Account.at(is_home(address, HOME), key, options)
        endpoint = Endpoint.of(options, address, account.headers())
        scrub = Scrubber(key)
        wire = make_wire(endpoint, options.transport, scrub)
        self._options = options
        # Limits are counted per model, so that two models behind one address have a pace each.
        self.endpoint = endpoint_of(options, f"{endpoint.where} {options.model}", endpoint.proxy)
        self._caller = Caller(
            wire, endpoint.where, scrub, options.model, options.extra_body, services=lambda: self.services
        )
        if options.api_version is not None:
            self._caller.query = f"?api-version={options.api_version}"
        self._bodies = ChatBodies(options, address)
        way = options.likelihood
        self._scorer = None if way is None else Scorer(self._caller, self._bodies, way, options.alternatives)
        self._classifier = Classifier(self._caller, options, self._bodies, self._scorer)
        self._courier: Courier | None = None
        if options.batches or (options.batches is None and address == OPENAI_URL):
            self._courier = Courier(endpoint, scrub, options.model, options.transport)
            self.batch_api = OpenAIBatches(self._courier, self._body, self._read_result)
        self._pictures = Pictures("openai")
        self._worker = Worker("openai-images")

    @classmethod
    def abilities(cls, options: OpenAIOptions) -> Abilities:
        """Return what the endpoint can do by its settings; some operations need one, `operations` leaves some out."""
        able = msgspec.structs.replace(super().abilities(options), fields=frozenset({"json_schema", *options.takes}))
        reasons = {}
        if options.likelihood is None:
            reasons[OPERATIONS[Likelihood]] = (
                f"model {options.model!r} of adapter 'openai' has no way to get log-probabilities: endpoints differ. "
                "Set likelihood = 'prompt_logprobs' (vLLM), 'echo' (completions that echo) or 'first_token'."
            )
        if options.classify is None:
            reasons[OPERATIONS[Classify]] = (
                f"model {options.model!r} of adapter 'openai' has no labels to classify by. "
                "Set labels and classify = 'likelihood', 'generate', 'decisions' or 'systemone'."
            )
        if options.operations:
            why = f"model {options.model!r} is limited to {', '.join(options.operations)} (setting operations)."
            reasons |= dict.fromkeys(able.operations - {*options.operations}, why)
        return able.without(reasons)

    async def generate(self, request: Generate) -> Generation:
        """Continue messages of text and images; an answer that a content filter stops has the status `filtered`."""
        body = await self.body(request)
        try:
            return self.read(await self._caller.send("/chat/completions", body), request)
        except FilteredError as stopped:
            return self._filtered(stopped)

    async def generate_batch(self, requests: Sequence[Generate]) -> Sequence[Generation | ModelError]:
        """Continue messages; with `samples_per_call`, samples of one question in one call."""
        if (most := self._options.samples_per_call) == 1:
            return await answer_each(self.generate, requests)
        return await ask_groups(requests, most, partial(answer_each, self.generate), self._several, self._filtered)

    async def _several(self, requests: Sequence[Generate]) -> list[Generation | ModelError]:
        sent = await self._caller.send("/chat/completions", {**await self.body(requests[0]), "n": len(requests)})
        reply = self._caller.read(sent, ChatReply)
        where = self._caller.where

        def one(part: ChatReply) -> Generation:
            if part.choices and part.choices[0].error:
                raise TransientError(f"{where} ended a sample with an error.", code="endpoint.broken-off")
            return self._bodies.read(part, sent.body, requests[0], where)

        parts = [msgspec.structs.replace(reply, choices=[choice]) for choice in reply.choices]
        found = (settled(partial(one, part)) for part in parts or [reply] * len(requests))
        return dealt(found, usage_of(reply.usage), len(requests), where)

    async def body(self, request: Generate) -> dict[str, Any]:
        """Return the body of a request, without the model's name and the settings' further fields.

        Raises:
            PermanentError: a request for what the endpoint does not take, or an image that cannot be sent.
        """
        if (error := unsupported(self, request)) is not None:
            raise error
        look = await self._look(request.messages)
        return self._bodies.generate(request, look, generation_number(self.services, request))

    def check(self, request: Request) -> None:
        """Write a request; see `ModelAdapter`."""
        self._pictures.ensure_readable(request)
        if isinstance(request, Generate):
            self._bodies.generate(request, any_picture)

    def read(self, reply: Reply, request: Generate) -> Generation:
        """Return the answer of a reply to a request.

        Raises:
            ModelError: it holds none.
        """
        return self._bodies.read(self._caller.read(reply, ChatReply), reply.body, request, self._caller.where)

    async def _body(self, request: Generate) -> dict[str, Any]:
        """Return the body of a call, for a batch."""
        return self._caller.whole(await self.body(request))

    def _read_result(self, reply: Reply, request: Generate) -> Generation:
        """Read the reply to a call of a batch."""
        try:
            return self.read(self._caller.answered(reply), request)
        except FilteredError as stopped:
            return self._filtered(stopped)

    def _filtered(self, stopped: FilteredError) -> Generation:
        return filtered_answer(stopped, self._options.keep_replies, KNOWN)

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        """Score continuations in the way that the settings name.

        Raises:
            UnsupportedOperationError: the settings name none.
        """
        if self._scorer is None:
            raise UnsupportedOperationError(abilities_of(self).reasons[OPERATIONS[Likelihood]], code="model.operation")
        look = await self._look(() if isinstance(request.prompt, str) else request.prompt)
        return await self._scorer.score(request, look)

    async def classify(self, request: Classify) -> Classification:
        """Give a probability per label of the settings.

        Raises:
            UnsupportedOperationError: the settings name no way or no labels.
        """
        if self._options.classify is None:
            raise UnsupportedOperationError(abilities_of(self).reasons[OPERATIONS[Classify]], code="model.operation")
        return await self._classifier.classify(request)

    async def embed(self, request: Embed) -> Embedding:
        """Return a vector of the model's length."""
        body = {"input": request.text, "encoding_format": "float"}
        reply = await self._caller.ask("/embeddings", body, EmbeddingReply)
        if not reply.data:
            raise TransientError(f"{self._caller.where} sent no vector.", code="endpoint.no-answer")
        vector = tuple(reply.data[0].embedding)
        if not vector or not all(map(math.isfinite, vector)):
            raise PermanentError(
                f"{self._caller.where} sent an invalid vector of {len(vector)} numbers.", code="endpoint.vector"
            )
        return Embedding(vector=vector, usage=usage_of(reply.usage))

    async def draw(self, request: Draw) -> Drawing:
        """Make an image and store it; one that a filter stops has the status `filtered`."""
        if request.steps is not None or request.guidance is not None:
            raise PermanentError(
                "steps and guidance cannot be set for images of an endpoint; omit both.", code="request.value"
            )
        body = {"prompt": request.prompt, "size": f"{request.width}x{request.height}"}
        if not self._options.model.startswith(_ALWAYS_BASE64):
            body["response_format"] = "b64_json"
        seed = {"seed": request.seed} if self._options.send_draw_seed else {}
        try:
            reply = await self._caller.ask("/images/generations", {**body, **seed}, ImageReply)
        except FilteredError:
            return Drawing(image=None, status="filtered")
        if not reply.data:
            raise TransientError(f"{self._caller.where} sent no image.", code="endpoint.no-answer")
        if reply.data[0].b64_json is None:
            raise PermanentError(
                f"{self._caller.where} did not send the image itself (b64_json).", code="endpoint.image"
            )
        image = await self._worker.run(keep_image, reply.data[0].b64_json, self.services.keep)
        return Drawing(image=image, usage=usage_of(reply.usage))

    async def aclose(self) -> None:
        """Close the connections; current calls fail."""
        await self._caller.aclose()
        if self._courier is not None:
            await self._courier.aclose()
        self._worker.close()

    async def _look(self, messages: tuple[Message, ...]) -> Look:
        return await self._pictures.of(messages, self.services.blobs, self._worker)
