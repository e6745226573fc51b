"""The kinds of answers that could not be read: how often each stands among all that were asked for."""

from __future__ import annotations

import polars as pl

from ..contracts.estimates import MISSING, Estimate
from ..contracts.records import Scalar
from .binomial import wilson_interval


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
