"""Pivot: the rows of one unit, such as the sentences of one item, side by side in one row."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import polars as pl

from ..contracts.errors import DataError
from .observations import ABSENT, require_columns

KEYS = "keys"
"""Column of a pivoted frame: the keys of the exchanges behind a row."""
PAIR = ("first", "second")


class Pivot(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with one `index` become one row, with the `values` of each level of `on` in a column of the level's name.

    A row is `ok` only if all its levels are; else it has the status of the first level that is not, `absent` where the
    level has no row. All its values are then null. (The words are those of `polars.DataFrame.pivot`.)
    """

    index: str
    on: str
    levels: tuple[str, ...]
    """Every level of `on`: which there are is known before anybody answers."""
    values: str

    @property
    def needs(self) -> frozenset[str]:
        """Return the columns that are read."""
        return frozenset({self.index, self.on, self.values, "status"})


def pivoted(observations: pl.DataFrame, pivot: Pivot, keep: Iterable[str]) -> pl.DataFrame:
    """Return one row per unit: its index, the columns of `keep` (of its first row), a column per level, and `status`.

    Raises:
        DataError: a column is absent, a level is unknown, or a unit has two rows for one level.
    """
    kept = [name for name in dict.fromkeys(keep) if name != pivot.index]
    require_columns(observations, {*pivot.needs, *kept})
    _check(observations, pivot)
    rows = observations.select(pivot.index, *kept).unique(pivot.index, maintain_order=True)
    for number, level in enumerate(pivot.levels):
        rows = rows.join(_level(observations, pivot, number), on=pivot.index, how="left", maintain_order="left")
        rows = rows.with_columns(pl.col(f"_status{number}").fill_null(ABSENT)).rename({f"_value{number}": level})
    statuses = [pl.col(f"_status{number}") for number in range(len(pivot.levels))]
    faulty = pl.coalesce(pl.when(status != "ok").then(status) for status in statuses)
    settled = rows.with_columns(faulty.fill_null("ok").alias("status"), *_keys(rows, pivot))
    ok = pl.col("status") == "ok"
    return settled.with_columns(pl.when(ok).then(pl.col(level)).alias(level) for level in pivot.levels).drop(
        f"_{name}{number}" for name in ("status", "key") for number in range(len(pivot.levels))
    )


def pair_up(observations: pl.DataFrame, sides: tuple[str, str], keep: Iterable[str]) -> pl.DataFrame:
    """Return one row per pair: `pair`, `keep`, `status`, `first`, `second` and `difference`.

    `first` and `second` are the log-probabilities of the two sides in nats, `difference` is first minus second; all
    three are null unless `status` is `ok`. Rows come in the order of the pairs' first appearance.

    Raises:
        DataError: a column is absent, a side has an unknown name, or a pair has two rows for one side.
    """
    pivot = Pivot(index="pair", on="side", levels=sides, values="log_probability")
    pairs = pivoted(observations, pivot, keep).drop(KEYS)
    first, second = (pl.col(side).cast(pl.Float64).alias(name) for side, name in zip(sides, PAIR, strict=True))
    return pairs.with_columns(first, second).drop(sides).with_columns(difference=pl.col(PAIR[0]) - pl.col(PAIR[1]))


def _keys(rows: pl.DataFrame, pivot: Pivot) -> list[pl.Expr]:
    keys = [pl.col(f"_key{number}") for number in range(len(pivot.levels))]
    return [pl.concat_list(keys).list.drop_nulls().alias(KEYS)]


def _level(observations: pl.DataFrame, pivot: Pivot, number: int) -> pl.DataFrame:
    value = pl.col(pivot.values)
    known = value.is_not_null()
    if observations.schema[pivot.values].is_float():
        known = known & value.is_finite()
    ok = pl.col("status") == "ok"
    key = pl.col("key") if "key" in observations.columns else pl.lit(None)
    return observations.filter(pl.col(pivot.on).cast(pl.String) == pivot.levels[number]).select(
        pivot.index,
        value.alias(f"_value{number}"),
        pl.when(ok & ~known).then(pl.lit("unreadable")).otherwise(pl.col("status")).alias(f"_status{number}"),
        key.cast(pl.Binary).alias(f"_key{number}"),
    )


def _check(observations: pl.DataFrame, pivot: Pivot) -> None:
    levels = observations[pivot.on].cast(pl.String)
    if unknown := sorted(set(levels.unique().to_list()) - set(pivot.levels), key=str):
        raise DataError(
            f"unknown {pivot.on} {unknown[0]!r}. It is one of: {', '.join(map(repr, pivot.levels))}.",
            code="data.unknown-value",
        )
    twice = observations.filter(observations.select(pivot.index, pivot.on).is_duplicated())
    if twice.height:
        unit, level = twice.select(pivot.index, pivot.on).row(0)
        raise DataError(
            f"{pivot.index} {unit!r} has more than one row with {pivot.on} {level!r}. Give each a name of its own.",
            code="data.duplicate",
        )
