"""A run: the trials of a study are asked, and recorded in plan order within a bounded window."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import polars as pl

from ..catalogue.needs import ensure_suitable
from ..catalogue.origins import origins
from ..catalogue.packages import adapter_packages
from ..catalogue.refusal_stage import decided
from ..catalogue.study import Catalogue, Study
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import UsageError
from ..store import Store, ensure_recorded, get_run
from ..store.reading import TIMED, list_runs
from ..store.signatures import ensure_able, sign_run
from ..workers.remote import open_adapters
from .batch.stage import ensure_batches
from .budget import Budget, ensure_priced
from .ending import end_of
from .foreign import maker_of
from .ledger import Ledger
from .manifest import Earlier, as_made, find_earlier
from .observations import observe_stage
from .progress import Progress, Silent
from .roles import ensure_same_models, ensure_set_up
from .run_options import RunOptions
from .run_record import Parts, RunRecord
from .stage_run import Resources, StageRun
from .unread import with_unread

__all__ = ["RunOptions", "execute"]
YOUNG = 50_000
"""New objects after which the collector looks for cycles among them; Python's own 700 are those of a few calls. A run
makes hardly any: what it drops is freed at once."""


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
    budget = budget or (Budget(options.caps) if options.caps.any else None)
    name = await _perform(catalogue, study, _Session(store, options, progress or Silent(), budget))
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


class _Session(NamedTuple):
    """What a run is asked with."""

    store: Store
    options: RunOptions
    progress: Progress
    budget: Budget | None


async def _perform(catalogue: Catalogue, study: Study, session: _Session) -> str:
    store, options = session.store, session.options
    if options.name is not None:
        store.ensure_free(options.name)  # before a model is loaded; `begin_run` decides
    if options.new_name is not None and any(row.name == options.new_name for row in list_runs(store)):
        raise UsageError(
            f"there is a run {options.new_name!r}. Choose another name, or go on with it: prejudge resume "
            f"{options.new_name}",
            code="run.exists",
        )
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
        instrument.place({role: adapters[model] for role, model in study.roles.items()})
        if earlier is not None and _is_of_others(earlier, study, adapters):
            return earlier.row.name
        ensure_set_up(study, instrument.stages(), adapters)
        if options.batch is not None:
            ensure_batches(study, instrument.stages(), adapters)
        packages = {model: adapter_packages(catalogue, [model]) for model in study.roles.values()}
        parts = Parts(study, instrument, adapters, owner, prices, origins(catalogue, study), packages)
        record = RunRecord(parts, store, options)
        record.maker = maker_of(catalogue, record.name, study)
        with spared():
            await _ask(record, Resources(parts, *session))
        return record.name
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


async def _ask(record: RunRecord, resources: Resources) -> None:
    """Ask and record every stage of a run, from its beginning to its end in the store."""
    store = resources.store
    record.plan()
    run_id = record.begin()
    resources.progress.begin(record.name)
    ledger, since = Ledger(store, run_id, resources.limiters), get_run(store, record.name).started
    failure: BaseException | None = None
    try:
        await ledger.join()
        await _ask_stages(record, resources, ledger, since)
        record.ensure_complete(run_id)
    except BaseException as error:
        failure = error
        if isinstance(error, asyncio.CancelledError):
            store.patience.hurry()  # nobody waits for a server that is away to record the interruption
        raise
    finally:
        await ledger.aclose()
        record.end(run_id, TIMED if resources.options.timing else end_of(failure).state)


async def _ask_stages(record: RunRecord, resources: Resources, ledger: Ledger, since: float) -> None:
    stages, earlier = record.instrument.stages(), dict[str, pl.DataFrame]()
    for stage in stages:
        frames = with_unread(resources.store, ledger.run_id, stage, earlier)
        await StageRun(stage, resources, record, ledger).ask(frames, since)
        if stage is not stages[-1]:
            earlier[stage.name] = observe_stage(resources.store, ledger.run_id, stage)
            earlier |= decided(earlier, [stage])


@contextmanager
def spared() -> Iterator[None]:
    """Exempt what is there now from garbage collection, and let it run less often, for the time of a run.

    Modules, classes and functions are most of the objects of a program. Thousands of calls in flight let the collector
    look at all of them every second or so, which took a quarter of the processor time of a fast endpoint.
    """
    if gc.get_freeze_count():
        yield  # somebody else has exempted objects, and `unfreeze` would not know which
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(max(thresholds[0], YOUNG), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
