"""`StageRun`: one stage of a run is asked, by single calls or in batches, and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial

import msgspec
import polars as pl

from ..catalogue.plugins import blamed
from ..catalogue.refusal_stage import RefusalStage
from ..catalogue.study import SUBJECT
from ..contracts import Stage
from ..contracts.adapter import ModelAdapter, Remark, abilities_of
from ..contracts.canonical import identity_digest
from ..contracts.errors import ReplayMissError
from ..contracts.probe import count_trials
from ..contracts.records import AnyRequest
from ..store import Store
from ..store.batches import Batches
from ..store.bulk import batched
from .asking import Settle
from .batch.options import BatchOptions, BatchRecord
from .batch.stage import BatchStage, fed, takes
from .budget import Budget
from .fitness import FitnessGuard, Remedy, ask_first, asks_first, first_trials
from .integrity.canary import Watch
from .integrity.replies import Inspector
from .ledger import Ledger
from .limiter import Limiters, describe
from .manifest import StageRecord
from .observations import observe_stage
from .progress import Counts, Progress
from .retry import RetryPolicy
from .run_options import RunOptions
from .run_record import Parts, RunRecord
from .scheduler import Scheduler
from .stopping import FailureDetector
from .windows import WINDOW, Source, Window, Windows


@dataclass
class Resources:
    """What the stages of a run share."""

    parts: Parts
    store: Store
    options: RunOptions
    progress: Progress
    budget: Budget | None
    windows: Windows = field(default_factory=Windows)
    generations: dict[AnyRequest, int] = field(default_factory=dict)
    inspectors: dict[str, Inspector] = field(default_factory=dict)
    """Of the present stage, by model."""

    def __post_init__(self) -> None:
        """Give every adapter the services of the run."""
        adapters = self.parts.adapters
        endpoints = (adapter.endpoint for adapter in adapters.values() if adapter.endpoint is not None)
        self.limiters = Limiters(self.options.longest_wait, {endpoint.name for endpoint in endpoints})
        for model, adapter in adapters.items():
            adapter.services = msgspec.structs.replace(
                self.limiters.services(adapter, self.store),
                note=partial(self._hear, model),
                generation=lambda request: self.generations.get(request, 0),
            )

    def _hear(self, model: str, remark: Remark) -> None:
        if (inspector := self.inspectors.get(model)) is not None:
            inspector.hear(remark)

    def inspector(self, model: str) -> Inspector | None:
        """Return who looks at the answers of a model in the next stage; None where it has no endpoint."""
        adapter = self.parts.adapters[model]
        self.inspectors = {}
        if adapter.endpoint is None or self.options.mode == "replay":
            return None
        watch = Watch(accept=self.options.accept_repeats)
        self.inspectors[model] = Inspector(adapter.identity.model, adapter.endpoint, watch)
        return self.inspectors[model]


class StageRun:
    """One stage of a run."""

    def __init__(self, stage: Stage, resources: Resources, record: RunRecord, ledger: Ledger) -> None:
        self._stage, self._resources, self._record, self._ledger = stage, resources, record, ledger
        self._options = resources.options
        self._model = resources.parts.study.roles[stage.role]
        self._adapter: ModelAdapter = resources.parts.adapters[self._model]
        self._limiter = resources.limiters.of(self._adapter)
        self._inspector = resources.inspector(self._model)
        self._guard = self._new_guard()

    def _new_guard(self) -> FitnessGuard | None:
        """Return who watches whether the model can do the task; None: nobody does."""
        options = self._options
        if options.keep_going or options.accept_unfit or options.mode == "replay" or options.timing:
            return None
        instrument = self._record.instrument
        if any(self._stage.name in stage.of_unread for stage in instrument.stages() if isinstance(stage, RefusalStage)):
            return None  # what cannot be read may be a refusal, which only a later stage tells
        able = abilities_of(self._adapter)
        likelihood = "likelihood" in able.operations and self._stage.role == SUBJECT
        limit = getattr(instrument.options, "max_tokens", None)
        way = instrument.by_likelihood if likelihood else ""
        return FitnessGuard(self._stage, Remedy(limit, way, base=not able.chat))

    async def ask(self, earlier: Mapping[str, pl.DataFrame], since: float) -> None:
        """Ask the stage and record its trials. `earlier` has the observations of stages before, `since` is the start.

        Raises:
            UsageError: see `execute`.
        """
        stage = self._stage
        planned = self._record.planned.get(stage.name) or count_trials(stage, earlier)
        self._resources.progress.stage(stage.name, stage.role, planned)
        scheduler = await self._scheduler(since)
        batch: BatchRecord | None = None
        try:
            await self._keep_images()
            await self._ask_first(scheduler, planned, earlier)
            if self._options.batch is not None and self._options.mode != "replay" and takes(self._adapter, stage):
                batch = await self._ask_batches(scheduler, self._options.batch, earlier)
            else:
                planned = await self._ask_parts(scheduler, planned, earlier)
                batch = await fed(self._ledger, stage.name)
        except BaseException as error:
            await scheduler.aclose()
            if isinstance(error, asyncio.CancelledError):
                self._resources.store.patience.hurry()
            if not self._options.timing:
                await self._resources.windows.record_answered()
            raise
        else:
            await scheduler.aclose()
        finally:
            pace = describe(self._limiter.take())
            self._record.add_stage(stage.name, StageRecord(planned, _plain(scheduler.counts), pace, batch), self._model)
            if self._inspector is not None:
                cached = bool(scheduler.counts.cached)
                self._record.add_findings(stage.name, stage.role, self._inspector, cached=cached)
        if scheduler.counts.missed:
            raise ReplayMissError(scheduler.counts.missed, planned)

    async def _scheduler(self, since: float) -> Scheduler:
        return Scheduler(
            adapter=self._adapter,
            ledger=self._ledger,
            model_id=await self._ledger.ensure_model(self._adapter.identity),
            identity=identity_digest(self._adapter.identity),
            mode=self._options.mode,
            since=since,
            policy=RetryPolicy(longest_seconds=self._options.longest_wait),
            detector=None
            if self._options.keep_going
            else FailureDetector(self._guard.see if self._guard is not None else None),
            on_progress=self._resources.progress.update,
            limiter=self._limiter,
            budget=self._resources.budget,
            prices=self._resources.parts.prices[self._model],
            fresh={} if self._stage.rules.attempts > 1 else None,
            inspector=self._inspector,
            generations=self._resources.generations,
        )

    async def _keep_images(self) -> None:
        if self._options.mode == "replay":
            return
        parts = self._resources.parts
        with blamed(parts.owner, f"probe {parts.study.probe!r}"):
            for data, media_type in self._stage.images():
                await self._ledger.keep(data, media_type)
                if note := self._adapter.note_on(data):
                    self._record.notes[note] += 1

    async def _ask_first(self, scheduler: Scheduler, planned: int, earlier: Mapping[str, pl.DataFrame]) -> None:
        """Ask the first trials, and stop if the model cannot do the task."""
        batch, options = self._options.batch, self._options
        if self._guard is None or not asks_first(self._stage) or options.decider is not None:
            return
        if batch is not None and batch.only:
            return
        trials = first_trials(self._stage, earlier, planned)
        if batch is not None:
            # A run that was interrupted may have them in a batch, whose answers are fetched.
            keys = [scheduler.key(trial.request).key for trial in trials]
            batches = await self._ledger.do(Batches(self._ledger.store).holding, keys)
            trials = [trial for trial, key in zip(trials, keys, strict=True) if key not in batches]
        scheduler.first = await ask_first(self._source(scheduler, scheduler.settle), trials, self._guard)

    def _source(self, scheduler: Scheduler, settle: Settle) -> Source:
        return Source(self._stage, scheduler, settle, self._options.refresh)

    async def _ask_batches(
        self, scheduler: Scheduler, options: BatchOptions, earlier: Mapping[str, pl.DataFrame]
    ) -> BatchRecord:
        """Ask in batches until all answers are stored, then record the trials."""

        def windows(settle: Settle) -> Iterator[Window]:
            ordinal = 0
            for trials in batched(self._stage.trials(earlier), WINDOW):
                yield Window(self._source(scheduler, settle), ordinal, trials)
                ordinal += len(trials)

        batches = BatchStage(
            self._stage, scheduler, windows, options, self._model, self._record.name, self._options.keep_going
        )
        batches.own |= scheduler.first
        await batches.settle()
        source = self._source(scheduler, batches.collect)
        await self._resources.windows.ask(source, self._stage.trials(earlier))
        before = self._record.recorded.get(self._stage.name)
        return await batches.record(before.batch if before is not None else None)

    async def _ask_parts(self, scheduler: Scheduler, planned: int, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Ask by single calls, part by part where a decider may end the stage; return the number of its trials."""
        stage, windows = self._stage, self._resources.windows
        source = self._source(scheduler, scheduler.settle)
        if (decider := self._options.decider) is None:
            await windows.ask(source, stage.trials(earlier))
            return planned
        asked = 0
        for trials in decider.parts(stage, earlier):
            asked = await windows.ask(source, trials, asked)
            observations = observe_stage(self._resources.store, self._ledger.run_id, stage)
            if decider.decided(observations, asked):
                break
        return asked


def _plain(counts: Counts) -> dict[str, float | int | None]:
    return {name: value for name, value in asdict(counts).items() if name not in ("waiting_until", "batched")}
