"""Ask a fixed sample of a run's requests again, to test whether the answers have changed.

New answers are stored under a separate model: the identity of the run's model with the name of the recheck among its
settings. So keys differ, every key can be derived again, and no later run uses these answers. The recheck is a run in
the store; `latest` never refers to it.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from ..catalogue.packages import adapter_packages
from ..catalogue.plugins import blamed
from ..catalogue.study import Catalogue
from ..contracts import Stage, Unreadable
from ..contracts.adapter import Identity, ModelAdapter
from ..contracts.canonical import decode_request, decode_response, encode, identity_digest
from ..contracts.errors import DataError, UsageError
from ..contracts.records import AnyResponse, Scalar
from ..engine.foreign import ensure_own
from ..engine.ledger import Ledger
from ..engine.limiter import Limiters
from ..engine.manifest import (
    IMPORTED,
    PUBLISHED,
    Manifest,
    StageRecord,
    as_made,
    describe_machine,
    manifest_of,
    new_name,
)
from ..engine.reading import as_read, read_answer
from ..engine.roles import ensure_same_models
from ..engine.scheduler import Scheduler
from ..store import NewTrial, RunProof, RunRow, Store, finish_proof, get_run, list_runs
from ..store.bulk import table_of
from ..store.reachable import READ
from ..store.reading import RECHECK
from ..store.snapshots import snapshot
from ..store.tables import RunTrial
from ..workers.options import WorkerOptions
from ..workers.remote import open_adapters
from .drift import Drift, Outcomes, Pair, compare

SETTING = "recheck"


class RecheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The sample to ask again, and what counts as a change."""

    sample: int = 100
    """Number of trials over all stages; fewer if the run has fewer."""
    seed: int = 0
    """Seed of the sample."""
    tolerance: float = 1e-4
    """Numbers that differ by at most this count as equal."""
    name: str | None = None
    """Name of a recheck to resume; None starts a new one."""
    command: str = ""
    workers: WorkerOptions | None = None
    """Processes that ask the models of this machine; None: this one."""

    def __post_init__(self) -> None:
        """Refuse a sample without trials."""
        if self.sample < 1:
            raise UsageError(f"--sample is {self.sample}. Ask at least 1 trial again.", code="options.value")


class Rechecked(NamedTuple):
    """The result of a recheck."""

    name: str
    drift: Drift


class _Chosen(NamedTuple):
    """A trial that is asked again."""

    stage: str
    ordinal: int
    trial: str
    factors: str
    exchange: int


async def recheck(catalogue: Catalogue, store: Store, run_name: str, options: RecheckOptions) -> Rechecked:
    """Ask a sample of a run's requests again and compare the answers.

    Raises:
        UsageError: the run did not ask a model here, or the model has changed since.
        DataError: the run is not as it was stored.
        ModelError: the model refuses the key or account.
    """
    run = get_run(store, run_name)
    # The sample follows from all trials, so that none of them may have been changed.
    finish_proof(store, run.id, RunProof(store, run))
    work = _Recheck(catalogue, store, run, options)
    await work.open()
    try:
        work.ensure_same_models()
        return await work.perform()
    finally:
        for adapter in set(work.adapters.values()):
            await adapter.aclose()


