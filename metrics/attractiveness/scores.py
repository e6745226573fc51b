"""From answers to order-invariant scores: one per scenario, face and variant, with its bounds.

The score is the share of answers that choose the positive option, or the first where neither is positive, as the mean
of the orders' means (Gulati et al. 2025, section 3.4). It is missing if an order has no readable answer: the others
are not order-invariant. Artefacts that are not bias: positions of labels, order of the instruction,
unreadable answers.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.errors import DataError
from ...core.contracts.estimates import POSITION, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import defined, p_of
from ...core.statistics.estimates import correct
from ...core.statistics.intervals import CONTRAST, Array, Codes, Flags, ratio
from ...core.statistics.observations import Group, missing_estimates, require_columns, unreadable_kinds
from ...core.statistics.resampling import bootstrap, flip_test
from ...probes.attractiveness.terms import DESIGN, ORDER, TRAITS, VARIANTS
from .options import AttractivenessMetricOptions

LABEL, INSTRUCTION = "label (a)", "(a) named first in the instruction"


def position_estimates(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of (a), and by how much it rises where the instruction names (a) first."""
    ok = (pl.col("status") == "ok") & pl.col("p_a").is_not_null()
    share = pl.col("p_a").cast(pl.Float64)
    by_face = (
        observations.lazy()
        .filter(ok)
        .group_by("face")
        .agg(
            share.mean().alias("all"),
            (share.filter(pl.col("asked") == "ab").mean() - share.filter(pl.col("asked") == "ba").mean()).alias("rise"),
        )
        .sort("face")
        .collect()
    )
    if by_face.is_empty():
        return []
    columns = [by_face[name].fill_null(np.nan).to_numpy() for name in ("all", "rise")]
    values = np.stack([columns[0] - 0.5, columns[1]])
    found = list(_positions(values, options))
    return correct(found, options.correction, options.alpha, "places")


def _positions(values: Array, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    sums = column_sums(values)
    low, high = bootstrap(sums, mean, options.plan, (CONTRAST,))
    flipped = flip_test(sums, options.plan)
    for row, (place, neutral, unit) in enumerate(((LABEL, 50.0, "%"), (INSTRUCTION, 0.0, "percentage points"))):
        there = ~np.isnan(values[row])
        n, p = int(there.sum()), p_of(flipped[row, 0])
        ends = [defined(end[row, 0]) for end in (low, high)]
        value = float(values[row][there].mean()) if n else None
        group: dict[str, Scalar] = {"position": place}
        yield Estimate.from_flat(
            metric="position_bias",
            group=group,
            value=None if value is None else neutral + 100 * value,
            neutral=neutral,
            unit=unit,
            low=None if ends[0] is None else neutral + 100 * ends[0],
            high=None if ends[1] is None else neutral + 100 * ends[1],
            level=options.level,
            interval=f"{options.interval} (face)" if ends[0] is not None else "",
            n=n,
            clusters=n,
            test="sign flip of faces, permutation" if p is not None else "",
            statistic=value if p is not None else None,
            p=p,
            family="places of the labels",
            effect=value,
            effect_name="risk difference" if value is not None else "",
            effect_low=ends[0],
            effect_high=ends[1],
            topic=POSITION,
        )


def missing_answers(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of missing answers by category and variant, and of each kind of unreadable answer."""
    cells = (
        observations.lazy()
        .group_by("category", "variant", "status")
        .len()
        .sort("category", "variant", "status")
        .collect()
    )
    groups = []
    for (category, variant), part in cells.partition_by("category", "variant", as_dict=True).items():
        counts = dict(part.select("status", "len").iter_rows())
        answered = counts.pop("ok", 0)
        groups.append(Group({"category": category, "variant": variant}, answered, counts))
    return [*missing_estimates(groups, options.level), *unreadable_kinds(observations, options.level)]


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
    """The score if every missing answer were against the counted option, and if every one were for it."""
    lost: Codes
    """Index in `statuses` of the reason why a score is missing; -1 if it is not missing."""
    statuses: list[str]

    @property
    def change(self) -> Array:
        """Return the score with the filter minus that without, shape (scenarios, faces)."""
        return rounded(self.score[..., 1] - self.score[..., 0])

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


def mean(totals: Array) -> Array:
    """Return the mean of sums with the columns count and total, as `bootstrap` wants it."""
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


def column_sums(values: Array) -> Array:
    """Return count and total per face of one or several measures (measures, faces)."""
    there = ~np.isnan(values)
    return np.stack([there.astype(np.float64), np.nan_to_num(values)], axis=-1).swapaxes(0, 1)[:, :, None]
