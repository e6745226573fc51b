"""Units: pairs as the means that the estimates are, in the columns that `Metric.units` promises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import polars as pl


class Measure(msgspec.Struct, frozen=True):
    """One measure that is a mean of pairs, or the difference of two such means."""

    name: str
    value: pl.Expr
    least: float | None = None
    greatest: float | None = None
    sign: pl.Expr = pl.lit(1)
    threshold: float | None = None


def unit_rows(
    pairs: pl.DataFrame, measures: Iterable[Measure], factors: Sequence[str], cluster: str
) -> list[pl.DataFrame]:
    """Return one frame per measure: a row per pair, with `factors` as the group and `cluster` as text."""
    return [pairs.select(*factors, *_columns(measure, cluster)) for measure in measures]


def _columns(measure: Measure, cluster: str) -> list[pl.Expr]:
    ok = pl.col("status") == "ok"
    return [
        pl.lit(measure.name).alias("metric"),
        pl.lit(measure.threshold, dtype=pl.Float64).alias("threshold"),
        pl.col("pair").cast(pl.String).alias("unit"),
        # Pairs without a cluster are one cluster together, as in the estimates.
        pl.col(cluster).cast(pl.String).fill_null("").alias("cluster"),
        measure.sign.cast(pl.Int8).alias("sign"),
        pl.when(ok).then(measure.value.cast(pl.Float64)).alias("value"),
        pl.lit(measure.least, dtype=pl.Float64).alias("least"),
        pl.lit(measure.greatest, dtype=pl.Float64).alias("greatest"),
        pl.col("status"),
    ]


def percent(hit: pl.Expr) -> pl.Expr:
    """Return 100 where `hit`, else 0."""
    return 100.0 * hit.cast(pl.Float64)