class _Recheck:
    def __init__(self, catalogue: Catalogue, store: Store, run: RunRow, options: RecheckOptions) -> None:
        self._store, self._run, self._options = store, run, options
        self._manifest = manifest_of(run)
        if self._manifest.mode in (IMPORTED, PUBLISHED, SETTING):
            raise UsageError(
                f"run {run.name} has no model here ({self._manifest.mode}), so it cannot be rechecked.",
                code="run.no-model",
            )
        ensure_own(catalogue, store, self._manifest)
        study = as_made(catalogue, self._manifest)
        self._owner = catalogue.plugins.offers["probe"][study.probe].plugin
        self._instrument = catalogue.instrument(study)
        self._stages = {stage.name: stage for stage in self._instrument.stages()}
        self._catalogue, self._roles = catalogue, study.roles
        self.adapters: dict[str, ModelAdapter] = {}
        """By role."""
        self._name = options.name or new_name(SETTING, run.name)
        self._limiters = Limiters()

    async def open(self) -> None:
        """Make the adapters."""
        made = await open_adapters(self._catalogue, self._roles.values(), self._options.workers)
        self.adapters = {role: made[model] for role, model in self._roles.items()}
        self._instrument.place(self.adapters)
        # A cache in front of the model must not answer with what it answered then.
        again = 1 + int.from_bytes(hashlib.sha256(self._name.encode()).digest()[:4], "big")
        for adapter in made.values():
            services = self._limiters.services(adapter, self._store)
            adapter.services = msgspec.structs.replace(services, generation=lambda request: again)

    def ensure_same_models(self) -> None:
        """Refuse models that differ from those that the run asked."""
        identities = {role: adapter.identity for role, adapter in self.adapters.items()}
        why = "so its answers cannot show drift"
        ensure_same_models(self._manifest, identities, "recheck.other-model", why)

    async def perform(self) -> Rechecked:
        chosen = choose(self._store, self._run, self._options)
        study = f"{RECHECK}{self._run.name}"
        _ensure_own_name(self._store, self._name, study)
        run_id = self._store.begin_run(self._name, study, encode(self._record(chosen)))
        ledger, state, pairs = Ledger(self._store, run_id), "interrupted", list[Pair]()
        try:
            for name, stage in self._stages.items():
                pairs += await self._stage(stage, [trial for trial in chosen if trial.stage == name], ledger)
            state = "finished"
        finally:
            await ledger.aclose()
            self._store.end_run(run_id, state, encode(self._record(chosen)))
        return Rechecked(self._name, compare(pairs, self._options.tolerance))

    async def _stage(self, stage: Stage, chosen: list[_Chosen], ledger: Ledger) -> list[Pair]:
        if not chosen:
            return []
        adapter = self.adapters[stage.role]
        identity = self._identity(adapter)
        scheduler = Scheduler(
            adapter=adapter,
            ledger=ledger,
            model_id=await ledger.ensure_model(identity),
            identity=identity_digest(identity),
            limiter=self._limiters.of(adapter),
        )
        stored = {i: (q, r) for i, q, r in self._store.exchanges({trial.exchange for trial in chosen})}
        keyed = [scheduler.key(decode_request(stored[trial.exchange][0])) for trial in chosen]
        try:
            found = await scheduler.settle(keyed)
        finally:
            await scheduler.aclose()
        rows = [
            NewTrial(ledger.run_id, trial.stage, trial.ordinal, trial.trial, trial.factors, k.key, found.get(k.key))
            for trial, k in zip(chosen, keyed, strict=True)
        ]
        numbers = [None if row.answer is None else row.answer.exchange_id for row in rows]
        await ledger.add_trials(rows)
        now = self._store.responses({number for number in numbers if number is not None})
        return [
            self._pair(stage, trial, decode_response(stored[trial.exchange][1]), now.get(number) if number else None)
            for trial, number in zip(chosen, numbers, strict=True)
        ]

    def _pair(self, stage: Stage, trial: _Chosen, before: AnyResponse, now: str | None) -> Pair:
        factors = msgspec.json.decode(trial.factors, type=dict[str, Scalar])
        before = as_read(before)
        after = as_read(decode_response(now)) if now is not None else None
        with blamed(self._owner, f"stage {stage.name!r}"):
            read = [{} if one is None else _read(stage, factors, one) for one in (before, after)]
        return Pair(stage.name, before, after, (read[0], read[1]))

    def _identity(self, adapter: ModelAdapter) -> Identity:
        settings = adapter.identity.settings | {SETTING: self._name}
        return msgspec.structs.replace(adapter.identity, settings=settings)

    def _record(self, chosen: list[_Chosen]) -> Manifest:
        planned = {name: sum(trial.stage == name for trial in chosen) for name in self._stages}
        drawn = f"sample {self._options.sample}, seed {self._options.seed}"
        notes = f"A sample of the run {self._run.name}, asked again ({drawn})."
        return msgspec.structs.replace(
            self._manifest,
            run=self._name,
            identities={role: self._identity(adapter) for role, adapter in self.adapters.items()},
            stages={name: StageRecord(number) for name, number in planned.items()},
            notes=(notes,),
            mode=SETTING,
            earlier=None,
            command=self._options.command,
            **describe_machine(adapter_packages(self._catalogue, self._roles.values())),
        )


def choose(store: Store, run: RunRow, options: RecheckOptions) -> list[_Chosen]:
    """Return the sample: of the trials that were answered, those whose digests with the seed are the smallest.

    Trials that share one answer count once. The sample does not depend on a library's random numbers, and a larger
    sample includes a smaller one.

    Raises:
        DataError: the run has no answers.
    """
    trials = table_of(RunTrial)
    answered = (
        sa.select(trials.c.stage, sa.func.min(trials.c.ordinal), trials.c.exchange_id)
        .where(trials.c.run_id == run.id, trials.c.exchange_id.is_not(None))
        .group_by(trials.c.stage, trials.c.exchange_id)
    )
    with snapshot(store) as connection:
        rows = connection.execute(answered, execution_options={"yield_per": READ})
        least = heapq.nsmallest(options.sample, ((_rank(options.seed, row[0], row[1]), *row) for row in rows))
        places = sa.tuple_(trials.c.stage, trials.c.ordinal).in_([(stage, ordinal) for _, stage, ordinal, _ in least])
        columns = (trials.c.stage, trials.c.ordinal, trials.c.trial, trials.c.factors, trials.c.exchange_id)
        chosen = sa.select(*columns).where(trials.c.run_id == run.id, places).order_by(*columns[:2])
        found = [_Chosen(*row) for row in connection.execute(chosen)] if least else []
    if not found:
        raise DataError(f"run {run.name} has no answers to ask for again.", code="run.no-answers")
    return found


def _rank(seed: int, stage: str, ordinal: int) -> bytes:
    return hashlib.sha256(f"{seed}|{stage}|{ordinal}".encode("utf-8", "surrogatepass")).digest()


def _ensure_own_name(store: Store, name: str, study: str) -> None:
    """Refuse to start a recheck under the name of another run."""
    for run in list_runs(store):
        if run.name == name and run.study != study:
            raise DataError(
                f"{name!r} is not a recheck of this run but a run of {run.study!r}. Give another --name.",
                code="recheck.name-taken",
            )


def _read(stage: Stage, factors: Mapping[str, Scalar], response: AnyResponse) -> Outcomes:
    """Return what the study reads from a response; a refused or unreadable response has a status only."""
    found = read_answer(stage, factors, response)
    if found is None:
        return {"status": response.status}
    return {"status": "unreadable"} if isinstance(found, Unreadable) else {"status": "ok", **found}
