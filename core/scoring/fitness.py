"""Whether the models of a run could do its task, recomputed from stored answers: the same wherever it is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ..contracts import Stage, Unreadable
from ..contracts.canonical import decode_request, decode_response
from ..contracts.records import Likelihood, Scalar
from ..design import Roles
from ..engine.fitness import compared_factor
from ..engine.reading import as_read
from ..engine.spilled import Frames
from ..fitness import FEW_VALUES, FitAnswer, StageFitness, look_at, profile_from
from ..store import RunRow, Store
from ..store.reading import used_answers

MUCH = 0.2
"""Share of unreadable answers from which on their texts are looked at: each is read from the store."""
LOOKED = 200
"""Texts that are looked at, spread over all."""
MOST_GROUPS = 100
"""Levels of a factor above which it names single questions rather than groups."""
COUNTED = ("ok", "refused", "unreadable")
Looked = Mapping[str, Sequence[FitAnswer]]
"""Answers by stage whose texts were looked at."""


def look_into(store: Store, run: RunRow, stages: Sequence[Stage], frames: Frames) -> Looked:
    """Return some answers of each stage: of those that could not be read, where they are many, and of likelihoods."""
    looked: dict[str, Sequence[FitAnswer]] = {}
    for stage in (stage for stage in stages if frames.height(stage.name) and "key" in frames.schema(stage.name)):
        status = "ok" if stage.operation is Likelihood else "unreadable"
        chosen = (pl.col("status") == status) & pl.col("key").is_not_null()
        keys = frames.lazy(stage.name).filter(chosen).select("key").collect(engine="streaming")
        if keys.height >= MUCH * frames.height(stage.name):
            step = max(1, keys.height // LOOKED)
            looked[stage.name] = _read(store, run, keys["key"].gather_every(step).to_list()[:LOOKED], status)
    return looked


def _read(store: Store, run: RunRow, keys: Sequence[bytes], status: str) -> list[FitAnswer]:
    numbers = used_answers(store, run.id, keys)
    # What the study reads was decided when it was scored: only the texts are looked at here.
    outcome: Mapping[str, Scalar] | Unreadable = Unreadable("") if status == "unreadable" else {}
    return [
        look_at(decode_request(request), as_read(decode_response(response)), outcome)
        for _, request, response in store.exchanges(set(numbers.values()))
    ]


def fitness_of(
    stages: Sequence[Stage], frames: Frames, looked: Looked, design: Roles | None
) -> tuple[StageFitness, ...]:
    """Return the fitness of the model of each stage that asked anything.

    Args:
        stages: the stages of the run.
        frames: their observations.
        looked: answers whose texts were looked at, by stage.
        design: what the study varies.
    """
    return tuple(
        _stage_fitness(stage, frames, looked.get(stage.name, ()), design)
        for stage in stages
        if stage.name in frames and frames.height(stage.name)
    )


def _stage_fitness(stage: Stage, frames: Frames, looked: Sequence[FitAnswer], design: Roles | None) -> StageFitness:
    rows = frames.lazy(stage.name).filter(pl.col("status").is_in(COUNTED))
    declared = () if design is None else design.declared
    groups_of = (factor.name for factor in declared if factor.role == "group")
    factor = compared_factor(stage, groups_of, frames.schema(stage.name).names())
    keys = [factor] if factor else []
    counts = rows.group_by(*keys, "status").len().collect(engine="streaming")
    groups: dict[str, dict[str, int]] = {}
    for *level, status, count in counts.iter_rows():
        groups.setdefault(str(level[0]) if level else "", {})[status] = count
    every = {status: sum(group.get(status, 0) for group in groups.values()) for status in COUNTED}
    named = {level: profile_from(group) for level, group in sorted(groups.items())} if factor else {}
    return StageFitness(
        stage=stage.name,
        role=stage.role,
        every=profile_from(every, looked, _values(stage, rows, frames.schema(stage.name))),
        groups=named if 1 < len(named) <= MOST_GROUPS else {},
    )


def _values(stage: Stage, rows: pl.LazyFrame, schema: pl.Schema) -> dict[str, dict[str, int]]:
    """Return how often each value was given of the outcomes that are a choice among few."""
    read, values = rows.filter(pl.col("status") == "ok"), {}
    for name in (name for name in stage.outcomes if name in schema and _is_choice(schema[name])):
        counts = read.group_by(name).len().drop_nulls().head(FEW_VALUES + 1).collect(engine="streaming")
        if 0 < counts.height <= FEW_VALUES:
            values[name] = {str(value): count for value, count in counts.iter_rows()}
    return values


def _is_choice(kind: pl.DataType) -> bool:
    return kind == pl.String or kind.is_integer()
