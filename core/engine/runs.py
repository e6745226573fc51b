"""A run: the trials of a study are asked, and recorded in plan order within a bounded window."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple, get_args

import msgspec
import polars as pl

from ..catalogue.needs import ensure_asked, ensure_suitable
from ..catalogue.origins import Origin, origins
from ..catalogue.packages import adapter_packages
from ..catalogue.plugins import blamed
from ..catalogue.prices import Prices
from ..catalogue.study import Catalogue, Instrument, Study
from ..contracts import Stage, Trial, Unreadable
from ..contracts.adapter import ModelAdapter, Remark
from ..contracts.canonical import decode_response, encode, identity_digest
from ..contracts.errors import (
    BudgetError,
    HaltedError,
    PendingError,
    ReplayMissError,
    StoreError,
    UnknownNameError,
    UsageError,
)
from ..contracts.probe import count_trials
from ..contracts.records import AnyRequest, AnyResponse
from ..contracts.words import counted
from ..store import Found, NewTrial, Store, ensure_recorded, get_run, renewed_answers, trial_counts
from ..store.bulk import batched
from ..store.earlier_answers import EarlierAnswers, earlier_answers
from ..store.reading import TIMED
from ..store.signatures import ensure_able, sign_run
from ..workers.options import WorkerOptions
from ..workers.remote import open_adapters
from .asking import Keyed
from .batch.options import BatchOptions, BatchRecord
from .batch.stage import BatchStage, ensure_batches, fed, takes
from .budget import Budget, Caps, ensure_priced
from .collector import spared
from .counts import Counts
from .ending import Decider, Ending
from .foreign import maker_of
from .integrity.canary import Watch
from .integrity.records import ALIKE, Integrity
from .integrity.records import add_up as add_findings
from .integrity.replies import Inspector
from .ledger import Ledger
from .limiter import Limiters, describe
from .manifest import (
    Earlier,
    Manifest,
    StageRecord,
    add_up,
    as_made,
    describe_machine,
    digest_data,
    drawn_alike,
    find_earlier,
    new_name,
    set_settings,
    with_removed,
    with_versions,
)
from .observations import observe_stage
from .progress import Progress, Silent
from .reading import Outcome, outcomes_of, read_answer
from .retry import LONGEST_SECONDS, RetryPolicy
from .roles import ensure_set_up
from .same_models import ensure_same_models
from .scheduler import Mode, Scheduler
from .wall import Wall

LOG = logging.getLogger(__name__)
WINDOW = 4096
"""Trials planned at a time."""
OPEN_WINDOWS = 2
"""Number of windows at a time: the next one uses slots that are free while the last requests of this one run."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a run."""

    mode: Mode = "use"
    name: str | None = None
    """Name of the run to resume; None: a new run."""
    command: str = ""
    """The command line, for the manifest."""
    caps: Caps = Caps()
    """Limits of what may be spent from now on."""
    refresh: tuple[Outcome, ...] = ()
    """Outcomes whose stored answers are asked anew."""
    keep_going: bool = False
    """Whether to go on where all requests meet the same fault."""
    longest_wait: float = LONGEST_SECONDS
    """Seconds that an endpoint may ask for; it stops the run if it asks for more again."""
    accept_repeats: bool = False
    """Whether to ask an endpoint that repeats itself where draws must differ; each prompt then counts as one draw."""
    batch: BatchOptions | None = None
    """How to ask in batches of the provider; None: by single calls."""
    workers: WorkerOptions | None = None
    """Processes that ask the models of this machine; None: this one."""
    timing: bool = False
    """Whether the run is only begun to time the study, see `timing.py`: it ends as such a run."""
    sign: str | None = None
    """The SSH key with which the finished run is signed; None: it is not."""
    decider: Decider | None = None
    """Says what is asked before each look, and whether the run may end; None: all is asked."""

    def __post_init__(self) -> None:
        """Refuse outcomes to refresh in another mode than `use`."""
        if unknown := [name for name in self.refresh if name not in get_args(Outcome)]:
            raise UnknownNameError("outcome", unknown[0], get_args(Outcome))
        if self.refresh and self.mode != "use":
            raise UsageError(
                f"the mode {self.mode!r} asks all requests or none, and cannot refresh answers that are "
                f"{' or '.join(self.refresh)}. Leave one of the two out.",
                code="run.refresh",
            )


