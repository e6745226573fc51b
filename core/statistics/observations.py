"""Observations: two sides of a pair in one row, what is missing and why, and units of measures.

A pair is `ok` only if both sides are and both log-probabilities are finite; otherwise it is missing, under the status
of the first side that is not ok. Nothing is filled in. Units are pairs in the columns that `Metric.units` promises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import polars as pl

from ..contracts.errors import DataError
from ..contracts.estimates import MISSING, Caveat, Estimate
from ..contracts.records import Scalar
from .intervals import LEAST_P, scaled, stats, wilson_interval


class UnitMeasure(msgspec.Struct, frozen=True):
    """One measure that is a mean of pairs, or the difference of two such means."""

    name: str
    value: pl.Expr
    least: float | None = None
    greatest: float | None = None
    sign: pl.Expr = pl.lit(1)
    threshold: float | None = None


def unit_rows(
    pairs: pl.DataFrame, measures: Iterable[UnitMeasure], factors: Sequence[str], *ways: str
) -> list[pl.DataFrame]:
    """Return one frame per measure: a row per pair, with `factors` as the group, as `Metric.units` promises it.

    The last of `ways` is the cluster; of two that cross, the first is `row`.
    """
    return [pairs.select(*factors, *_columns(measure, ways)) for measure in measures]


def _columns(measure: UnitMeasure, ways: Sequence[str]) -> list[pl.Expr]:
    ok = pl.col("status") == "ok"
    # Pairs without a cluster are one cluster together, as in the estimates.
    *row, cluster = (pl.col(name).cast(pl.String).fill_null("") for name in ways)
    return [
        pl.lit(measure.name).alias("metric"),
        pl.lit(measure.threshold, dtype=pl.Float64).alias("threshold"),
        pl.col("pair").cast(pl.String).alias("unit"),
        cluster.alias("cluster"),
        measure.sign.cast(pl.Int8).alias("sign"),
        pl.when(ok).then(measure.value.cast(pl.Float64)).alias("value"),
        pl.lit(measure.least, dtype=pl.Float64).alias("least"),
        pl.lit(measure.greatest, dtype=pl.Float64).alias("greatest"),
        pl.col("status"),
        *(crossed.alias("row") for crossed in row),
        *(pl.lit(" x ".join(ways)).alias("ways") for _ in row),
    ]


def percent(hit: pl.Expr) -> pl.Expr:
    """Return 100 where `hit`, else 0."""
    return 100.0 * hit.cast(pl.Float64)


ABSENT = "absent"
"""Status of a pair that lacks the row of one side."""


def pair_up(observations: pl.DataFrame, sides: tuple[str, str], keep: Sequence[str]) -> pl.DataFrame:
    """Return one row per pair: `pair`, `keep`, `status`, `first`, `second` and `difference`.

    `first` and `second` are the log-probabilities of the two sides in nats, `difference` is first minus second; all
    three are null unless `status` is `ok`. Rows come in the order of the pairs' first appearance.

    Raises:
        DataError: a column is absent, a side has an unknown name, or a pair has two rows for one side.
    """
    require_columns(observations, {"pair", "side", "log_probability", "status", *keep})
    _check_sides(observations, sides)
    pairs = observations.select("pair", *(c for c in keep if c != "pair")).unique("pair", maintain_order=True)
    for side, name in zip(sides, ("first", "second"), strict=True):
        pairs = pairs.join(_side(observations, side, name), on="pair", how="left", maintain_order="left")
    return _settle(pairs)


def with_keys(pairs: pl.DataFrame, observations: pl.DataFrame, sides: tuple[str, str]) -> pl.DataFrame:
    """Add `first_key` and `second_key`, the keys of the exchanges behind the two sides; null where there are none."""
    key = pl.col("key") if "key" in observations.columns else pl.lit(None, dtype=pl.Binary)
    for side, name in zip(sides, ("first_key", "second_key"), strict=True):
        one = observations.filter(pl.col("side") == side).select("pair", key.alias(name))
        pairs = pairs.join(one, on="pair", how="left", maintain_order="left")
    return pairs


def require_columns(observations: pl.DataFrame, columns: set[str]) -> None:
    """Raise `DataError` that names the absent columns and those there are."""
    if absent := sorted(columns - set(observations.columns)):
        there = ", ".join(observations.columns)
        raise DataError(
            f"the observations have no column {', '.join(map(repr, absent))}; they have: {there}.",
            code="data.column-missing",
        )


def require_known(observations: pl.DataFrame, known: Mapping[str, Sequence[str]]) -> None:
    """Raise `DataError` that names a value which is none of those known of its column."""
    for column, names in known.items():
        if unknown := sorted(set(observations[column].drop_nulls().unique().to_list()) - set(names), key=str):
            raise DataError(
                f"unknown {column} {unknown[0]!r}. Use {', '.join(map(repr, names))}.", code="data.unknown-value"
            )


def missing_by_status(pairs: pl.DataFrame) -> dict[str, int]:
    """Count the pairs that are not ok, by status."""
    counts = pairs.filter(pl.col("status") != "ok").group_by("status").len().sort("status")
    return dict(counts.iter_rows())


def _check_sides(observations: pl.DataFrame, sides: tuple[str, str]) -> None:
    if unknown := sorted(set(observations["side"].unique().to_list()) - set(sides), key=str):
        raise DataError(
            f"unknown side {unknown[0]!r}. The sides of a pair are {sides[0]!r} and {sides[1]!r}.",
            code="data.unknown-value",
        )
    twice = observations.filter(observations.select("pair", "side").is_duplicated())
    if twice.height:
        pair, side = twice.select("pair", "side").row(0)
        raise DataError(
            f"pair {pair!r} has more than one row for side {side!r}. Give every pair a unique name.",
            code="data.duplicate",
        )


def _side(observations: pl.DataFrame, side: str, name: str) -> pl.DataFrame:
    score = pl.col("log_probability").cast(pl.Float64)
    readable = (pl.col("status") == "ok") & score.is_finite().fill_null(False)
    status = pl.when(readable).then(pl.lit("ok")).when(pl.col("status") == "ok").then(pl.lit("unreadable"))
    return observations.filter(pl.col("side") == side).select(
        "pair", score.alias(name), status.otherwise(pl.col("status")).alias(f"{name}_status")
    )


def _settle(pairs: pl.DataFrame) -> pl.DataFrame:
    first, second = (pl.col(name).fill_null(ABSENT) for name in ("first_status", "second_status"))
    settled = pairs.with_columns(pl.when(first != "ok").then(first).otherwise(second).alias("status"))
    ok = pl.col("status") == "ok"
    return settled.with_columns(pl.when(ok).then(pl.col(n)).alias(n) for n in ("first", "second")).select(
        pl.exclude("first_status", "second_status"), difference=pl.col("first") - pl.col("second")
    )


def unreadable_kinds(frame: pl.DataFrame, level: float) -> list[Estimate]:
    """Return the share of each kind of unreadable answer among all answers, the most frequent kind first."""
    lost = _counted(frame)
    if lost is None:
        return []
    counts = lost.group_by("reason").len().sort("len", "reason", descending=[True, False])
    return [_kind({"kind": reason}, (count, frame.height), level) for reason, count in counts.iter_rows()]


def unreadable_by(frame: pl.DataFrame, factor: str, level: float) -> list[Estimate]:
    """Return the share of unreadable answers, tested for a difference between values of `factor`, and that of each.

    Unlike `missing_estimates`, it is said in full also where nothing is unreadable; then come the kinds of each value.
    """
    lost = pl.col("status") == "unreadable"
    counts = frame.group_by(factor, maintain_order=True).agg(pl.len(), lost=lost.sum())
    groups = [Group({factor: value}, total - gone, {"unreadable": gone}) for value, total, gone in counts.iter_rows()]
    whole = _kind({}, (sum(g.absent for g in groups), frame.height), level) if groups else None
    if whole is None:
        return []
    shares = [_kind(group.labels, (group.absent, group.answered + group.absent), level) for group in groups]
    return [_tested(whole, groups, "answers"), *shares, *_kinds_by(frame, factor, level)]


def _kinds_by(frame: pl.DataFrame, factor: str, level: float) -> list[Estimate]:
    lost = _counted(frame)
    if lost is None:
        return []
    asked = dict(frame.group_by(factor).len().iter_rows())
    counts = lost.group_by("reason", factor).len().sort("reason", factor)
    return [
        _kind({"kind": reason, factor: value}, (count, asked[value]), level)
        for reason, value, count in counts.iter_rows()
    ]


def _counted(frame: pl.DataFrame) -> pl.DataFrame | None:
    if "reason" not in frame.columns:
        return None
    lost = frame.filter(pl.col("status") == "unreadable")
    return lost.with_columns(pl.col("reason").cast(pl.String).fill_null("no reason"))


def _kind(group: dict[str, Scalar], counts: tuple[int, int], level: float) -> Estimate:
    count, total = counts
    low, high = wilson_interval(count, total, level)
    return Estimate.from_flat(
        metric="unreadable",
        group=group,
        value=100 * count / total,
        unit="%",
        low=100 * low,
        high=100 * high,
        level=level,
        interval="Wilson, answers",
        n=total,
        topic=MISSING,
    )


class Group(msgspec.Struct, frozen=True):
    """How many answers, or pairs of them, a group has, and how many are missing, by status."""

    labels: dict[str, Scalar]
    answered: int
    missing: dict[str, int]

    @property
    def absent(self) -> int:
        """Return how many are missing."""
        return sum(self.missing.values())


def missing_estimates(groups: Sequence[Group], level: float, unit: str = "answers") -> list[Estimate]:
    """Return the share missing in all, tested for a difference between groups, and per group if any is missing.

    `unit` is the word for what is counted.
    """
    everything = Group(
        {}, sum(g.answered for g in groups), dict(sum((Counter(g.missing) for g in groups), Counter[str]()))
    )
    whole = _estimate(everything, level, unit)
    if not everything.absent:
        return [whole]
    return [_tested(whole, groups, unit), *(_estimate(group, level, unit) for group in groups)]


def _estimate(group: Group, level: float, unit: str) -> Estimate:
    total = group.answered + group.absent
    low, high = wilson_interval(group.absent, total, level) if total else (None, None)
    return Estimate.from_flat(
        metric="missing",
        group=dict(group.labels),
        value=100 * group.absent / total if total else None,
        unit="%",
        low=scaled(low, 100),
        high=scaled(high, 100),
        level=level,
        interval=f"Wilson, {unit}" if total else "",
        n=total,
        missing=group.missing,
    )


def _tested(whole: Estimate, groups: Sequence[Group], unit: str) -> Estimate:
    table = np.array([[group.absent, group.answered] for group in groups if group.absent + group.answered])
    if len(table) < 2 or not table.sum(axis=0).all():
        return whole
    test = stats.chi2_contingency(table, correction=False)
    uneven = (Caveat.UNEVEN_MISSING,) if test.pvalue <= 1 - whole.interval.level else ()
    return whole.replace(
        test=f"chi-square of {whole.metric} by group, {unit}",
        statistic=float(test.statistic),
        p=max(float(test.pvalue), LEAST_P),
        caveats=(*whole.caveats, *uneven),
        effect=float(stats.contingency.association(table, method="cramer")),
        effect_name="Cramér's V",
    )


def missing_by_cell(frame: pl.DataFrame, cell: Sequence[str], factor: str, level: float) -> list[Estimate]:
    """Return what is missing by `cell`, and the share of each kind of unreadable answer by `factor`."""
    groups = [
        Group(dict(zip(cell, values, strict=True)), int((part["status"] == "ok").sum()), missing_by_status(part))
        for values, part in frame.partition_by(*cell, as_dict=True, maintain_order=True).items()
    ]
    return [*missing_estimates(groups, level), *unreadable_by(frame, factor, level)]
