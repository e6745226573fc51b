"""How fast a model answers, from the requests of its checks, and how long a study takes at that pace."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from ..catalogue.prices import Prices
from ..contracts import Stage
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import ModelAdapter, abilities_of
from ..contracts.errors import ModelError
from ..contracts.probe import count_trials
from ..contracts.records import AnyRequest, AnyResponse, Draw, Generate, Generation, Likelihood
from ..engine.fitness import first_trials
from ..engine.timing import duration
from ..engine.tokens import CHARACTERS_PER_TOKEN, RULE_OF_THUMB, guess_cost, most_written, weigh

READ = 0.1
"""Work of a token that a model reads before it answers, where that of a token that it writes is 1."""
PASS = 8.0
"""Work of a pass over the model for a continuation, in tokens that are scored, besides its own tokens."""


class Pace(msgspec.Struct):
    """The requests of one operation that were answered, and the time that they took."""

    requests: int = 0
    seconds: float = 0.0
    """Of a model behind an endpoint: as if all were asked with its full concurrency."""
    work: float = 0.0

    @property
    def known(self) -> bool:
        """Return whether anything was measured."""
        return self.work > 0


class Timed(ModelAdapter):
    """A model whose calls are timed; all else is that of the model behind.

    The first call of all is left out: in it a local model loads its weights.
    """

    def __init__(self, model: ModelAdapter) -> None:
        """Take the model, bound to its services."""
        self._model, self._calls = model, 0
        self.identity, self.limits, self.endpoint = model.identity, model.limits, model.endpoint
        self.services = model.services
        self._abilities = abilities_of(model)
        self.paces: dict[str, Pace] = {}
        """By operation."""

    async def answer(self, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
        """Answer requests of one kind, and take the time."""
        began = time.perf_counter()
        answers = await self._model.answer(requests)
        seconds, first = time.perf_counter() - began, self._calls == 0
        self._calls += 1
        if answers and not first and not any(isinstance(answer, ModelError) for answer in answers):
            self._take(requests, answers, seconds)
        return answers

    def _take(
        self, requests: Sequence[AnyRequest], answers: Sequence[AnyResponse | ModelError], seconds: float
    ) -> None:
        pace = self.paces.setdefault(OPERATIONS[type(requests[0])], Pace())
        at_once = max(1.0, self.limits.concurrency / len(requests)) if self.endpoint is not None else 1.0
        # One request at a time does not show how an endpoint copes with many.
        pace.seconds += seconds / (at_once if len(requests) > 1 else 1.0)
        pace.requests += len(requests)
        for request, answer in zip(requests, answers, strict=True):
            pace.work += work_of(request, answer.usage.output_tokens if isinstance(answer, Generation) else None)


def work_of(request: AnyRequest, written: int | None = None) -> float:
    """Return the work of a request in tokens; `written` are those of its answer, None: the most that it may have."""
    if isinstance(request, Likelihood):
        # Local models read the prompt once for all continuations.
        characters = weigh(request)[0] / max(1, len(request.continuations))
        return characters / CHARACTERS_PER_TOKEN + PASS * len(request.continuations)
    tokens = RULE_OF_THUMB.guess(request)
    if not isinstance(request, Generate):
        return max(1.0, tokens.input)
    return READ * tokens.input + (written or most_written(request))


class Estimated(msgspec.Struct, frozen=True, kw_only=True):
    """What a study asks of a model, and how long that takes."""

    requests: int
    """Of the first stage."""
    seconds: float | None = None
    """None: nothing was measured that tells."""
    cost: float | None = None
    """US dollars; None: no price is known."""
    more: bool = False
    """Whether stages follow whose requests depend on answers."""

    @property
    def words(self) -> str:
        """Return it as text."""
        passed = "time not known" if self.seconds is None else f"about {duration(self.seconds)}"
        each = "" if self.seconds is None or not self.requests else f", {_short(self.seconds / self.requests)} each"
        price = "" if self.cost is None else f", ~{self.cost:,.2f} USD"
        stage = " of the first stage" if self.more else ""
        return f"{passed}{price} ({self.requests:,} requests{stage}{each})"


def _short(seconds: float) -> str:
    """Return a time of one request, with two digits."""
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s" if seconds < 100 else duration(seconds)


def estimate_stage(stage: Stage, adapter: Timed, prices: Prices, *, more: bool) -> Estimated:
    """Return what a first stage takes at the pace of the checks: in proportion to the tokens of a sample of its trials.

    Args:
        stage: the stage.
        adapter: its model, after the checks.
        prices: of the model.
        more: whether further stages follow.
    """
    planned = count_trials(stage, {})
    requests = [trial.request for trial in first_trials(stage, {}, planned)]
    share = planned / max(1, len(requests))
    pace, rate = adapter.paces.get(OPERATIONS[stage.operation]), adapter.limits.requests_per_minute
    seconds = None
    # The squares of a check are drawn in two steps, and the images of a study are not.
    if pace is not None and pace.known and (stage.operation is not Draw or adapter.endpoint is not None):
        seconds = sum(map(work_of, requests)) * share * pace.seconds / pace.work
        seconds = max(seconds, planned * 60 / rate) if rate else seconds
    cost = sum(guess_cost(request, RULE_OF_THUMB.guess(request), prices) for request in requests) * share
    return Estimated(requests=planned, seconds=seconds, cost=cost if prices.known else None, more=more)
