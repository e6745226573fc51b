"""A few requests of a stage are asked by calls of their own before its batches are handed in, and compared afterwards.

The single answers are kept with the items of the batch, never as answers to their keys: so neither way replaces or
doubles the other in the store. Being asked first, they also show a broken prompt before a whole study is paid for.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ...contracts import Stage, Trial, Unreadable
from ...contracts.canonical import decode_response, encode_response
from ...contracts.errors import AuthenticationError, ModelError
from ...contracts.records import AnyRequest, AnyResponse, Generate, Generation, Scalar
from ...store.batches import Batches
from ..asking import Call, Job, Keyed
from ..ending import FIRST_CALLS_FAILING, FIRST_CALLS_UNREADABLE
from ..integrity.canary import samples
from ..reading import as_read, read_answer
from ..scheduler import Scheduler
from .options import SentinelRecord

LEVEL = 0.05
"""p below which the distributions of outcomes are said to differ."""
EXACT, RESAMPLES = 12, 4095
"""Pairs with two outcomes up to which all exchanges of the two ways are computed; above, so many are drawn."""
FEWEST = 10
"""Requests that must all have failed, or be unreadable, before the stage is stopped for it."""


@dataclass
class Alone(Scheduler):
    """Asks requests by calls of their own, and keeps the answers apart from the store's."""

    answers: dict[bytes, AnyResponse] = field(default_factory=dict)
    failures: list[ModelError] = field(default_factory=list)

    async def ask(self, requests: Sequence[Keyed]) -> None:
        """Ask all."""
        await self._ask(requests, {})

    def _holds(self, job: Job) -> bool:
        return True

    async def _commit(self, calls: list[Call]) -> None:
        for call in calls:
            self.answers |= {keyed.key: answer for keyed, answer in call.answered}
            self.failures.extend(error for _, error in call.failed)
            self._charges.pay(type(call.job.batch[0].request), call.held, call.answered)
            for _, answer in call.answered:
                self.counts.use(answer)
            self._go_on(call.job, call.rest, call.wait)
        self._close(len(calls))


