"""`Charges`: what the requests of one model cost, and whether the budget allows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from ..catalogue.prices import Prices
from ..contracts.abilities import OPERATIONS
from ..contracts.records import AnyRequest, AnyResponse, Drawing, Generation
from .asking import Keyed
from .budget import Budget, Hold, Spending
from .progress import Counts, cached_tokens
from .tokens import RULE_OF_THUMB, Tokens, guess_cost

MOST_TOKENS = 10_000_000
"""Token counts above this are not believed."""


@dataclass
class Charges:
    """The spending of one stage on one model."""

    model_id: int
    budget: Budget | None
    """The budget of all stages of the run together."""
    prices: Prices
    counts: Counts

    def __post_init__(self) -> None:
        """Count the cost from 0 on, where there are prices."""
        self._free = self.budget is None and not self.prices.known
        if self.prices.known and self.counts.cost is None:
            self.counts.cost = 0.0

    async def reserve(self, requests: Sequence[Keyed]) -> Hold:
        """Wait until the budget allows requests, and return what is reserved for them.

        Raises:
            BudgetError: the budget is spent.
        """
        if self.budget is None:
            return Hold(Spending(len(requests)))
        kind = self._kind(type(requests[0].request))
        return await self.budget.reserve(kind, len(requests), lambda: self.guess(requests))

    def pay(self, kind: type[AnyRequest], held: Hold, given: Sequence[tuple[Keyed, AnyResponse]]) -> None:
        """Count the tokens and cost of the answers to requests of a kind; `held` was reserved for these."""
        if self._free:
            return
        spent, most = self._count(given)
        if self.budget is not None:
            self.budget.settle(self._kind(kind), held, spent._replace(requests=held.requests), len(given), most)

    def charge(self, given: Sequence[tuple[Keyed, AnyResponse]]) -> Spending:
        """Count the cost of answers, and return it with their tokens."""
        return Spending(len(given)) if self._free else self._count(given)[0]

    def _count(self, given: Sequence[tuple[Keyed, AnyResponse]]) -> tuple[Spending, Spending]:
        """Count the cost of answers; return all of it, and the most tokens and cost of one of them."""
        charged = [self._charge(keyed.request, answer) for keyed, answer in given]
        tokens = Tokens(*(sum(column) for column in zip(*charged, strict=True)))
        images = [int(isinstance(answer, Drawing) and answer.image is not None) for _, answer in given]
        cost = self._cost(tokens, len(given), sum(images))
        if self.prices.known:
            self.counts.cost = (self.counts.cost or 0.0) + cost
        most = 0.0
        if self.budget is not None:
            most = max(map(self._cost, charged, repeat(1), images), default=0.0)
        return Spending(len(given), tokens.total, cost), Spending(1, max((t.total for t in charged), default=0.0), most)

    def _cost(self, tokens: Tokens, requests: int, images: int) -> float:
        return self.prices.cost(tokens.input, tokens.output, requests, images, tokens.cached) or 0.0

    def _kind(self, kind: type[AnyRequest]) -> str:
        return f"{self.model_id} {OPERATIONS[kind]}"

    def guess(self, requests: Sequence[Keyed]) -> Spending:
        """Return the estimated cost of requests."""
        tokens = [(keyed.request, RULE_OF_THUMB.guess(keyed.request)) for keyed in requests]
        cost = sum(guess_cost(request, guess, self.prices) for request, guess in tokens)
        return Spending(len(requests), sum(guess.total for _, guess in tokens), cost)

    def _charge(self, request: AnyRequest, answer: AnyResponse) -> Tokens:
        """Return the tokens of an answer; estimated if the model gives no count, or one that cannot be."""
        read, written = answer.usage.input_tokens, answer.usage.output_tokens
        wrote = isinstance(answer, Generation) and answer.text + answer.reasoning != ""
        credible = wrote <= written <= MOST_TOKENS
        if credible and 0 < read <= MOST_TOKENS:
            return Tokens(read, written, cached_tokens(answer))
        guess = RULE_OF_THUMB.guess(request)
        if credible and not guess.input:
            return Tokens(read, written)
        self.counts.estimated += 1
        return guess
