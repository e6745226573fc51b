"""From answers to order-invariant scores: one per scenario, face and variant, with its bounds.

The score is the share of answers that choose the positive option, or the first where neither is positive, as the mean
of the orders' means (Gulati et al. 2025, section 3.4). It is missing if an order has no readable answer: the others
are not order-invariant. Where every answer is a choice, scores are kept as counts of one common denominator (twelfths
of four orders and three seeds), so that equal changes are equal: ranks are of counts.
"""

from __future__ import annotations

import math
from functools import cached_property

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.statistics.intervals import Array, Codes, Flags
from ...core.statistics.observations import require_columns
from ...probes.attractiveness.terms import DESIGN, ORDER, TRAITS, VARIANTS

EXACT = 1 << 53
"""Whole numbers below it are exact as floats."""
CELL = ("scenario", "face", "variant")
NEEDS = frozenset({*DESIGN, *TRAITS, *ORDER, "face", "variant", "human", "score", "p_a", "status"})


class Scenario(msgspec.Struct, frozen=True):
    """What a scenario is about."""

    id: str
    category: str
    kind: str
    positive: str | None
    stereotype: str | None


class Scores(msgspec.Struct, frozen=True, dict=True):
    """Scores of every scenario, face and variant; the arrays have the shape (scenarios, faces, variants)."""

    scenarios: list[Scenario]
    faces: list[str]
    labels: dict[str, list[str | None]]
    """Of each face: its gender, age group and race, where known."""
    counts: Array
    """The score in parts of `unit`, from 0 to `unit`; NaN is missing. What is ranked."""
    unit: float
    """The common denominator of all scores; 1 where answers are probabilities, whose scores are no counts."""
    least: Array
    greatest: Array
    """The score if every missing answer were against the counted option, and if every one were for it."""
    lost: Codes
    """Index in `statuses` of the reason why a score is missing; -1 if it is not missing."""
    statuses: list[str]

    @cached_property
    def score(self) -> Array:
        """Return the scores from 0 to 1."""
        return self.counts / self.unit

    @cached_property
    def change(self) -> Array:
        """Return the score with the filter minus that without, shape (scenarios, faces)."""
        return self.moved / self.unit

    @cached_property
    def moved(self) -> Array:
        """Return the same in parts of `unit`: what is ranked."""
        return self.counts[..., 1] - self.counts[..., 0]

    @property
    def directed(self) -> Flags:
        """Return which scenarios have a positive option."""
        return np.array([s.positive is not None for s in self.scenarios], dtype=np.bool_)

    def level(self, by: str, name: str) -> Flags:
        """Return which faces have this label."""
        return np.array([label == name for label in self.labels[by]], dtype=np.bool_)

    def levels(self, by: str) -> list[str]:
        """Return the existing labels."""
        return sorted({label for label in self.labels[by] if label is not None})

    def codes(self, by: str) -> Codes:
        """Return the number of each face's label; -1 for none."""
        levels = self.levels(by)
        return np.array([-1 if label is None else levels.index(label) for label in self.labels[by]], dtype=np.int64)


def gather(observations: pl.DataFrame) -> Scores:
    """Return the scores of all answers.

    Raises:
        DataError: a column is absent, or a variant has an unknown name.
    """
    require_columns(observations, set(NEEDS))
    if unknown := sorted(set(observations["variant"].unique().to_list()) - set(VARIANTS), key=str):
        raise DataError(
            f"unknown variant {unknown[0]!r}. Use {', '.join(map(repr, VARIANTS))}.", code="data.unknown-value"
        )
    design = observations.select(DESIGN).unique(maintain_order=True).cast(pl.String)
    people = observations.select("face", *TRAITS).unique(maintain_order=True).cast(pl.String)
    for frame, key in ((design, "scenario"), (people, "face")):
        if twice := frame.filter(frame[key].is_duplicated())[key].to_list():
            raise DataError(
                f"{key} {twice[0]!r} has two different descriptions. Give it one category, kind, gender and so on.",
                code="data.contradiction",
            )
    cells, unit = _cells(observations)
    statuses = sorted(cells["lost"].drop_nulls().unique().to_list())
    place = _places(cells, design, people)
    shape = (design.height, people.height, len(VARIANTS))
    return Scores(
        scenarios=[Scenario(*row) for row in design.iter_rows()],
        faces=people["face"].to_list(),
        labels={name: people[name].to_list() for name in TRAITS},
        counts=_filled(shape, place, cells["counts"], np.nan),
        unit=unit,
        least=_filled(shape, place, cells["least"], 0.0),
        greatest=_filled(shape, place, cells["greatest"], 1.0),
        lost=_codes(shape, place, cells["lost"], statuses),
        statuses=[*statuses, "not asked"],
    )


def _cells(observations: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Return one row per scenario, face and variant, from one row per order of it, and the unit of its counts."""
    ok = (pl.col("status") == "ok") & pl.col("score").is_not_null()
    given = pl.when(ok).then(pl.col("score").cast(pl.Float64))
    # A status of `ok` without a score is an answer that could not be read.
    why = pl.when(~ok).then(pl.when(pl.col("status") == "ok").then(pl.lit("unreadable")).otherwise(pl.col("status")))
    orders = (
        observations.lazy()
        .group_by(*CELL, *ORDER)
        .agg(
            given.sum().alias("hits"),
            given.count().alias("n"),
            pl.len().alias("all"),
            (given == given.round()).all().alias("whole"),
            why.min().alias("lost"),
        )
        .with_columns(orders=pl.len().over(*CELL))
        .collect()
    )
    unit = math.lcm(*(n for n in orders["n"].unique() if n)) * math.lcm(*orders["orders"].unique())
    if not orders["whole"].all() or unit >= EXACT:
        unit = 1
    hits, n, every = (pl.col(name).cast(pl.Float64) for name in ("hits", "n", "all"))
    whole = (pl.col("n") > 0).all()
    # Divisions first: each is a whole number where the scores are counts.
    cells = orders.group_by(*CELL).agg(
        pl.when(whole).then((hits * (unit / (n * pl.col("orders")))).sum()).alias("counts"),
        (hits / every).mean().alias("least"),
        ((hits + every - n) / every).mean().alias("greatest"),
        pl.when(~whole).then(pl.col("lost").min()).alias("lost"),
    )
    return cells, float(unit)


def _places(cells: pl.DataFrame, design: pl.DataFrame, people: pl.DataFrame) -> tuple[Codes, ...]:
    known = (design["scenario"].to_list(), people["face"].to_list(), list(VARIANTS))
    return tuple(
        cells[name].cast(pl.String).replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
        for name, names in zip(CELL, known, strict=True)
    )


def _filled(shape: tuple[int, ...], place: tuple[Codes, ...], values: pl.Series, empty: float) -> Array:
    found: Array = np.full(shape, empty)
    found[place] = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return found


def _codes(shape: tuple[int, ...], place: tuple[Codes, ...], values: pl.Series, statuses: list[str]) -> Codes:
    found: Codes = np.full(shape, len(statuses), dtype=np.int64)
    known = dict(zip(statuses, range(len(statuses)), strict=True))
    found[place] = [-1 if status is None else known[status] for status in values]
    return found
