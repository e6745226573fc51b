"""`Budget`: the limits of a run's spending; the run stops at a limit without losing answers.

Each call reserves what calls like it have cost so far, and gives back the difference when its answers are committed.
So a limit is kept with many calls in flight too: it is overrun by one batch at most, and requests not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from ..catalogue.prices import Prices
from ..contracts.errors import BudgetError, UsageError

Whole = Annotated[int, msgspec.Meta(ge=1)]
Dollars = Annotated[float, msgspec.Meta(gt=0)]


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """The most a run may spend from here on; None sets no limit."""

    requests: Whole | None = None
    """Requests sent to models, those that fail among them."""
    tokens: Whole | None = None
    """Tokens read and written, as the models count them."""
    cost: Dollars | None = None
    """US dollars, by the registry's prices."""

    def __post_init__(self) -> None:
        """Refuse a limit that lets nothing through; a record made in code is not checked by its types."""
        for name in self.__struct_fields__:
            if (value := getattr(self, name)) is not None and not value > 0:
                raise UsageError(
                    f"--max-{name} is {value}. A budget must be above 0; omit it for no limit.", code="budget.value"
                )

    @property
    def any(self) -> bool:
        """Say whether there is a limit."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)


class Spending(NamedTuple):
    """What was spent, or may be."""

    requests: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, other: Spending, sign: int = 1) -> Spending:
        """Return both together."""
        return Spending(
            self.requests + sign * other.requests, self.tokens + sign * other.tokens, self.cost + sign * other.cost
        )

    def per_request(self, requests: int) -> Spending:
        """Return the share of so many requests in this."""
        part = requests / max(1, self.requests)
        return Spending(requests, self.tokens * part, self.cost * part)


@dataclass
class _Kind:
    """What requests of one model and operation cost."""

    answered: Spending = Spending()


class Budget:
    """The purse of one run; belongs to one event loop."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.spent = Spending()
        self._held = Spending()
        self._kinds: dict[str, _Kind] = {}
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()

    async def reserve(self, kind: str, requests: int, guess: Callable[[], Spending]) -> Spending:
        """Wait until there is room, and hold it; fewer requests than asked for may be let through.

        Args:
            kind: what costs alike, such as a model and an operation.
            requests: how many are wanted.
            guess: the cost of all of them, while none of the kind was answered yet.

        Raises:
            BudgetError: the budget is spent, and nothing is under way any more.
        """
        async with self._turn:
            while True:
                granted = self._room(requests)
                hold = self._hold(kind, granted, guess)
                idle = not self._held.requests
                # With nothing under way, the last batch may go though it may overrun the limit: it learns what it cost.
                if granted and (self._fits(hold) or (idle and not self._exhausted())):
                    self._held = self._held.plus(hold)
                    return hold
                if idle:
                    raise BudgetError(self._explain())
                self._settled.clear()
                await self._settled.wait()

    def settle(self, kind: str, held: Spending, spent: Spending, answered: int) -> None:
        """Give back what was held and count what was spent: `answered` requests gave an answer."""
        self._held = self._held.plus(held, -1)
        self.spent = self.spent.plus(spent)
        if answered:
            known = self._kinds.setdefault(kind, _Kind())
            known.answered = known.answered.plus(spent._replace(requests=answered))
        self._settled.set()

    def _room(self, requests: int) -> int:
        if self.caps.requests is None:
            return requests
        return max(0, min(requests, self.caps.requests - self.spent.requests - self._held.requests))

    def _hold(self, kind: str, requests: int, guess: Callable[[], Spending]) -> Spending:
        known = self._kinds.get(kind)
        return (known.answered if known is not None else guess()).per_request(requests)

    def _fits(self, hold: Spending) -> bool:
        after = self.spent.plus(self._held).plus(hold)
        return all(
            most is None or value <= most
            for value, most in ((after.tokens, self.caps.tokens), (after.cost, self.caps.cost))
        )

    def _exhausted(self) -> bool:
        pairs = zip(self.spent, (self.caps.requests, self.caps.tokens, self.caps.cost), strict=True)
        return any(most is not None and value >= most for value, most in pairs)

    def _explain(self) -> str:
        asked = [
            f"--max-{name} {value:,}" for name in self.caps.__struct_fields__ if (value := getattr(self.caps, name))
        ]
        cost = f", {self.spent.cost:.4f} USD" if self.caps.cost is not None else ""
        # No tokens at all are those of a model that does not count them.
        tokens = f", {self.spent.tokens:,.0f} tokens" if self.spent.tokens else ""
        return f"the budget is spent ({', '.join(asked)}): {self.spent.requests:,} requests{tokens}{cost}."


def ensure_priced(caps: Caps, prices: Mapping[str, Prices]) -> None:
    """Refuse a limit on the cost of models (by name) whose cost nobody knows.

    Raises:
        UsageError: naming the models, and how to state a price.
    """
    if caps.cost is not None and (unknown := [model for model, price in prices.items() if not price.known]):
        raise UsageError(
            f"--max-cost needs prices, and none is known for {', '.join(map(repr, unknown))}. "
            f"State them in a registry.toml: [models.NAME] prices = {{ input = 0.15, output = 0.60 }} "
            "(US dollars of a million tokens; { request = 0 } for a model that costs nothing).",
            code="budget.no-price",
        )
