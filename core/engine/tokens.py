"""Estimate the tokens of a request from earlier answers in the store, or from its characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from ..catalogue.prices import Prices
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import Identity
from ..contracts.canonical import decode_request, decode_response, identity_digest
from ..contracts.records import (
    AnyRequest,
    Classify,
    Draw,
    Embed,
    Generate,
    Image,
    Likelihood,
    Message,
    PseudoLikelihood,
    Text,
)
from ..store import Store
from ..store.bulk import table_of
from ..store.tables import Exchange, Model

CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for English and the tokenizers of chat models; other scripts need more tokens."""
IMAGE_TOKENS = 800
"""Endpoints count 85 to 1,600 tokens per input image."""
ANSWER_TOKENS = 256
"""Output tokens of a request without `max_tokens`."""
SAMPLE = 500
"""Number of a model's latest answers to use."""


class Tokens(NamedTuple):
    """Input and output tokens."""

    input: float = 0.0
    output: float = 0.0
    cached: float = 0.0
    """Of the input tokens, those that the endpoint had cached."""

    @property
    def total(self) -> float:
        """Return the number of tokens."""
        return self.input + self.output

    def plus(self, other: Tokens, times: int = 1) -> Tokens:
        """Return the sum with so many of the others."""
        return Tokens(*(mine + times * theirs for mine, theirs in zip(self, other, strict=True)))


class Rates(NamedTuple):
    """Model of the tokens of a request: a rule of thumb, or estimated from answers."""

    characters_per_token: float = CHARACTERS_PER_TOKEN
    output_per_request: float | None = None
    """None: the maximum that a request allows, or `ANSWER_TOKENS`."""
    learned_from: int = 0
    """Number of answers used; 0 for the rule of thumb."""
    cached_share: float = 0.0
    """Share of input tokens that the endpoint had cached."""
    room: int = 0
    """Output tokens that the model may use to reason, besides those of its answer."""

    def guess(self, request: AnyRequest) -> Tokens:
        """Return the tokens of a request."""
        text, images = weigh(request)
        written = self.output_per_request if self.learned_from else self._most_written(request)
        read = text / self.characters_per_token + images * IMAGE_TOKENS
        return Tokens(read, written or 0.0, read * self.cached_share)

    def _most_written(self, request: AnyRequest) -> float:
        return most_written(request) + (self.room if isinstance(request, Generate) else 0)

    def describe(self) -> str:
        """Return the source of the numbers, as text."""
        if self.learned_from:
            return f"estimated from this model's last {self.learned_from:,} answers in the store"
        return (
            f"estimated from {CHARACTERS_PER_TOKEN:g} characters per token, and from the maximum of output tokens of a "
            f"request ({ANSWER_TOKENS} if it sets none)"
            + (f" and the model's room for reasoning of {self.room:,}" if self.room else "")
        )


RULE_OF_THUMB = Rates()


def weigh(request: AnyRequest) -> tuple[int, int]:
    """Return the numbers of input characters and images."""
    match request:
        case Generate():
            return _weigh_messages(request.messages)
        case Likelihood():
            read, images = (
                (len(request.prompt), 0) if isinstance(request.prompt, str) else _weigh_messages(request.prompt)
            )
            times = max(1, len(request.continuations))
            return read * times + sum(map(len, request.continuations)), images * times
        case Classify():
            return len(request.text) + len(request.pair or ""), 0
        case PseudoLikelihood() | Embed():
            return len(request.text), 0
        case Draw():
            return len(request.prompt), 0


def _weigh_messages(messages: Iterable[Message]) -> tuple[int, int]:
    parts = [part for message in messages for part in message.parts]
    return sum(len(p.text) for p in parts if isinstance(p, Text)), sum(isinstance(p, Image) for p in parts)


def most_written(request: AnyRequest) -> float:
    """Return the maximum number of tokens of an answer; a guess if the request sets no limit."""
    if not isinstance(request, Generate):
        return 0.0
    return float(request.sampling.max_tokens or ANSWER_TOKENS)


def guess_cost(request: AnyRequest, tokens: Tokens, prices: Prices) -> float:
    """Return the cost of a request in US dollars; 0 if no price is known."""
    return prices.cost(tokens.input, tokens.output, 1, int(isinstance(request, Draw)), tokens.cached) or 0.0


def learn(store: Store, identity: Identity, operation: type) -> Rates:
    """Return the token model from a model's latest answers, or the rule of thumb if none has token counts."""
    exchange, models = table_of(Exchange), table_of(Model)
    query = (
        sa.select(exchange.c.id, exchange.c.input_tokens, exchange.c.output_tokens)
        .join_from(exchange, models, exchange.c.model_id == models.c.id)
        .where(models.c.digest == identity_digest(identity), exchange.c.operation == OPERATIONS[operation])
        .where(exchange.c.input_tokens > 0)
        .order_by(exchange.c.id.desc())
        .limit(SAMPLE)
    )
    rows = {number: Tokens(read, written) for number, read, written in store.rows(query)}
    if not rows:
        return RULE_OF_THUMB
    exchanges = store.exchanges(rows)
    seen = [(weigh(decode_request(request)), decode_response(response).usage) for _, request, response in exchanges]
    characters, images = (sum(column) for column in zip(*(weight for weight, _ in seen), strict=True))
    every = sum(tokens.input for tokens in rows.values())
    cached = sum(min(usage.cached_tokens, usage.input_tokens) for _, usage in seen) / every
    read = every - images * IMAGE_TOKENS
    per_token = characters / read if read > 0 and characters else CHARACTERS_PER_TOKEN
    return Rates(per_token, sum(tokens.output for tokens in rows.values()) / len(rows), len(rows), cached)
