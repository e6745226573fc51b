"""One study over variants of a model: what is checked before the first variant is asked, and the budget they share."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from itertools import chain, islice
from typing import Any

import msgspec

from ..catalogue.needs import ensure_suitable
from ..catalogue.study import SUBJECT, Catalogue, Study
from ..catalogue.variants import variants
from ..contracts import Stage
from ..contracts.adapter import ModelAdapter, refusal
from ..contracts.canonical import identity_digest
from ..contracts.errors import BudgetError, ModelError, PermanentError, UsageError
from ..contracts.probe import example_trials
from ..contracts.records import AnyRequest, Draw, Generate, Image
from ..contracts.words import counted
from ..pictures.names import source_of
from ..store import Failure, Store
from .budget import Budget, Caps
from .ledger import Ledger
from .limiter import Limiters
from .retry import RetryPolicy
from .roles import ensure_ready
from .run_options import RunOptions
from .scheduler import Scheduler
from .stopping import FailureDetector
from .windows import WINDOW


def varied_studies(
    catalogue: Catalogue,
    study: str,
    models: Mapping[str, str],
    varied: Mapping[str, Sequence[str]],
    assignments: Mapping[str, Any],
) -> list[Study]:
    """Return the study once per variant of its subject, all of them checked: nothing is asked, no weights are loaded.

    Raises:
        UsageError: a variant cannot be asked, or two of them are the same model.
    """
    if SUBJECT not in models:
        raise UsageError("--vary needs the model whose settings vary: --model NAME.", code="study.role-missing")
    names = variants(models[SUBJECT], varied)
    studies = [catalogue.study(study, {**models, SUBJECT: name}, assignments) for name in names]
    same: dict[bytes, str] = {}
    for variant in studies:
        ensure_suitable(catalogue, variant, catalogue.instrument(variant))
        name = variant.roles[SUBJECT]
        adapter = catalogue.adapter(name)
        try:
            instrument = catalogue.instrument(variant)
            instrument.place({SUBJECT: adapter})
            digest = identity_digest(adapter.identity)
            if (other := same.setdefault(digest, name)) != name:
                raise UsageError(
                    f"{other!r} and {name!r} are the same model: the setting changes nothing that is asked. Vary "
                    "another.",
                    code="vary.same",
                )
            _ensure_sendable(variant, instrument.stages()[0], adapter)
        finally:
            asyncio.run(adapter.aclose())
    return studies


def _ensure_sendable(study: Study, stage: Stage, adapter: ModelAdapter) -> None:
    """Refuse a variant that cannot be sent a request of the first stage; what others ask follows from answers.

    Raises:
        UsageError: naming the variant.
    """
    if stage.role != SUBJECT:
        return
    kinds: set[object] = set()
    for trial, _ in example_trials(stage, {}):
        if (kind := _kind(trial.request)) in kinds:
            continue
        kinds.add(kind)
        if (refused := refusal(adapter, trial.request)) is not None:
            raise UsageError(
                f"{study.roles[SUBJECT]!r} cannot be asked this study, and no variant was asked: {refused}",
                code="vary.refused",
                variant=study.roles[SUBJECT],
                why=refused.code,
            )


def _kind(request: AnyRequest) -> object:
    """Return what decides whether a request can be sent: all but its words."""
    if not isinstance(request, Generate):
        return type(request)
    messages = tuple((message.role, *(type(part) for part in message.parts)) for message in request.messages)
    return (messages, request.sampling, request.top_logprobs, request.json_schema, request.choices)


class _UnrecordedLedger(Ledger):
    """Access to the store outside a run; calls that fail are not recorded, because those belong to a run."""

    def __init__(self, store: Store, limiters: Limiters) -> None:
        super().__init__(store, 0, limiters)

    async def fail(self, failures: Sequence[Failure]) -> None:
        """Record nothing."""


class _Refusals(FailureDetector):
    """Keeps the last failure, and never stops."""

    def __init__(self) -> None:
        super().__init__()
        self.last: ModelError | None = None

    def failed(self, request: AnyRequest, error: ModelError) -> None:
        """Keep the failure."""
        self.last = error


async def ensure_accepted(
    catalogue: Catalogue, studies: Sequence[Study], store: Store, options: RunOptions, shared: SharedBudget
) -> None:
    """Check the models of all roles, and ask each variant behind an endpoint its first prompt: some refuse a setting.

    The answer is kept: the run of the variant finds it in the store. A prompt that fails for good may fail for its
    words, so a second one decides. What a local model refuses is known before (`varied_studies`). Nothing is asked in a
    replay, nor where a run is to go on past faults.

    Raises:
        UsageError: a variant refuses the study's requests.
        BudgetError: the budget is spent.
        HaltedError: the endpoint is down.
        ModelError: the endpoint refuses the key or account.
    """
    if options.mode == "replay":
        return
    await ensure_ready(catalogue, (study for study in studies if len(study.roles) > 1))  # subjects are checked before
    if options.keep_going:
        return
    limiters = Limiters(options.longest_wait)
    for study in studies:
        stage, model = catalogue.instrument(study).stages()[0], study.roles[SUBJECT]
        adapter = catalogue.adapter(model)
        try:
            if stage.role != SUBJECT or adapter.endpoint is None:
                continue
            adapter.services = limiters.services(adapter, store)
            async with aclosing(_UnrecordedLedger(store, limiters)) as ledger:
                scheduler = Scheduler(
                    adapter=adapter,
                    ledger=ledger,
                    model_id=await ledger.ensure_model(adapter.identity),
                    identity=identity_digest(adapter.identity),
                    policy=RetryPolicy(longest_seconds=options.longest_wait),
                    detector=(refusals := _Refusals()),
                    limiter=limiters.of(adapter),
                    budget=shared.budget(),
                    prices=catalogue.registry.model(model).prices,
                )
                async with aclosing(scheduler):
                    await _ensure_answered(model, stage, scheduler, refusals)
        finally:
            await adapter.aclose()


async def _ensure_answered(model: str, stage: Stage, scheduler: Scheduler, refusals: _Refusals) -> None:
    """Ask the first prompts of a stage until the model answers one.

    Raises:
        UsageError: it refuses all of them.
    """
    requests = _firsts(stage)
    keyed = [scheduler.key(request) for request in requests]
    if await scheduler.ledger.find([request.key for request in keyed]):
        return
    await _keep_images(stage, requests, scheduler.ledger)
    for request in keyed:
        if await scheduler.settle([request]) or not isinstance(refusals.last, PermanentError):
            return
    if (refused := refusals.last) is not None:
        asked = counted(len(keyed), "request")
        raise UsageError(
            f"{model!r} refuses this study ({asked}), and no variant was asked more than its first: {refused}",
            code="vary.refused",
            variant=model,
            why=refused.code,
        )


def _firsts(stage: Stage) -> list[AnyRequest]:
    """Return the first two requests of a stage that differ in their words or images, as far as there are."""
    requests: dict[object, AnyRequest] = {}
    for trial in islice(stage.trials({}), WINDOW):
        requests.setdefault(_content(trial.request), trial.request)
        if len(requests) == 2:
            break
    return list(requests.values())


def _content(request: AnyRequest) -> object:
    """Return what a request asks, without what repeats it: a seed, a sample, an attempt."""
    if isinstance(request, Generate):
        return request.messages
    return request.prompt if isinstance(request, Draw) else msgspec.structs.replace(request, attempt=0)


async def _keep_images(stage: Stage, requests: Sequence[AnyRequest], ledger: Ledger) -> None:
    """Store the images that requests show."""
    messages = chain.from_iterable(request.messages for request in requests if isinstance(request, Generate))
    parts = chain.from_iterable(message.parts for message in messages)
    missing = {source_of(part.sha256) for part in parts if isinstance(part, Image)}
    images = stage.images() if missing else ()
    for data, media_type in images:
        if hashlib.sha256(data).hexdigest() in missing:
            missing.discard(await ledger.keep(data, media_type))
        if not missing:
            return


class SharedBudget:
    """The budget of several runs, one after another: each may spend what the ones before left."""

    def __init__(self, caps: Caps) -> None:
        self.caps, self._budgets = caps, list[Budget]()

    def budget(self) -> Budget | None:
        """Return the budget of the next run; None without limits.

        Raises:
            BudgetError: nothing is left.
        """
        if not self.caps.any:
            return None
        left = {}
        for name in self.caps.__struct_fields__:
            if (most := getattr(self.caps, name)) is not None:
                left[name] = most - sum(getattr(budget.spent, name) for budget in self._budgets)
                if left[name] <= 0:
                    raise BudgetError(f"the budget is spent (--max-{name} {most:,}).")
        self._budgets.append(Budget(Caps(**left)))
        return self._budgets[-1]
