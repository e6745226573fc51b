"""From answers to order-invariant scores: one per scenario, face and variant, with its bounds.

The score is the share of answers that choose the positive option, or the first where neither is positive, as the mean
of the orders' means (Gulati et al. 2025, section 3.4). It is missing if an order has no readable answer: the others
are not order-invariant.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
import polars as pl

from ...core.contracts.errors import DataError
from ...core.statistics.observations import require_columns, require_known
from ...probes.attractiveness.terms import DESIGN, ORDER, TRAITS, VARIANTS

CELL = ("scenario", "face", "variant")
NEEDS = frozenset({*DESIGN, *TRAITS, *ORDER, "face", "variant", "human", "score", "p_a", "status"})
NOT_ASKED = "not asked"
STEPS = 2.0**49
"""Steps from 0 to 1 to which shares are rounded before they are added."""


class Scenario(msgspec.Struct, frozen=True):
    """What a scenario is about."""

    id: str
    category: str
    kind: str
    positive: str | None
    stereotype: str | None


class Scores(msgspec.Struct, frozen=True, dict=True):
    """Scores of every scenario, face and variant."""

    images: pl.DataFrame
    """Those of `gather`."""

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """Return the scenarios in the order of the answers."""
        design = self.images.select(DESIGN).unique(maintain_order=True)
        return [Scenario(*row) for row in design.iter_rows()]

    @cached_property
    def faces(self) -> pl.DataFrame:
        """Return a row per scenario and face: both scores, their `mean` and `change`, with its bounds, and `status`."""
        told = ("score", "least", "greatest", "status")
        sides = [self.images.filter(variant=variant).drop("variant") for variant in VARIANTS]
        both = sides[0].join(
            sides[1].select("scenario", "face", *told),
            on=["scenario", "face"],
            how="left",
            suffix="_filtered",
            maintain_order="left",
        )
        first, second = pl.col("score"), pl.col("score_filtered")
        why = [pl.col(name) for name in ("status", "status_filtered")]
        # Of two reasons the last in alphabetical order stands, but for an image that was not asked.
        lost = [pl.when(one != "ok").then(pl.when(one == NOT_ASKED).then(pl.lit("~")).otherwise(one)) for one in why]
        return both.with_columns(
            change=second - first,
            mean=(first + second) / 2,
            least=pl.col("least_filtered") - pl.col("greatest"),
            greatest=pl.col("greatest_filtered") - pl.col("least"),
            status=pl.max_horizontal(lost).replace("~", NOT_ASKED).fill_null("ok"),
        )

    def levels(self, by: str) -> tuple[str, ...]:
        """Return the existing labels of gender, age group or race."""
        return tuple(self.images[by].drop_nulls().unique().sort())

    @property
    def compared(self) -> list[str]:
        """Return the traits by which there are groups of faces."""
        return [by for by in TRAITS if len(self.levels(by)) > 1]


def gather(observations: pl.DataFrame) -> pl.DataFrame:
    """Return a row per scenario, face and variant, asked or not.

    It has what is known of scenario and face; `score` and `status`; the score if every missing answer were against the
    counted option (`least`), and if every one were for it (`greatest`); and of the face how often its answers are (a)
    (`p_a`), and how much oftener where the instruction names that first (`rise`).

    Raises:
        DataError: a column is absent, a variant has an unknown name, or a face is described in two ways.
    """
    require_columns(observations, set(NEEDS))
    require_known(observations, {"variant": VARIANTS})
    design = observations.select(DESIGN).unique(maintain_order=True).cast(pl.String)
    people = observations.select("face", *TRAITS).unique(maintain_order=True).cast(pl.String)
    for frame, key in ((design, "scenario"), (people, "face")):
        if twice := frame.filter(frame[key].is_duplicated())[key].to_list():
            raise DataError(
                f"{key} {twice[0]!r} has two different descriptions. Give it one category, kind, gender and so on.",
                code="data.contradiction",
            )
    grid = design.join(people, how="cross", maintain_order="left_right").join(
        pl.DataFrame({"variant": VARIANTS}), how="cross", maintain_order="left_right"
    )
    return (
        grid.join(_cells(observations), on=CELL, how="left", maintain_order="left")
        .join(_positions(observations), on="face", how="left", maintain_order="left")
        .with_columns(
            pl.col("scenario").cast(pl.Enum(design["scenario"])),
            pl.col("variant").cast(pl.Enum(VARIANTS)),
            pl.col("least").fill_null(0.0),
            pl.col("greatest").fill_null(1.0),
            pl.col("status").fill_null(NOT_ASKED),
        )
    )


def _positions(observations: pl.DataFrame) -> pl.DataFrame:
    ok = (pl.col("status") == "ok") & pl.col("p_a").is_not_null()
    share = pl.col("p_a").cast(pl.Float64)
    first, second = (share.filter(pl.col("asked") == order).mean() for order in ("ab", "ba"))
    by_face = observations.lazy().filter(ok).group_by(pl.col("face").cast(pl.String))
    return by_face.agg(share.mean(), rise=first - second).collect()


def _cells(observations: pl.DataFrame) -> pl.DataFrame:
    """Return one row per scenario, face and variant that was asked."""
    ok = (pl.col("status") == "ok") & pl.col("score").is_not_null()
    given = _in_steps(pl.when(ok).then(pl.col("score").cast(pl.Float64)))
    # A status of `ok` without a score is an answer that could not be read.
    why = pl.when(~ok).then(pl.when(pl.col("status") == "ok").then(pl.lit("unreadable")).otherwise(pl.col("status")))
    hits, every = pl.col("hits"), pl.col("every")
    lost = pl.col("mean").is_null().any()
    orders = (
        observations.lazy()
        .group_by(*CELL, *ORDER)
        .agg(
            given.sum().alias("hits"),
            given.count().alias("n"),
            given.mean().alias("mean"),
            every=pl.len(),
            why=why.min(),
        )
    )
    cells = orders.group_by(CELL).agg(
        # In whatever order the answers stand, equal scores are equal.
        pl.when(~lost).then(_in_steps(pl.col("mean")).mean().round(14)).alias("score"),
        _in_steps(hits / every).mean().alias("least"),
        _in_steps((hits + every - pl.col("n")) / every).mean().alias("greatest"),
        pl.when(lost).then(pl.col("why").min()).otherwise(pl.lit("ok")).alias("status"),
    )
    return cells.with_columns(pl.col(CELL).cast(pl.String)).collect()


def _in_steps(share: pl.Expr) -> pl.Expr:
    """Round shares so that up to 16 of them add up exactly.

    Then their sum is the same to the last bit in whatever order; Polars adds in an order of its own.
    """
    return (share * STEPS).round() / STEPS
