"""Observations: what is missing and why. Nothing is filled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..contracts.errors import DataError
from ..contracts.estimates import MISSING, Caveat, Estimate
from ..contracts.records import Scalar
from .intervals import LEAST_P, scaled, share, stats, wilson_interval


def exact_share(
    metric: str, group: dict[str, Scalar], counts: tuple[int, int], level: float, of: str, **fields: Any
) -> Estimate:
    """Return the share of hits in per cent with its exact interval.

    Args:
        metric: name of the measure.
        group: its group.
        counts: hits, and hits and misses together.
        level: confidence level.
        of: what is counted, such as `prompts`.
        fields: more flat fields of the estimate.
    """
    found = share(*counts, level)
    ends = {"value": found.value, "low": found.low, "high": found.high}
    told = {"unit": "%", "interval": f"exact (Clopper-Pearson), {of}" if counts[1] else ""}
    told |= {name: scaled(end, 100) for name, end in ends.items()} | fields
    return Estimate.from_flat(metric=metric, group=group, level=level, n=counts[1], **told)


def percent(hit: pl.Expr) -> pl.Expr:
    """Return 100 where `hit`, else 0."""
    return 100.0 * hit.cast(pl.Float64)


ABSENT = "absent"
"""Status of a pair that lacks the row of one side."""


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


def missing_groups(frame: pl.DataFrame, by: Sequence[str]) -> list[Group]:
    """Return the rows of each group, in the order in which groups first appear."""
    counts = frame.group_by(*by, "status", maintain_order=True).len()
    found = []
    for values, part in counts.partition_by(*by, as_dict=True, maintain_order=True).items():
        told = dict(part.select("status", "len").sort("status").iter_rows())
        found.append(Group(dict(zip(by, values, strict=True)), told.pop("ok", 0), told))
    return found


def missing_by_cell(frame: pl.DataFrame, cell: Sequence[str], factor: str, level: float) -> list[Estimate]:
    """Return what is missing by `cell`, and the share of each kind of unreadable answer by `factor`."""
    return [*missing_estimates(missing_groups(frame, cell), level), *unreadable_by(frame, factor, level)]
