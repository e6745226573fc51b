"""What could not be read, by cell, and each kind of it by one factor."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from scipy import stats

from ..core.estimates import MISSING, Estimate
from ._missing import Group, missing_estimates
from ._pairs import missing_by_status


def missing(frame: pl.DataFrame, cell: Sequence[str], factor: str, level: float) -> list[Estimate]:
    """Return what is missing by `cell`, and the share of each kind of unreadable answer by `factor`."""
    groups = [
        Group(dict(zip(cell, values, strict=True)), int((part["status"] == "ok").sum()), missing_by_status(part))
        for values, part in frame.partition_by(*cell, as_dict=True, maintain_order=True).items()
    ]
    return [*missing_estimates(groups, level), *_kinds(frame, factor, level)]


def _kinds(frame: pl.DataFrame, factor: str, level: float) -> list[Estimate]:
    if "reason" not in frame.columns:
        return []
    asked = dict(frame.group_by(factor).len().iter_rows())
    lost = (
        frame.filter(pl.col("status") == "unreadable").group_by(pl.col("reason").fill_null("no reason"), factor).len()
    )
    return [
        _kind(reason, {factor: value}, (count, asked[value]), level)
        for reason, value, count in lost.sort("reason", factor).iter_rows()
    ]


def _kind(reason: str, group: dict[str, str], counts: tuple[int, int], level: float) -> Estimate:
    count, total = counts
    interval = stats.binomtest(count, total).proportion_ci(level, method="wilson")
    return Estimate(
        metric="unreadable",
        group={"kind": reason, **group},
        value=100 * count / total,
        unit="%",
        low=100 * float(interval.low),
        high=100 * float(interval.high),
        level=level,
        interval="Wilson, answers",
        n=total,
        topic=MISSING,
    )
