"""Plan a study: count its requests, tokens and cost before a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from ..catalogue.instrument import Instrument
from ..catalogue.needs import ensure_asked, ensure_suitable
from ..catalogue.prices import Prices
from ..catalogue.registry import Published
from ..catalogue.small_parts import small_words
from ..catalogue.study import Catalogue, Study
from ..contracts import Stage, Trial
from ..contracts.adapter import Identity, ModelAdapter
from ..contracts.canonical import encode, identity_digest, request_key
from ..contracts.errors import PrejudgeError
from ..contracts.probe import example_trials
from ..contracts.records import AnyRequest, Generate, Scalar
from ..fitness import FIRST
from ..store import Store
from ..store.bulk import batched, table_of
from ..store.tables import Exchange, Model
from .fitness import asks_first, base_note
from .integrity.canary import QUESTIONS, requests_of, samples
from .tokens import RULE_OF_THUMB, Rates, Tokens, guess_cost, learn

PART = 4096


class Cell(msgspec.Struct, frozen=True):
    """Units of one cell of a design, and the paper's number."""

    group: dict[str, Scalar]
    units: int
    published: float | None = None


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one stage."""

    stage: str
    role: str
    model: str | None
    unit: str
    trials: int
    units: int
    cached: int | None
    """Trials with a stored answer; None without a model or a store."""
    cells: tuple[Cell, ...]
    coarser: tuple[Cell, ...] = ()
    """Cells by fewer factors, if the paper has its counts by those."""
    published_total: float | None = None
    requests: int = 0
    """Requests without a stored answer; equal requests count once."""
    attempts: int = 1
    """Maximum number of attempts at a readable answer."""
    asks_again: tuple[str, ...] = ()
    """Statuses after which there is another attempt."""
    input_tokens: float = 0.0
    """Tokens of these requests; an estimate, see `basis`."""
    output_tokens: float = 0.0
    canary: int = 0
    """Further requests of a run on an endpoint: draws that show whether it samples. Their tokens and cost are above."""
    first: int = 0
    """Trials, at most, that a run asks before the others, to see whether the model can do the task; they are among
    `trials`."""
    basis: str = ""
    """Source of the token estimate."""
    cost: float | None = None
    batch_cost: float | None = None
    """What they cost if they are asked in batches; None if the registry has no price for that."""
    """US dollars, from the registry's prices; None if no price is known."""
    notes: tuple[str, ...] = ()
    """Sentences on the material."""
    later: tuple[tuple[str, str], ...] = ()
    """Name and role of later stages, whose requests depend on answers."""


class _Tally(msgspec.Struct):
    """Counts over the trials of a stage."""

    rates: Rates
    prices: Prices
    trials: int = 0
    cached: int = 0
    requests: int = 0
    tokens: Tokens = Tokens()
    cost: float = 0.0
    drawn: Generate | None = None
    """The first request that samples."""
    cells: Counter[tuple[Scalar, ...]] = msgspec.field(default_factory=Counter)

    def see(self, part: Sequence[tuple[Trial, int]], count_by: tuple[str, ...]) -> None:
        """Count trials, in total and by cell."""
        for trial, times in part:
            self.trials += times
            self.cells[tuple(trial.factors[name] for name in count_by)] += times

    def ask(self, request: AnyRequest, times: int) -> None:
        """Count this many requests like this one."""
        self.requests += times
        self.spend(request, times)
        if self.drawn is None and isinstance(request, Generate) and samples(request):
            self.drawn = request

    def spend(self, request: AnyRequest, times: int) -> None:
        """Count the tokens and cost of this many requests like this one."""
        tokens = self.rates.guess(request)
        self.tokens = self.tokens.plus(tokens, times)
        self.cost += times * guess_cost(request, tokens, self.prices)


def plan(catalogue: Catalogue, study: Study, store: Store | None = None) -> list[StagePlan]:
    """Count the trials of each stage that does not depend on earlier answers: the main one, then auxiliary ones.

    Raises:
        UsageError: a model does not support an operation, or is for a role that the study does not have.
        DataError: the design is empty.
    """
    instrument = catalogue.instrument(study)
    ensure_suitable(catalogue, study, instrument, planned=True)
    stages, main = instrument.stages(), instrument.main_stage
    place = stages.index(main)
    later = tuple((stage.name, stage.role) for stage in stages[place + 1 :])
    first = _plan_stage(catalogue, study, instrument, store)
    return [
        msgspec.structs.replace(first, later=later),
        *(_plan_stage(catalogue, study, instrument, store, stage) for stage in stages[:place]),
    ]


