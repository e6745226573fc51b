"""`Budget`: the limits of a run's spending; the run stops at a limit without losing answers.

Each call reserves the mean cost of earlier calls of its kind, and returns the difference when its answers are
committed. Answers differ in length, so a call is also counted at the most that it may cost: it begins only if those in
flight keep the limit at their most. So a limit holds with many calls in flight too: tokens and cost exceed it by at
most one batch, requests never.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from ..catalogue.prices import Prices
from ..contracts.errors import BudgetError, UsageError
from ..contracts.words import counted

Whole = Annotated[int, msgspec.Meta(ge=1)]
Dollars = Annotated[float, msgspec.Meta(gt=0)]


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of what a run may spend from now on; None: no limit."""

    requests: Whole | None = None
    """Requests sent to models, including failed ones."""
    tokens: Whole | None = None
    """Input and output tokens, as counted by the models."""
    cost: Dollars | None = None
    """US dollars, from the registry's prices."""

    def __post_init__(self) -> None:
        """Refuse limits of 0 or below."""
        for name in self.__struct_fields__:
            if (value := getattr(self, name)) is not None and not value > 0:
                raise UsageError(
                    f"--max-{name} is {value}. A budget must be above 0; omit it for no limit.", code="budget.value"
                )

    @property
    def any(self) -> bool:
        """Return whether there is a limit."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)


class Spending(NamedTuple):
    """An amount of requests, tokens and cost."""

    requests: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, other: Spending, sign: int = 1) -> Spending:
        """Return the sum."""
        return Spending(
            self.requests + sign * other.requests, self.tokens + sign * other.tokens, self.cost + sign * other.cost
        )

    def per_request(self, requests: int) -> Spending:
        """Return the part of this amount that falls to so many of its requests."""
        part = requests / max(1, self.requests)
        return Spending(requests, self.tokens * part, self.cost * part)


NOTHING = Spending()


class Hold(NamedTuple):
    """What is reserved for a call."""

    expected: Spending
    most: Spending = NOTHING
    """What it comes to if every answer is as long as it may be."""

    @property
    def requests(self) -> int:
        """Return the number of requests that may be sent."""
        return self.expected.requests


@dataclass
class _Kind:
    """Spending on the answered requests of one model and operation."""

    answered: Spending = Spending()
    most: Spending = Spending()
    """The most tokens, and the highest cost, of one request."""


class Budget:
    """The budget of one run; used in one event loop."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.spent = Spending()
        self._held = Spending()
        self._most = Spending()
        """The most that the calls in flight may come to."""
        self._admitted = Spending()
        """The part of what is held that ends with a batch, and not with a call in flight."""
        self._kinds: dict[str, _Kind] = {}
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()

    async def reserve(self, kind: str, requests: int, guess: Callable[[], Spending]) -> Hold:
        """Wait until the budget allows requests, and reserve their cost; fewer requests than wanted may be allowed.

        Args:
            kind: requests with similar cost, such as those of one model and operation.
            requests: number of requests wanted.
            guess: the cost of all of them, with answers as long as they may be; also the expected cost until a
                request of this kind was answered.

        Raises:
            BudgetError: the budget is spent, and no call is in flight.
        """
        async with self._turn:
            while True:
                granted = self._room(requests)
                hold = self._hold(kind, granted, guess)
                idle = self._held.requests == self._admitted.requests
                # With no call in flight, a batch may exceed the limit: its true cost is known afterwards.
                alone = not self._held.requests and not self._exhausted()
                if granted and (self._fits(self._held.plus(hold.expected)) and self._fits(self._most) or alone):
                    self._held, self._most = self._held.plus(hold.expected), self._most.plus(hold.most)
                    return hold
                if idle:
                    raise BudgetError(self.explain())
                self._settled.clear()
                await self._settled.wait()

    def admit(self, hold: Spending) -> bool:
        """Reserve the estimated cost of a request that is handed in with others, if the budget has room for it.

        Nothing of a batch can be taken back, so it must fit beforehand.
        """
        if self._room(hold.requests) < hold.requests or self._exhausted() or not self._fits(self._held.plus(hold)):
            return False
        self._held, self._admitted = self._held.plus(hold), self._admitted.plus(hold)
        self._most = self._most.plus(hold)
        return True

    def release(self, hold: Spending, spent: Spending) -> None:
        """Count what was spent instead of what `admit` reserved."""
        self._admitted = self._admitted.plus(hold, -1)
        self.settle("", Hold(hold, hold), spent, 0)

    def ensure_room(self, requests: int, why: str) -> None:
        """Refuse to begin what needs a number of requests together, before any of them is spent.

        Raises:
            BudgetError: fewer are left.
        """
        if (left := self._room(requests)) < requests:
            raise BudgetError(
                f"--max-requests {self.caps.requests:,} leaves {counted(left, 'request')}, and {why} "
                f"{requests}; none of them was spent."
            )

    def settle(self, kind: str, held: Hold, spent: Spending, answered: int, most: Spending = NOTHING) -> None:
        """Release the reservation and count the actual cost.

        `answered` is the number of answered requests, `most` the highest amounts of one of them.
        """
        self._held, self._most = self._held.plus(held.expected, -1), self._most.plus(held.most, -1)
        self.spent = self.spent.plus(spent)
        if answered:
            earlier = self._kinds.setdefault(kind, _Kind())
            earlier.answered = earlier.answered.plus(spent._replace(requests=answered))
            earlier.most = Spending(1, *map(max, earlier.most[1:], most[1:]))
        self._settled.set()

    def _room(self, requests: int) -> int:
        if self.caps.requests is None:
            return requests
        return max(0, min(requests, self.caps.requests - self.spent.requests - self._held.requests))

    def _hold(self, kind: str, requests: int, guess: Callable[[], Spending]) -> Hold:
        earlier = self._kinds.get(kind)
        if self.caps.tokens is None and self.caps.cost is None:
            return Hold(Spending(requests))
        guessed = guess().per_request(requests)
        if earlier is None:
            return Hold(guessed, guessed)
        most = (max(amount, requests * largest) for amount, largest in zip(guessed[1:], earlier.most[1:], strict=True))
        return Hold(earlier.answered.per_request(requests), Spending(requests, *most))

    def _fits(self, held: Spending) -> bool:
        after = self.spent.plus(held)
        return all(
            most is None or value <= most
            for value, most in ((after.tokens, self.caps.tokens), (after.cost, self.caps.cost))
        )

    def _exhausted(self) -> bool:
        pairs = zip(self.spent, (self.caps.requests, self.caps.tokens, self.caps.cost), strict=True)
        return any(most is not None and value >= most for value, most in pairs)

    def explain(self) -> str:
        """Return that the budget is spent, and on what."""
        asked = [
            f"--max-{name} {value:,}" for name in self.caps.__struct_fields__ if (value := getattr(self.caps, name))
        ]
        cost = f", {self.spent.cost:.4f} USD" if self.caps.cost is not None else ""
        # 0 tokens: the model does not count them.
        tokens = f", {self.spent.tokens:,.0f} tokens" if self.spent.tokens else ""
        return f"the budget is spent ({', '.join(asked)}): {self.spent.requests:,} requests{tokens}{cost}."


def ensure_priced(caps: Caps, prices: Mapping[str, Prices]) -> None:
    """Refuse a limit on cost for models (by name) without prices.

    Raises:
        UsageError: a model has no price.
    """
    if caps.cost is not None and (unknown := [model for model, price in prices.items() if not price.known]):
        raise UsageError(
            f"--max-cost needs prices, and the registry has none for {', '.join(map(repr, unknown))}. "
            f"State them in a registry.toml: [models.NAME] prices = {{ input = 0.15, output = 0.60 }} "
            "(US dollars per million tokens; { request = 0 } for a model that costs nothing).",
            code="budget.no-price",
        )
