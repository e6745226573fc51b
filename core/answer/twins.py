"""One pair of answers that shows a finding: twins, which differ in the compared group alone.

Of the pairs whose outcomes differ, it is the one whose difference is nearest to the mean difference of all pairs; of
those as near, the first by its trial. So nobody chooses it, and it is on the side of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import combinations

import msgspec
import polars as pl

from ..catalogue.refusal_stage import last_measured
from ..design.record import Declared, Roles
from ..scoring.score import Scores

GROUP, OUTCOME, LEFT, RIGHT = "_group", "_outcome", "_left", "_right"
MOST_LEVELS = 6
"""Levels of a group that are paired with each other; further ones are not."""


class TwinPair(msgspec.Struct, frozen=True):
    """Two trials that differ in one group alone, and how often such pairs differ."""

    factor: str
    levels: tuple[str, str]
    trials: tuple[str, str]
    keys: tuple[bytes, bytes]
    differ: int
    """Pairs of these levels whose outcomes differ."""
    pairs: int


def twin_pair(scores: Scores) -> TwinPair | None:
    """Return the pair of a run's last stage; None where the design declares no twins, or no pair differs."""
    design, stage = scores.manifest.design, last_measured(scores.stages).name
    columns = {*scores.frames.schema(stage).names()}
    if design is None or design.answer is None:
        return None
    if (group := compared_group(design, columns)) is None:
        return None
    shared, outcome = shared_by_twins(design, group), design.answer.outcome
    if not shared or not {"key", "trial", outcome, *shared} <= columns:
        return None
    measured = pl.col(outcome).is_in(design.answer.up) if design.answer.up else pl.col(outcome)
    rows = (
        scores.lazy(stage)
        .filter(pl.col("status") == "ok", ~pl.col(group.name).is_in(group.controls), _first_context(design, columns))
        .select(
            *shared,
            pl.col(group.name).cast(pl.String).alias(GROUP),
            measured.cast(pl.Float64, strict=False).alias(OUTCOME),
            "trial",
            "key",
        )
        .filter(pl.col(OUTCOME).is_not_null(), pl.col(OUTCOME).is_not_nan())
        .unique([*shared, GROUP], keep="first", maintain_order=True)
        .collect(engine="streaming")
    )
    return _nearest(rows, shared, group.name)


def compared_group(design: Roles, columns: Collection[str]) -> Declared | None:
    """Return the group that twins differ in: the first that is a column; None where none is."""
    return next((part for part in design.declared if part.role == "group" and part.name in columns), None)


def shared_by_twins(design: Roles, group: Declared) -> tuple[str, ...]:
    """Return what twins have in common: a unit, or its parts where the group is a part of one of its factors.

    The texts of options and what lies within a level of the group may differ.
    """
    if group.factor not in design.unit:
        return () if group.name in design.unit else design.unit
    options = {*design.answer.answers} if design.answer is not None else set()
    parts = (part for part in design.declared if part.factor == group.factor)
    common = [
        part.name for part in parts if part.name not in {group.name, *options} and group.name not in part.nested_in
    ]
    return (*(name for name in design.unit if name != group.factor), *common)


def _first_context(design: Roles, columns: set[str]) -> pl.Expr:
    """Keep one level of what turns a difference round, the first that is no control."""
    turning = next((part for part in design.declared if part.role == "context" and part.name in columns), None)
    if turning is None:
        return pl.lit(True)
    chosen = pl.col(turning.name).filter(~pl.col(turning.name).is_in(turning.controls)).drop_nulls().max()
    return (pl.col(turning.name) == chosen).fill_null(True)


def _nearest(rows: pl.DataFrame, unit: tuple[str, ...], factor: str) -> TwinPair | None:
    levels = sorted(rows[GROUP].unique().drop_nulls())
    best: tuple[float, TwinPair] | None = None
    for left, right in combinations(levels[:MOST_LEVELS], 2):
        both = rows.filter(pl.col(GROUP) == left).join(
            rows.filter(pl.col(GROUP) == right), on=list(unit), suffix=RIGHT, nulls_equal=True
        )
        apart = both.with_columns(apart=pl.col(OUTCOME) - pl.col(f"{OUTCOME}{RIGHT}"))
        mean = apart["apart"].mean()
        differing = apart.filter(pl.col("apart") != 0)
        if differing.is_empty() or not isinstance(mean, float) or not math.isfinite(mean):
            continue
        # On the side of the mean, where any pair is.
        side = differing.filter(pl.col("apart").sign() == math.copysign(1.0, mean))
        near = (side if side.height else differing).sort((pl.col("apart") - mean).abs(), "trial").row(0, named=True)
        pair = TwinPair(
            factor,
            (left, right),
            (near["trial"], near[f"trial{RIGHT}"]),
            (near["key"], near[f"key{RIGHT}"]),
            differing.height,
            both.height,
        )
        if best is None or abs(mean) > best[0]:
            best = (abs(mean), pair)
    return best[1] if best is not None else None
