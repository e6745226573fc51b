"""What a study would ask, before anything is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from .canonical import encode, identity_digest, request_key
from .contracts import Stage, Trial
from .records import Scalar
from .registry import Published
from .store import Store
from .store.store import batched
from .study import Catalogue, Study

PART = 4096


class Cell(msgspec.Struct, frozen=True):
    """Units of one cell of a design, and what the paper had there."""

    group: dict[str, Scalar]
    units: int
    published: float | None = None


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage would ask."""

    stage: str
    role: str
    model: str | None
    unit: str
    trials: int
    units: int
    cached: int | None
    """Trials the store already answers; None without a model or a store."""
    cells: tuple[Cell, ...]
    published_total: float | None = None


class _Tally(msgspec.Struct):
    trials: int
    cached: int
    cells: Counter[tuple[Scalar, ...]]


def plan(catalogue: Catalogue, study: Study, store: Store | None = None) -> list[StagePlan]:
    """Count the trials of each stage that can be counted now: those that need no earlier answers."""
    stages = catalogue.instrument(study).stages()
    return [_plan_stage(catalogue, study, stage, store) for stage in stages[:1]]


def _plan_stage(catalogue: Catalogue, study: Study, stage: Stage, store: Store | None) -> StagePlan:
    model = study.roles.get(stage.role)
    identity = identity_digest(catalogue.adapter(model).identity) if model is not None and store is not None else None
    tally = _count(stage, identity, store)
    own = study.options.get("data") is not None
    published = [value for value in study.published if value.measure == f"{stage.unit}s" and not own]
    return StagePlan(
        stage=stage.name,
        role=stage.role,
        model=model,
        unit=stage.unit,
        trials=tally.trials,
        units=tally.trials // stage.trials_per_unit,
        cached=tally.cached if identity is not None else None,
        cells=tuple(_cells(stage, tally.cells, published)),
        published_total=sum(value.value for value in published if value.group) or None,
    )


def _count(stage: Stage, identity: bytes | None, store: Store | None) -> _Tally:
    tally = _Tally(0, 0, Counter())
    for part in batched(stage.trials({}), PART):
        tally.trials += len(part)
        tally.cells.update(tuple(trial.factors[name] for name in stage.count_by) for trial in part)
        if identity is not None and store is not None:
            tally.cached += _cached(part, identity, store)
    return tally


def _cached(trials: list[Trial], identity: bytes, store: Store) -> int:
    keys = [request_key(identity, encode(trial.request)) for trial in trials]
    found = store.find(set(keys))
    return sum(key in found for key in keys)


def _cells(stage: Stage, counts: Counter[tuple[Scalar, ...]], published: list[Published]) -> Iterable[Cell]:
    for levels, trials in counts.items():
        group = dict(zip(stage.count_by, levels, strict=True))
        printed = [value.value for value in published if value.group == group]
        yield Cell(group, trials // stage.trials_per_unit, printed[0] if len(printed) == 1 else None)