async def execute(
    catalogue: Catalogue,
    study: Study,
    store: Store,
    options: RunOptions,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> str:
    """Run a study and return the run's name, signed if the options say so. All answers are stored, also if it fails.

    `budget` is one that several runs share; None: a new one, of the options' limits.

    Raises:
        UsageError: the study cannot be run, its design is empty, or a model of the run to resume has changed since, or
            the key cannot sign; nothing was asked.
        DataError: the record of the run to resume is not as it was stored.
        ReplayMissError: requests of a `replay` have no stored answer.
        BudgetError: the budget is spent; the run can be resumed.
        PendingError: the run is not to wait for its batches; it can be resumed.
        HaltedError: all requests meet the same fault, or the endpoint is down; the run can be resumed.
        ModelError: the model refuses the key or account.
    """
    if options.sign is not None:
        ensure_able(options.sign)
    name = await _executed(catalogue, study, store, options, progress, budget)
    if options.sign is not None:
        _sign(store, name, options.sign)
    return name


def _sign(store: Store, name: str, key: str) -> None:
    try:
        sign_run(store, get_run(store, name), key)
    except UsageError as error:
        raise UsageError(
            f"the run {name} is finished and stored, but is not signed: {error} To sign it: prejudge resume {name} "
            "--sign KEY",
            code=error.code,
        ) from None


async def _executed(
    catalogue: Catalogue,
    study: Study,
    store: Store,
    options: RunOptions,
    progress: Progress | None,
    budget: Budget | None,
) -> str:
    if options.name is not None:
        store.ensure_free(options.name)  # before a model is loaded; `begin_run` decides
    earlier = find_earlier(store, options.name, study)
    if options.name is not None:
        ensure_recorded(store, options.name)  # its trials are recorded anew, its manifest is gone on with
    instrument = catalogue.instrument(study if earlier is None else as_made(catalogue, earlier.manifest))
    ensure_suitable(catalogue, study, instrument)
    prices = {model: catalogue.registry.model(model).prices for model in study.roles.values()}
    ensure_priced(options.caps, prices)
    owner = catalogue.plugins.offers["probe"][study.probe].plugin
    workers = options.workers if options.mode != "replay" else None
    adapters = await open_adapters(catalogue, study.roles.values(), workers)
    try:
        if earlier is not None and _is_of_others(earlier, study, adapters):
            return earlier.row.name
        ensure_set_up(study, instrument.stages(), adapters)
        if options.batch is not None:
            ensure_batches(study, instrument.stages(), adapters)
        packages = {model: adapter_packages(catalogue, [model]) for model in study.roles.values()}
        parts = _Parts(study, instrument, adapters, owner, prices, origins(catalogue, study), packages)
        run = _Run(parts, store, options, progress or Silent(), budget)
        run.maker = maker_of(catalogue, run.name, study)
        with spared():
            return await run.execute()
    finally:
        for adapter in adapters.values():
            await adapter.aclose()


def _is_of_others(earlier: Earlier, study: Study, adapters: Mapping[str, ModelAdapter]) -> bool:
    """Return whether a complete run, of which nothing is left to ask, asked models that have changed since.

    Raises:
        UsageError: they have changed, and the run is not complete.
    """
    identities = {role: adapters[model].identity for role, model in study.roles.items()}
    try:
        why = "so its answers would be those of two models"
        ensure_same_models(earlier.manifest, identities, "run.other-model", why)
    except UsageError:
        if earlier.complete:
            return True
        raise
    return False


class _Parts(NamedTuple):
    """The parts of a run."""

    study: Study
    instrument: Instrument
    adapters: Mapping[str, ModelAdapter]
    """By model."""
    owner: str
    """The plugin of the probe."""
    prices: Mapping[str, Prices]
    """By model."""
    origins: dict[str, Origin]
    """Packages of third-party parts."""
    packages: Mapping[str, Mapping[str, str]]
    """By model: versions of the packages of its adapter."""


class _Run:
    def __init__(
        self, parts: _Parts, store: Store, options: RunOptions, progress: Progress, budget: Budget | None = None
    ) -> None:
        self.study, self.instrument, self.adapters, self.owner, self.prices, self.origins, self.packages = parts
        endpoints = (adapter.endpoint for adapter in self.adapters.values() if adapter.endpoint is not None)
        self.limiters = Limiters(options.longest_wait, {endpoint.name for endpoint in endpoints})
        self.budget = budget or (Budget(options.caps) if options.caps.any else None)
        self.inspectors: dict[str, Inspector] = {}
        """Of the present stage, by model."""
        self.generations: dict[AnyRequest, int] = {}
        for model, adapter in self.adapters.items():
            services = self.limiters.services(adapter, store)
            own = {"note": partial(self._hear, model), "generation": lambda request: self.generations.get(request, 0)}
            adapter.services = msgspec.structs.replace(services, **own)
        self.store, self.options, self.progress = store, options, progress
        self.records: dict[str, StageRecord] = {}
        self.integrity: dict[str, Integrity] = {}
        self.planned: dict[str, int] = {}
        self.earlier: dict[str, pl.DataFrame] = {}
        self.unsettled: list[_Window] = []
        """Windows that were begun; settled ones leave the list when the next one is begun."""
        self.name = options.name or new_name(self.study.name, self.study.roles.get("subject", "model"))
        self.before = find_earlier(store, options.name, self.study)
        self.recorded = self.before.manifest.stages if self.before is not None else {}
        self.since = 0.0
        """Time at which the run was begun first."""
        self.maker = ""
        """See `Manifest`."""
        self.called: set[str] = set()
        """The models that were asked anything."""
        self.notes: Counter[str] = Counter()
        """What a reader needs to know of the material: the stages' own, and of how many images a model's."""

    async def execute(self) -> str:
        first = self.instrument.stages()[0]
        # Planning reads the data, so errors in it are found before the store has a record of the run.
        with blamed(self.owner, f"probe {self.study.probe!r}"):
            self.planned = {first.name: count_trials(first, {})}
            self.notes.update(dict.fromkeys(self.study.notes, 0))
            self.notes.update(dict.fromkeys((note for stage in self.instrument.stages() for note in stage.notes()), 0))
            ensure_asked(self.study, first, self.planned[first.name])
        if self.before is not None:
            self.integrity = dict(self.before.manifest.integrity)
        base = self._manifest()
        self.records = self.recorded | {
            name: add_up(self.recorded, name, StageRecord(planned)) for name, planned in self.planned.items()
        }
        begun = encode(msgspec.structs.replace(base, stages=self.records, timing=self.options.timing))
        earlier = None if self.before is None else self.before.row.manifest
        run_id = self.store.begin_run(self.name, self.study.name, begun, earlier)
        self.progress.begin(self.name)
        ledger, self.since = Ledger(self.store, run_id, self.limiters), get_run(self.store, self.name).started
        state = "failed"
        try:
            await ledger.join()
            await self._stages(ledger)
            self._ensure_recorded(run_id)
            state = "finished"
        except asyncio.CancelledError:
            state = "interrupted"
            self.store.patience.hurry()  # nobody waits for a server that is away to record the interruption
            raise
        except (BudgetError, HaltedError, PendingError):
            state = "interrupted"
            raise
        finally:
            await ledger.aclose()
            self._end(run_id, TIMED if self.options.timing else state, base)
        return self.name

    def _ensure_recorded(self, run_id: int) -> None:
        """Refuse to call a run finished of which the store has fewer trials, or more, than were planned."""
        recorded = trial_counts(self.store, run_id)
        for name, record in self.records.items():
            if (count := recorded.get(name, 0)) != record.planned:
                raise HaltedError(
                    f"the run is not complete: {count:,} of {counted(record.planned, 'planned trial')} of the stage "
                    f"{name!r} are recorded. Where resuming it changes nothing, the probe {self.study.probe!r} counts "
                    "other trials than it gives.",
                    code="run.incomplete",
                )

    def _end(self, run_id: int, state: str, base: Manifest) -> None:
        """Record the end of the run; if nothing was asked, its earlier record stays unchanged."""
        notes = (*(_told(*item) for item in self.notes.items()), *_estimated(self.records))
        base = msgspec.structs.replace(
            base,
            stages=self.records,
            integrity=self.integrity,
            notes=notes,
            renewed=renewed_answers(self.store, run_id),
            earlier=self._earlier_answers(run_id),
            ending=self._ending,
            **describe_machine(self._packages(self.called)),
        )
        if self.before is not None:
            base = msgspec.structs.replace(base, packages=with_versions(self.before.manifest.packages, base.packages))
        before, manifest = self.before, encode(base)
        if self.called or before is None:
            self.store.end_run(run_id, state, manifest)
            return
        if before.done and state == "finished":
            manifest = before.row.own.encode()
        self.store.end_run(run_id, state, manifest, before.row.finished)

    def _packages(self, models: Iterable[str]) -> dict[str, str]:
        return {name: number for model in models for name, number in self.packages[model].items()}

    def _earlier_answers(self, run_id: int) -> EarlierAnswers | None:
        resumed, counts = self.before is not None, [record.counts for record in self.records.values()]
        if not resumed and not any(count.get("cached") for count in counts):
            return None  # nothing was taken from the store: no need to search it
        now = earlier_answers(self.store, run_id)
        return now if self.before is None else with_removed(self.before.manifest.earlier, now)

    async def _stages(self, ledger: Ledger) -> None:
        stages = self.instrument.stages()
        for stage in stages:
            await self._stage(stage, ledger)
            if stage is not stages[-1]:
                self.earlier[stage.name] = observe_stage(self.store, ledger.run_id, stage)

    async def _stage(self, stage: Stage, ledger: Ledger) -> None:
        planned = self.planned.get(stage.name) or count_trials(stage, self.earlier)
        self.progress.stage(stage.name, stage.role, planned)
        model = self.study.roles[stage.role]
        adapter = self.adapters[model]
        inspector = self._inspector(adapter)
        self.inspectors = {} if inspector is None else {model: inspector}
        scheduler = Scheduler(
            adapter=adapter,
            ledger=ledger,
            model_id=await ledger.ensure_model(adapter.identity),
            identity=identity_digest(adapter.identity),
            mode=self.options.mode,
            since=self.since,
            policy=RetryPolicy(longest_seconds=self.options.longest_wait),
            wall=None if self.options.keep_going else Wall(stage.read),
            on_progress=self.progress.update,
            limiter=(limiter := self.limiters.of(adapter)),
            budget=self.budget,
            prices=self.prices[model],
            fresh={} if stage.rules.attempts > 1 else None,
            inspector=inspector,
            generations=self.generations,
        )
        batch: BatchRecord | None = None
        try:
            await self._keep_images(stage, adapter, ledger)
            if self.options.batch is not None and self.options.mode != "replay" and takes(adapter, stage):
                batches = self._batches(stage, scheduler, self.options.batch)
                await self._windows(stage, await batches.settle(), stage.trials(self.earlier))
                before = self.recorded.get(stage.name)
                batch = await batches.record(before.batch if before is not None else None)
            else:
                planned = await self._parts(stage, scheduler, planned)
                batch = await fed(ledger, stage.name)
        except BaseException as error:
            await scheduler.aclose()
            await self._record_answered(error)
            raise
        else:
            await scheduler.aclose()
        finally:
            now = StageRecord(planned, _record(scheduler.counts), describe(limiter.take()), batch)
            self.records[stage.name] = add_up(self.recorded, stage.name, now)
            if any(now.counts[name] for name in ("asked", "failed", "retried", "canary")):
                self.called.add(model)
            if inspector is not None:
                self._conclude(stage, inspector, cached=bool(scheduler.counts.cached))
        if scheduler.counts.missed:
            raise ReplayMissError(scheduler.counts.missed, planned)

    def _inspector(self, adapter: ModelAdapter) -> Inspector | None:
        if adapter.endpoint is None or self.options.mode == "replay":
            return None
        return Inspector(adapter.identity.model, adapter.endpoint, Watch(accept=self.options.accept_repeats))

    def _hear(self, model: str, remark: Remark) -> None:
        if (inspector := self.inspectors.get(model)) is not None:
            inspector.hear(remark)

    def _conclude(self, stage: Stage, inspector: Inspector, *, cached: bool) -> None:
        """Record what was found out about the endpoint of a stage."""
        found = inspector.result()
        if found.canary is not None and found.canary.verdict == "alike":
            repeated = ALIKE if self.options.accept_repeats else ""
        else:
            identity = self.adapters[self.study.roles[stage.role]].identity
            repeated = drawn_alike(self.store, self.name, identity) if cached else ""
        found = msgspec.structs.replace(found, repeated=repeated)
        self.integrity[stage.name] = add_findings(self.integrity.get(stage.name), found)

    async def _keep_images(self, stage: Stage, adapter: ModelAdapter, ledger: Ledger) -> None:
        if self.options.mode == "replay":
            return
        with blamed(self.owner, f"probe {self.study.probe!r}"):
            for data, media_type in stage.images():
                await ledger.keep(data, media_type)
                if note := adapter.note_on(data):
                    self.notes[note] += 1

    def _batches(self, stage: Stage, scheduler: Scheduler, options: BatchOptions) -> BatchStage:
        reading, model = _Reading(stage, self.options.refresh), self.study.roles[stage.role]

        def windows(survey: Scheduler) -> Iterator[_Window]:
            ordinal = 0
            for trials in batched(stage.trials(self.earlier), WINDOW):
                yield _Window(reading, survey, ordinal, trials)
                ordinal += len(trials)

        return BatchStage(stage, scheduler, windows, options, model, self.name, self.options.keep_going)

    async def _parts(self, stage: Stage, scheduler: Scheduler, planned: int) -> int:
        """Ask a stage, part by part where a decider may end it; return the number of its trials."""
        if (decider := self.options.decider) is None:
            await self._windows(stage, scheduler, stage.trials(self.earlier))
            return planned
        asked = 0
        for trials in decider.parts(stage, self.earlier):
            asked = await self._windows(stage, scheduler, trials, asked)
            seen = observe_stage(self.store, scheduler.ledger.run_id, stage)
            if decider.decided(seen, asked):
                break
        return asked

    async def _windows(self, stage: Stage, scheduler: Scheduler, planned: Iterable[Trial], ordinal: int = 0) -> int:
        """Ask trials, the first of which is number `ordinal` of its stage; return the number of the next one."""
        under_way: deque[asyncio.Task[None]] = deque()
        try:
            for trials in batched(planned, WINDOW):
                window = _Window(_Reading(stage, self.options.refresh), scheduler, ordinal, trials)
                self.unsettled = [*(other for other in self.unsettled if not other.settled), window]
                under_way.append(asyncio.create_task(window.settle()))
                ordinal += len(trials)
                if len(under_way) == OPEN_WINDOWS:
                    await under_way.popleft()
            while under_way:
                await under_way.popleft()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        return ordinal

    async def _record_answered(self, error: BaseException) -> None:
        """Record the answered trials of the windows that an error ended, so that an unfinished run can be scored."""
        if self.options.timing:
            return
        if isinstance(error, asyncio.CancelledError):
            self.store.patience.hurry()
        try:
            for window in self.unsettled:
                await window.look_up()
            # Without an answer in it, a window has a record only if a later one has, since trials are numbered.
            while self.unsettled and not self.unsettled[-1].found:
                self.unsettled.pop()
            for window in self.unsettled:
                await window.record()
        except StoreError as lost:
            LOG.warning("the answers are stored, and are recorded as those of this run when it is resumed: %s", lost)

    @property
    def _ending(self) -> Ending | None:
        return None if self.options.decider is None else self.options.decider.ending

    def _manifest(self) -> Manifest:
        return Manifest(
            run=self.name,
            study=self.study,
            identities={role: self.adapters[model].identity for role, model in self.study.roles.items()},
            settings={role: found for role, m in self.study.roles.items() if (found := set_settings(self.adapters[m]))},
            data=digest_data(msgspec.structs.asdict(self.instrument.options)),
            options=self.instrument.every_option,
            origins=self.origins,
            mode=self.options.mode,
            refresh=self.options.refresh,
            batch=self.options.batch,
            ending=self._ending,
            command=self.options.command,
            maker=self.maker,
            **describe_machine(self._packages(self.packages)),
        )


def _estimated(records: Mapping[str, StageRecord]) -> tuple[str, ...]:
    """Return a note if the cost of answers is an estimate."""
    count = sum(int(record.counts.get("estimated") or 0) for record in records.values())
    return (f"{counted(count, 'answer')} without a credible count of tokens, charged as estimated",) if count else ()


def _record(counts: Counts) -> dict[str, float | int | None]:
    return {name: value for name, value in asdict(counts).items() if name not in ("waiting_until", "batched")}


def _told(note: str, images: int) -> str:
    return f"{counted(images, 'image')}: {note}" if images else note


class _Reading(NamedTuple):
    """How the answers of a stage are read, and which are asked again."""

    stage: Stage
    refresh: tuple[Outcome, ...]


class _Window:
    """Consecutive trials of a stage, in plan order from `ordinal` on."""

    def __init__(self, reading: _Reading, scheduler: Scheduler, ordinal: int, trials: list[Trial]) -> None:
        self.stage, self.refresh = reading
        self.scheduler, self.ordinal, self.trials = scheduler, ordinal, trials
        self.keyed: list[Keyed] = [scheduler.key(trial.request) for trial in trials]
        self.found: dict[bytes, Found] = {}
        self.earlier: dict[int, list[bytes]] = {}
        """By place, digests of the answers to attempts that were followed by another."""
        self.settled = False
        """Whether each trial was answered, or failed finally, and is recorded."""
        self.fresh = scheduler.fresh if scheduler.fresh is not None else {}

    async def settle(self) -> None:
        await self.answer()
        for found in self.found.values():
            self.fresh.pop(found.exchange_id, None)
        await self.scheduler.ledger.add_trials(self._rows())
        self.settled = True
        self.scheduler.counts.trials += len(self.trials)
        self.scheduler.on_progress(self.scheduler.counts)

    async def look_up(self) -> None:
        """Find the answers that the store has, where waiting for them was ended."""
        if self.settled:
            return
        since = self.scheduler.since if self.scheduler.mode == "refresh" else None
        places = list(range(len(self.keyed)))
        while places:
            self.found |= await self.scheduler.ledger.find([self.keyed[place].key for place in places], since)
            # A trial that was to be asked again has the answer of the attempt before.
            places = [place for place in places if self.keyed[place].key not in self.found and self._attempt(place)]
            for place in places:
                self.earlier[place].pop()
                request = msgspec.structs.replace(self.trials[place].request, attempt=self._attempt(place) - 1)
                self.keyed[place] = self.scheduler.key(request)

    def _attempt(self, place: int) -> int:
        return self.keyed[place].request.attempt if self.stage.rules.attempts > 1 else 0

    async def record(self) -> None:
        """Record the trials with the answers that were found; one without an answer and a failure was not asked."""
        if not self.settled:
            await self.scheduler.ledger.add_trials(self._rows(), again=True)
            self.scheduler.counts.trials += len(self.found)

    async def answer(self) -> None:
        """Find the answers of the trials: stored ones, or those that the scheduler asks for."""
        await self._ask(range(len(self.trials)))
        for attempt in range(1, self.stage.rules.attempts):
            if not (unanswered := await self._unanswered(attempt - 1)):
                break
            for place in unanswered:
                self.earlier.setdefault(place, []).append(self.found[self.keyed[place].key].digest or b"")
                request = msgspec.structs.replace(self.trials[place].request, attempt=attempt)
                self.keyed[place] = self.scheduler.key(request)
            await self._ask(unanswered)
        await self._renew()

    async def _renew(self) -> None:
        """Ask anew, once, for the answers that have an outcome to refresh and are older than the run."""
        if not self.refresh:
            return
        last = {place: self.found[keyed.key] for place, keyed in enumerate(self.keyed) if keyed.key in self.found}
        old = await self.scheduler.ledger.older({found.exchange_id for found in last.values()}, self.scheduler.since)
        responses = await self._responses(old)
        anew: dict[bytes, str] = {}
        for place, found in last.items():
            if found.exchange_id in old:
                outcomes = outcomes_of(self.stage, self.trials[place].factors, responses[found.exchange_id])
                if chosen := next((one for one in self.refresh if one in outcomes), None):
                    anew[self.keyed[place].key] = chosen
        await self._ask([place for place, keyed in enumerate(self.keyed) if keyed.key in anew], anew)

    async def _ask(self, places: Sequence[int], anew: Mapping[bytes, str] | None = None) -> None:
        trials = {self.keyed[place].key: self.trials[place] for place in places}
        wall = self.scheduler.wall
        if wall is not None:
            wall.expect(trials)
        requests = [self.keyed[place] for place in places]
        found = await self.scheduler.settle(requests, anew)
        for keyed in requests:
            self.found.pop(keyed.key, None)  # where it failed, there is no answer
        self.found |= found
        if wall is not None:
            wall.forget(trials)

    async def _unanswered(self, attempt: int) -> list[int]:
        """Return the trials that are asked again, because this attempt has no answer."""
        latest = {
            place: self.found[keyed.key]
            for place, keyed in enumerate(self.keyed)
            if keyed.request.attempt == attempt and keyed.key in self.found
        }
        responses = await self._responses({found.exchange_id for found in latest.values()})
        return [place for place, found in latest.items() if self._asks_again(place, responses[found.exchange_id])]

    async def _responses(self, exchanges: set[int]) -> dict[int, AnyResponse]:
        """Return answers: new ones from memory, others from the store."""
        given = {number: self.fresh[number] for number in exchanges if number in self.fresh}
        if not (others := exchanges - given.keys()):
            return given
        stored = await self.scheduler.ledger.responses(others)
        return given | {number: decode_response(response) for number, response in stored.items()}

    def _asks_again(self, place: int, response: AnyResponse) -> bool:
        """Return whether a response has no answer, and the stage asks again for its status."""
        again = self.stage.rules.again
        if response.status not in ("ok", *again):
            # Nothing is asked, whatever can be read.
            return False
        found = read_answer(self.stage, self.trials[place].factors, response)
        return "unreadable" in again if isinstance(found, Unreadable) else found is None

    def _rows(self) -> list[NewTrial]:
        run, stage = self.scheduler.ledger.run_id, self.stage.name
        rows = []
        for place, (trial, keyed) in enumerate(zip(self.trials, self.keyed, strict=True)):
            answer = self.found.get(keyed.key)
            earlier = b"".join(self.earlier.get(place, ())) if answer is not None else b""
            factors = encode(trial.factors).decode()
            rows.append(NewTrial(run, stage, self.ordinal + place, trial.id, factors, keyed.key, answer, earlier))
        return rows
