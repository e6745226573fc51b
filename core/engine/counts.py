"""`Counts`: what a stage has asked and received so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..contracts.records import AnyResponse


@dataclass
class Counts:
    """Counts of the requests of a stage."""

    trials: int = 0
    cached: int = 0
    """Keys with an answer in the store."""
    asked: int = 0
    """Keys answered by the model, committed."""
    failed: int = 0
    refused: int = 0
    """Refused or filtered answers, from store or model."""
    retried: int = 0
    missed: int = 0
    """Keys of a `replay` without an answer."""
    input_tokens: int | None = 0
    """As counted by the model; None if it does not count them. The same holds for the next fields."""
    output_tokens: int | None = 0
    cached_tokens: int = 0
    """Of the input tokens, those that the endpoint says it had cached."""
    cost: float | None = None
    """US dollars; None if no price is known."""
    pace: float | None = None
    """Requests per second allowed by the endpoint's limiter; None if no limit was met."""
    canary: int = 0
    """Draws of the canary (`integrity/canary.py`): their tokens and cost are counted, and they belong to no trial."""
    estimated: int = 0
    """Answers without a credible token count, charged as estimated; counted where there is a price or a budget."""
    waiting_until: float | None = None
    """Unix time of the end of the last long wait; None if there was none."""
    batched: int = 0
    """Requests that are with the provider in batches."""

    def add(self, answers: Iterable[AnyResponse]) -> None:
        """Count answers of the model, which are committed."""
        read, written = self.input_tokens or 0, self.output_tokens or 0
        for answer in answers:
            usage = answer.usage
            self.asked += 1
            self.refused += answer.status != "ok"
            self.cached_tokens += cached_tokens(answer)
            read, written = read + usage.input_tokens, written + usage.output_tokens
        # Every request has input tokens, so answers without any are from a model that does not count tokens.
        self.input_tokens = read if read or not self.asked else None
        self.output_tokens = written if read or written or not self.asked else None

    def use(self, answer: AnyResponse) -> None:
        """Count the tokens of an answer that belongs to no trial."""
        self.cached_tokens += cached_tokens(answer)
        self.input_tokens = (self.input_tokens or 0) + answer.usage.input_tokens
        self.output_tokens = (self.output_tokens or 0) + answer.usage.output_tokens


def cached_tokens(answer: AnyResponse) -> int:
    """Return how many of an answer's input tokens the endpoint had cached; no more than there are."""
    return max(0, min(answer.usage.cached_tokens, answer.usage.input_tokens))
