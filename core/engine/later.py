"""How long the stages take whose requests depend on earlier answers: for `plan --time`.

From the answers that there are so far, the requests of the next stage are made, and a few of them, spread over all, are
asked. How many there will be is on the line through the number with half of those answers and the number with all of
them, so that requests that do not depend on answers, such as reference sentences, are counted once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import polars as pl

from ..catalogue.study import Catalogue, Study
from ..contracts import Stage, Trial
from ..contracts.adapter import ModelAdapter
from ..contracts.canonical import encode, identity_digest
from ..store import Found, Store, get_run
from ..workers.remote import open_adapters
from .asking import Keyed
from .ledger import Ledger
from .limiter import Limiters
from .observations import TRIALS, gather_observations
from .progress import Counts
from .scheduler import Scheduler

Came = list[tuple[float, int]]
"""Seconds after the first request, and how many answers had come by then."""


class Grown(msgspec.Struct, frozen=True):
    """What is left to ask of a stage."""

    stage: str
    left: float | None
    """Requests; None where no answer tells, as no request follows from those that there are."""
    came: Came
    """When the answers came that were asked for now."""
    remote: bool
    """Whether an endpoint gave them."""
    driver: str = ""
    """The stage on whose answers it was extrapolated; empty: it was counted."""
    seen: int = 0
    """Answers of that stage so far."""
    of: float = 0.0
    """Its trials."""


class _StageState(msgspec.Struct, frozen=True):
    """The trials of a stage that follow from the answers so far, and their answers."""

    stage: Stage
    trials: Sequence[Trial]
    keys: Sequence[bytes]
    found: Mapping[bytes, Found]
    responses: Mapping[int, str]
    total: float
    """Trials with all answers of earlier stages."""

    @property
    def seen(self) -> int:
        """Return how many trials have an answer."""
        return sum(key in self.found for key in self.keys)

    def halved(self) -> _StageState:
        """Return it as if every second answer had not come."""
        return msgspec.structs.replace(self, found=dict(list(self.found.items())[::2]))

    def frame(self, store: Store) -> pl.DataFrame:
        """Return the observations."""
        answers = [self.found.get(key) for key in self.keys]
        part = {
            "trial": [trial.id for trial in self.trials],
            "factors": [encode(trial.factors).decode() for trial in self.trials],
            "key": list(self.keys),
            "status": [None if answer is None else answer.status for answer in answers],
            "response": [None if answer is None else self.responses[answer.exchange_id] for answer in answers],
        }
        return gather_observations(self.stage, [pl.DataFrame(part, schema=TRIALS)], {}, store.blob)


class _Earlier(Mapping[str, pl.DataFrame]):
    """Observations by stage, which takes down what was read."""

    def __init__(self, frames: Mapping[str, pl.DataFrame]) -> None:
        self._frames = frames
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> pl.DataFrame:
        self.read.add(name)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


async def time_stages(
    catalogue: Catalogue, study: Study, store: Store, run: str, measured: Mapping[str, Came], most: int
) -> list[Grown]:
    """Return what is left to ask of each stage; of a stage that was not `measured`, at most so many are asked now."""
    adapters = await open_adapters(catalogue, study.roles.values(), None)
    limiters, instrument = Limiters(), catalogue.instrument(study)
    instrument.place({role: adapters[model] for role, model in study.roles.items()})
    for adapter in adapters.values():
        adapter.services = limiters.services(adapter, store)
    ledger = Ledger(store, get_run(store, run).id)
    try:
        work = _Work(store, ledger, limiters, most)
        for stage in instrument.stages():
            await work.see(stage, adapters[study.roles[stage.role]], measured.get(stage.name))
        return work.grown
    finally:
        await ledger.aclose()
        for adapter in adapters.values():
            await adapter.aclose()


class _Work:
    def __init__(self, store: Store, ledger: Ledger, limiters: Limiters, most: int) -> None:
        self.store, self.ledger, self.limiters, self.most = store, ledger, limiters, most
        self.states: dict[str, _StageState] = {}
        self.frames: dict[str, pl.DataFrame] = {}
        self.grown: list[Grown] = []

    async def see(self, stage: Stage, adapter: ModelAdapter, measured: Came | None) -> None:
        """Count what is left of a stage, and ask a little of it unless its pace is known."""
        came: Came = list(measured or ())
        clock = Clock(came)
        scheduler = Scheduler(
            adapter=adapter,
            ledger=self.ledger,
            model_id=await self.ledger.ensure_model(adapter.identity),
            identity=identity_digest(adapter.identity),
            on_progress=clock.update,
            limiter=self.limiters.of(adapter),
        )
        earlier = _Earlier(self.frames)
        trials = list(stage.trials(earlier))
        keyed = [scheduler.key(trial.request) for trial in trials]
        stored = await self.ledger.find([request.key for request in keyed])
        missing = list({request.key: request for request in keyed if request.key not in stored}.values())
        driver = self._driver(earlier.read)
        left, total = await self._grow(stage, scheduler, driver, len(missing), len(trials))
        asked = 0
        try:
            if missing and measured is None:
                clock.begin()
                answers = await scheduler.settle(_spread(missing, self.most))
                stored, asked = stored | answers, len(answers)
        finally:
            await scheduler.aclose()
        responses = await self.ledger.responses({request.exchange_id for request in stored.values()})
        state = _StageState(stage, trials, [request.key for request in keyed], stored, responses, total)
        self.states[stage.name], self.frames[stage.name] = state, state.frame(self.store)
        self.grown.append(
            Grown(
                stage=stage.name,
                left=None if left is None else max(0.0, left - asked),
                came=came,
                remote=adapter.endpoint is not None,
                driver="" if driver is None else driver.stage.name,
                seen=0 if driver is None else driver.seen,
                of=0.0 if driver is None else driver.total,
            )
        )

    def _driver(self, read: Iterable[str]) -> _StageState | None:
        """Return the earlier stage of which the smallest share is answered, of those that were read; None: all is."""
        cut = [state for name in read if (state := self.states[name]).seen < state.total]
        return max(cut, key=lambda state: state.total / max(1, state.seen), default=None)

    async def _grow(
        self, stage: Stage, scheduler: Scheduler, driver: _StageState | None, missing: int, trials: int
    ) -> tuple[float | None, float]:
        """Return the requests without an answer and the trials that a stage has with all answers of earlier ones."""
        if driver is None:
            return missing, trials
        if driver.seen < 2 or not trials:
            return None, trials
        half = driver.halved()
        frames = self.frames | {driver.stage.name: half.frame(self.store)}
        keys = [scheduler.key(trial.request).key for trial in stage.trials(frames)]
        fewer = len(set(keys) - (await self.ledger.find(keys)).keys())
        more = (driver.total - driver.seen) / max(1, driver.seen - half.seen)
        return missing + max(0, missing - fewer) * more, trials + max(0, trials - len(keys)) * more


class Clock:
    """Takes down when answers came."""

    def __init__(self, came: Came) -> None:
        self.came = came
        self.begin()

    def begin(self) -> None:
        """Begin with the first request."""
        self._began = time.monotonic()

    def update(self, counts: Counts) -> None:
        """Receive the counts of a stage."""
        if counts.asked and (not self.came or counts.asked > self.came[-1][1]):
            self.came.append((time.monotonic() - self._began, counts.asked))


def _spread(keyed: Sequence[Keyed], most: int) -> list[Keyed]:
    """Return at most so many, as far apart as they can be."""
    return [keyed[place * len(keyed) // most] for place in range(most)] if len(keyed) > most else list(keyed)
