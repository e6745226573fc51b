"""How much is missing, by group, whether it differs between groups, and what kinds of answers could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ..contracts.estimates import MISSING, Estimate
from ..contracts.records import Scalar
from .pairs import missing_by_status
from .proportions import LEAST_P, scaled, wilson_interval
from .scipy_stats import stats


def unreadable_kinds(frame: pl.DataFrame, level: float) -> list[Estimate]:
    """Return the share of each kind of unreadable answer among all answers, the most frequent kind first."""
    lost = _counted(frame)
    if lost is None:
        return []
    counts = lost.group_by("reason").len().sort("len", "reason", descending=[True, False])
    return [_kind({"kind": reason}, (count, frame.height), level) for reason, count in counts.iter_rows()]


def unreadable_kinds_by(frame: pl.DataFrame, factor: str, level: float) -> list[Estimate]:
    """Return the share of each kind of unreadable answer among the answers with one value of `factor`."""
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
    """How many pairs of a group were answered, and how many were not, by status."""

    labels: dict[str, Scalar]
    answered: int
    missing: dict[str, int]

    @property
    def absent(self) -> int:
        """Return the count of missing pairs."""
        return sum(self.missing.values())


def missing_estimates(groups: Sequence[Group], level: float) -> list[Estimate]:
    """Return the share missing in all, tested for a difference between groups, and per group if any is missing."""
    everything = Group(
        {}, sum(g.answered for g in groups), dict(sum((Counter(g.missing) for g in groups), Counter[str]()))
    )
    whole = _estimate(everything, level)
    if not everything.absent:
        return [whole]
    return [_tested(whole, groups), *(_estimate(group, level) for group in groups)]


def _estimate(group: Group, level: float) -> Estimate:
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
        interval="Wilson, pairs" if total else "",
        n=total,
        missing=group.missing,
    )


def _tested(whole: Estimate, groups: Sequence[Group]) -> Estimate:
    table = np.array([[group.absent, group.answered] for group in groups if group.absent + group.answered])
    if len(table) < 2 or not table.sum(axis=0).all():
        return whole
    test = stats.chi2_contingency(table, correction=False)
    return whole.replace(
        test="chi-square of missing by group, pairs",
        statistic=float(test.statistic),
        p=max(float(test.pvalue), LEAST_P),
        effect=float(stats.contingency.association(table, method="cramer")),
        effect_name="Cramér's V",
    )


def missing_by_cell(frame: pl.DataFrame, cell: Sequence[str], factor: str, level: float) -> list[Estimate]:
    """Return what is missing_by_cell by `cell`, and the share of each kind of unreadable answer by `factor`."""
    groups = [
        Group(dict(zip(cell, values, strict=True)), int((part["status"] == "ok").sum()), missing_by_status(part))
        for values, part in frame.partition_by(*cell, as_dict=True, maintain_order=True).items()
    ]
    return [*missing_estimates(groups, level), *unreadable_kinds_by(frame, factor, level)]