def _plan_stage(
    catalogue: Catalogue, study: Study, instrument: Instrument, store: Store | None, auxiliary: Stage | None = None
) -> StagePlan:
    stage = auxiliary or instrument.main_stage
    model = study.roles.get(stage.role)
    identity = _identity(catalogue.adapter(model), instrument) if model is not None and store is not None else None
    prices = catalogue.registry.model(model).prices if model is not None else Prices()
    rates = learn(store, identity, stage.operation) if store is not None and identity is not None else RULE_OF_THUMB
    if model is not None and not rates.learned_from:
        rates = rates._replace(room=int(getattr(catalogue.options_of(model), "answer_room", 0) or 0))
    tally = _Tally(rates, prices)
    _count(stage, identity_digest(identity) if identity is not None else None, store, tally)
    ensure_asked(study, stage, tally.trials)
    canary = _canary(catalogue, model, tally)
    replaced = study.options.get("data") is not None
    published = [value for value in study.published if value.measure == f"{stage.counting.unit}s" and not replaced]
    return StagePlan(
        stage=stage.name,
        role=stage.role,
        model=model,
        unit=stage.counting.unit,
        trials=tally.trials,
        units=tally.trials // stage.counting.trials,
        cached=tally.cached if identity is not None else None,
        cells=tuple(_cells(stage, tally.cells, published)),
        coarser=tuple(_coarser(stage, tally.cells, published)),
        published_total=sum(value.value for value in published if value.group) or None,
        requests=tally.requests,
        attempts=stage.rules.attempts,
        asks_again=stage.rules.again,
        input_tokens=tally.tokens.input,
        output_tokens=tally.tokens.output,
        canary=canary,
        first=min(FIRST, tally.trials) if asks_first(stage) else 0,
        basis=rates.describe(),
        cost=tally.cost if prices.known else None,
        batch_cost=tally.cost * prices.batch if prices.known and prices.batch is not None else None,
        notes=(
            *(
                ()
                if auxiliary
                else (*study.notes, *filter(None, [small_words(catalogue, study), base_note(catalogue, study)]))
            ),
            *stage.notes(),
        ),
    )


def _study_notes(catalogue: Catalogue, study: Study) -> Sequence[str]:
    return [*study.notes, *filter(None, [small_words(catalogue, study), base_note(catalogue, study)])]


def _identity(adapter: ModelAdapter, instrument: Instrument) -> Identity:
    instrument.place({instrument.stages()[0].role: adapter})
    return adapter.identity


def _canary(catalogue: Catalogue, model: str | None, tally: _Tally) -> int:
    """Return the number of draws that a run begins with, and count their tokens."""
    if model is None or tally.drawn is None:
        return 0
    try:
        if catalogue.adapter(model).endpoint is None:
            return 0
    except PrejudgeError:
        return 0  # without a key or a package it can be planned, and not run
    draws = requests_of(QUESTIONS[0], tally.drawn.sampling, 1)
    tally.spend(draws[0], len(draws))
    return len(draws)


def _count(stage: Stage, identity: bytes | None, store: Store | None, tally: _Tally) -> None:
    # Only keys are kept, because a million requests would need too much memory.
    seen: set[bytes] = set()
    looked_up = store if identity is not None and store is not None and _has_answers(store, identity) else None
    # Trials are generated one by one, for their keys, only if the store may have answers.
    groups = example_trials(stage, {}) if looked_up is None else ((trial, 1) for trial in stage.trials({}))
    for part in batched(groups, PART):
        tally.see(part, stage.counting.by)
        keyed = [(request_key(identity or b"", encode(trial.request)), trial, times) for trial, times in part]
        stored = looked_up.find({key for key, *_ in keyed}) if looked_up is not None else {}
        for key, trial, times in keyed:
            if key in stored:
                tally.cached += times
            elif key not in seen:
                seen.add(key)
                tally.ask(trial.request, times)


def _has_answers(store: Store, identity: bytes) -> bool:
    """Return whether the store has any answer of a model."""
    exchange, models = table_of(Exchange), table_of(Model)
    query = sa.select(exchange.c.id).join_from(exchange, models, exchange.c.model_id == models.c.id)
    return bool(store.rows(query.where(models.c.digest == identity).limit(1)))


def _coarser(stage: Stage, counts: Counter[tuple[Scalar, ...]], published: list[Published]) -> Iterable[Cell]:
    cells = [(dict(zip(stage.counting.by, levels, strict=True)), trials) for levels, trials in counts.items()]
    for value in published:
        if value.group and value.group.keys() < set(stage.counting.by):
            trials = sum(count for group, count in cells if value.group.items() <= group.items())
            yield Cell(dict(value.group), trials // stage.counting.trials, value.value)


def _cells(stage: Stage, counts: Counter[tuple[Scalar, ...]], published: list[Published]) -> Iterable[Cell]:
    for levels, trials in counts.items():
        group = dict(zip(stage.counting.by, levels, strict=True))
        printed = [value.value for value in published if value.group == group]
        yield Cell(group, trials // stage.counting.trials, printed[0] if len(printed) == 1 else None)
