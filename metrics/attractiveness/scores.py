"""From answers to order-invariant scores: one per scenario, face and variant, with what bounds it.

The score is the share of answers that choose the positive option, or the first where neither is positive, as the mean
of the orders' means (Gulati et al. 2025, section 3.4). It is missing where an order has no readable answer: what is
left is then not order-invariant.
"""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.statistics.intervals import Array, Codes, Flags
from ...core.statistics.observations import require_columns
from ...probes.attractiveness.terms import DESIGN, ORDER, TRAITS, VARIANTS

DECIMALS = 12
CELL = ("scenario", "face", "variant")
NEEDS = frozenset({*DESIGN, *TRAITS, *ORDER, "face", "variant", "human", "score", "p_a", "status"})


class Scenario(msgspec.Struct, frozen=True):
    """What a scenario is about."""

    id: str
    category: str
    kind: str
    positive: str | None
    stereotype: str | None


class Scores(msgspec.Struct, frozen=True):
    """Scores of every scenario, face and variant; the arrays have the shape (scenarios, faces, variants)."""

    scenarios: list[Scenario]
    faces: list[str]
    labels: dict[str, list[str | None]]
    """Of each face: its gender, age group and race, where known."""
    score: Array
    """From 0 to 1; NaN is missing."""
    least: Array
    greatest: Array
    """The score if every missing answer were against, and for, the counted option."""
    lost: Codes
    """Place in `statuses` of the reason why a score is missing; -1 where it is there."""
    statuses: list[str]

    @property
    def change(self) -> Array:
        """Return the score with the filter less that without, shape (scenarios, faces)."""
        return rounded(self.score[..., 1] - self.score[..., 0])

    def level(self, by: str, name: str) -> Flags:
        """Return which faces have this label."""
        return np.array([label == name for label in self.labels[by]], dtype=np.bool_)

    def levels(self, by: str) -> list[str]:
        """Return the labels there are."""
        return sorted({label for label in self.labels[by] if label is not None})

    def codes(self, by: str) -> Codes:
        """Return the number of each face's label; -1 for none."""
        levels = self.levels(by)
        return np.array([-1 if label is None else levels.index(label) for label in self.labels[by]], dtype=np.int64)


def rounded(values: Array) -> Array:
    """Return values that are equal where they differ by rounding alone: ranks tell them apart otherwise."""
    found: Array = np.round(values, DECIMALS)
    return found


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
    cells = _cells(observations)
    statuses = sorted(cells["lost"].drop_nulls().unique().to_list())
    place = _places(cells, design, people)
    shape = (design.height, people.height, len(VARIANTS))
    return Scores(
        scenarios=[Scenario(*row) for row in design.iter_rows()],
        faces=people["face"].to_list(),
        labels={name: people[name].to_list() for name in TRAITS},
        score=rounded(_filled(shape, place, cells["score"], np.nan)),
        least=_filled(shape, place, cells["least"], 0.0),
        greatest=_filled(shape, place, cells["greatest"], 1.0),
        lost=_codes(shape, place, cells["lost"], statuses),
        statuses=[*statuses, "not asked"],
    )


def _cells(observations: pl.DataFrame) -> pl.DataFrame:
    """Return one row per scenario, face and variant, from one row per order of it."""
    ok = (pl.col("status") == "ok") & pl.col("score").is_not_null()
    given = pl.when(ok).then(pl.col("score").cast(pl.Float64))
    # A status of `ok` without a score is an answer that could not be read.
    why = pl.when(~ok).then(pl.when(pl.col("status") == "ok").then(pl.lit("unreadable")).otherwise(pl.col("status")))
    orders = (
        observations.lazy()
        .group_by(*CELL, *ORDER)
        .agg(given.mean().alias("mean"), *_ends(given), why.min().alias("lost"))
    )
    whole = pl.col("mean").null_count() == 0
    return (
        orders.group_by(*CELL)
        .agg(
            pl.when(whole).then(pl.col("mean").mean()).alias("score"),
            pl.col("least", "greatest").mean(),
            pl.when(~whole).then(pl.col("lost").min()).alias("lost"),
        )
        .collect()
    )


def _ends(given: pl.Expr) -> list[pl.Expr]:
    total, n = given.sum(), pl.len()
    return [(total / n).alias("least"), ((total + given.null_count()) / n).alias("greatest")]


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