@dataclass
class Sentinels:
    """The requests of a stage that are asked both ways."""

    stage: Stage
    scheduler: Scheduler
    book: Batches
    run: str
    wanted: int

    def __post_init__(self) -> None:
        """Begin without any."""
        self._drawn: list[tuple[bytes, bytes, Keyed, Trial]] = []
        self._known: dict[bytes, tuple[str, str | None]] = {}
        self._trials: dict[bytes, Trial] = {}
        self._others: dict[bytes, Trial | None] = {}
        self._like: Keyed | None = None

    @property
    def left(self) -> int:
        """Return how many requests may still be asked both ways."""
        return max(0, self.wanted - len(self._known))

    async def recall(self) -> None:
        """Read what was asked before, by other commands too: their batches may bring answers of this stage."""
        ledger = self.scheduler.ledger
        self._known = await ledger.do(self.book.singles, ledger.run_id, self.run, self.stage.name)
        single_keys = await ledger.do(self.book.asked_alone, self.scheduler.model_id)
        self._others = {key: self._others.get(key) for key in single_keys}

    def meet(self, trials: Sequence[Trial], keyed: Sequence[Keyed], missing: Collection[bytes]) -> None:
        """Draw from a window of trials: those with the smallest digests of their keys, whatever their order."""
        lacking = (candidate for candidate in keyed if candidate.key in missing)
        self._like = self._like or next((candidate for candidate in lacking if samples(candidate.request)), None)
        for trial, candidate in zip(trials, keyed, strict=True):
            if candidate.key in self._known:
                self._trials.setdefault(candidate.key, trial)
            elif candidate.key in missing and candidate.key not in self._trials and len(self._known) < self.wanted:
                self._trials[candidate.key] = trial
                # A heap of the largest: the one to drop is on top.
                digest = hashlib.sha256(b"prejudge-sentinel-1" + candidate.key).digest()
                heapq.heappush(self._drawn, (bytes(255 - byte for byte in digest), candidate.key, candidate, trial))
                if len(self._drawn) > self.wanted - len(self._known):
                    del self._trials[heapq.heappop(self._drawn)[1]]
            elif candidate.key in self._others:
                self._others[candidate.key] = trial

    async def ask(self, keep_going: bool) -> None:
        """Ask what was drawn, once its batches are drafted.

        Raises:
            HaltedError: all of them failed, or none can be read.
        """
        drawn, self._drawn = self._drawn, []
        ledger = self.scheduler.ledger
        batches = await ledger.do(self.book.holding, [key for _, key, _, _ in drawn])
        asked = [keyed for _, key, keyed, _ in drawn if key in batches]
        for key in {key for _, key, _, _ in drawn} - batches.keys():  # the budget had no room: drawn from again later
            del self._trials[key]
        base, like = self.scheduler, self._like
        self._like = None
        alone = Alone(
            base.adapter, ledger, base.model_id, base.identity, policy=base.policy, counts=base.counts,
            limiter=base.limiter, budget=base.budget, prices=base.prices, inspector=base.inspector,
            generations=base.generations,
        )  # fmt: skip
        if like is not None:
            await alone.try_canary([like])
        if not asked:
            return
        await alone.ask(asked)
        for key, response in alone.answers.items():
            await ledger.do(self.book.keep_single, batches[key], key, encode_response(response))
        if not keep_going:
            self._stop_if_hopeless(asked, alone)

    def _stop_if_hopeless(self, asked: Sequence[Keyed], alone: Alone) -> None:
        refused = next((error for error in alone.failures if isinstance(error, AuthenticationError)), None)
        if refused is not None:
            raise refused
        if len(asked) < FEWEST:
            return
        if not alone.answers and alone.failures:
            raise FIRST_CALLS_FAILING.error(count=len(asked), failure=alone.failures[-1])
        read = [self._outcome(self._trials[key], answer) for key, answer in alone.answers.items()]
        if read and all(outcome == "unreadable" for outcome in read):
            text = next((a.text for a in alone.answers.values() if isinstance(a, Generation)), "")
            raise FIRST_CALLS_UNREADABLE.error(count=len(read), example=" ".join(text.split())[:100])

    async def compare(self) -> SentinelRecord | None:
        """Return how the answers compare; None if nothing was asked both ways."""
        await self.recall()
        pairs, equal, greedy = [], 0, True
        for key, (alone, both) in self._known.items():
            if both is None or (trial := self._trials.get(key) or self._others.get(key)) is None:
                continue
            single, batched = (as_read(decode_response(text)) for text in (alone, both))
            equal += _said(single) == _said(batched)
            greedy = greedy and _is_greedy(trial.request)
            pairs.append((self._outcome(trial, single), self._outcome(trial, batched)))
        if not self._known:
            return None
        distance, p = permuted(pairs)
        return SentinelRecord(
            asked=len(self._known),
            compared=len(pairs),
            greedy=greedy and bool(pairs),
            equal_texts=equal,
            equal_outcomes=sum(single == batched for single, batched in pairs),
            distance=distance,
            p=p,
            differs=equal < len(pairs) if greedy else p is not None and p < LEVEL,
        )

    def _outcome(self, trial: Trial, response: AnyResponse) -> str:
        try:
            outcome = read_answer(self.stage, trial.factors, response)
        except Exception as error:  # a defect of the reader is reported when the run is scored
            return f"unread: {type(error).__name__}"
        if outcome is None:
            return as_read(response).status
        return "unreadable" if isinstance(outcome, Unreadable) else _words(outcome)


def permuted(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, float | None]:
    """Return the distance of the outcomes of two ways of asking, and its p.

    The distance is the total variation of the two distributions, in [0, 1]. Under the hypothesis that a request's
    outcome does not depend on the way, its two outcomes can be exchanged: p is the share of such exchanges with a
    distance as large, of all of them or of `RESAMPLES` drawn ones and the observed one.
    """
    if not pairs:
        return None, None
    kinds = {kind: place for place, kind in enumerate(sorted({kind for pair in pairs for kind in pair}))}
    unequal = [(kinds[first], kinds[second]) for first, second in pairs if first != second]
    if not unequal:
        return 0.0, None
    steps = np.zeros((len(unequal), len(kinds)))
    for place, (first, second) in enumerate(unequal):
        steps[place, first] += 1
        steps[place, second] -= 1
    if len(unequal) <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=len(unequal))))
    else:
        drawn = np.random.default_rng(0).choice((1.0, -1.0), size=(RESAMPLES, len(unequal)))
        signs = np.vstack([np.ones(len(unequal)), drawn])
    distances = np.abs(signs @ steps).sum(axis=1) / (2 * len(pairs))
    return float(distances[0]), float(np.mean(distances >= distances[0] - 1e-12))


def _said(response: AnyResponse) -> Any:
    return response.text if isinstance(response, Generation) else response


def _is_greedy(request: AnyRequest) -> bool:
    return not isinstance(request, Generate) or request.sampling.temperature == 0


def _words(outcome: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(outcome.items()))
