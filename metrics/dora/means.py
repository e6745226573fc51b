"""Means over associations by modality, setting and dimension, with intervals that draw whole descriptors.

Rows have `modality`, `setting`, `dimension`, `descriptor`, `value` (null where missing) and `status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import defined
from ...core.statistics.estimates import interval_caveats, undefined
from ...core.statistics.intervals import FREE, Array, Limits, mean_bounds, ratio
from ...core.statistics.resampling import bootstrap
from ...probes.dora.terms import CELL, PLACE
from .options import DoraAssociationsOptions


class Averaged(msgspec.Struct, frozen=True, kw_only=True):
    """What is averaged."""

    name: str
    rows: pl.DataFrame
    unit: str = "%"
    limits: Limits = (0.0, 100.0)
    group: dict[str, Scalar] = {}
    """What the group of each estimate has besides its cell."""


def mean_estimates(
    measures: Sequence[Averaged], every: pl.DataFrame, options: DoraAssociationsOptions
) -> Iterator[Estimate]:
    """Yield the mean of each measure by setting, and by setting and dimension.

    A setting of `every` association of which none counts has an estimate without a value.
    """
    for measure in measures:
        yield from _nothing(measure, every, options)
        parts = list(cells(measure.rows))
        if not parts:
            continue
        sums = _sums([part for _, part in parts])
        low, high = bootstrap(sums, _mean, options.plan, (measure.limits or FREE,))
        for number, (group, part) in enumerate(parts):
            ends = defined(low[number, 0]), defined(high[number, 0])
            yield _estimate(measure, group, part, ends, options)


def cells(rows: pl.DataFrame) -> Iterator[tuple[dict[str, Scalar], pl.DataFrame]]:
    """Yield the rows of each setting, and of each dimension of it."""
    for (modality, setting), part in rows.group_by("modality", "setting", maintain_order=True):
        cell = {"modality": modality, "setting": setting}
        yield cell, part
        for (dimension,), own in part.group_by("dimension", maintain_order=True):
            yield {**cell, "dimension": dimension}, own


def _nothing(measure: Averaged, every: pl.DataFrame, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    there = set(measure.rows.select(CELL).rows())
    for modality, setting in every.select(CELL).unique(maintain_order=True).rows():
        if (modality, setting) not in there:
            yield Estimate.from_flat(
                metric=measure.name,
                group={"modality": modality, "setting": setting} | measure.group,
                value=None,
                unit=measure.unit,
                level=options.level,
                clusters=0,
                **undefined("no association counts"),
            )


def by_descriptor(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per descriptor: the mean of its values; missing where it has none."""
    value = pl.col("value").mean()
    status = pl.when(pl.col("value").is_not_null().any()).then(pl.lit("ok")).otherwise(pl.col("status").first())
    return rows.group_by(PLACE, maintain_order=True).agg(value=value, status=status)


def _sums(parts: Sequence[pl.DataFrame]) -> Array:
    """Return count and sum per descriptor, shape (descriptors, parts, 1, 2)."""
    names = pl.concat([part["descriptor"] for part in parts]).unique().sort()
    places = {name: place for place, name in enumerate(names)}
    sums = np.zeros((len(places), len(parts), 1, 2))
    for number, part in enumerate(parts):
        read = part.drop_nulls("value")
        code = np.array([places[name] for name in read["descriptor"]], dtype=np.int64)
        np.add.at(sums[:, number, 0, 0], code, 1.0)
        np.add.at(sums[:, number, 0, 1], code, read["value"].to_numpy().astype(np.float64))
    return sums


def _mean(totals: Array) -> Array:
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


def _estimate(
    measure: Averaged,
    group: dict[str, Scalar],
    part: pl.DataFrame,
    ends: tuple[float | None, float | None],
    options: DoraAssociationsOptions,
) -> Estimate:
    read = part.drop_nulls("value")
    clusters, missing = read["descriptor"].n_unique(), part.height - read.height
    bounds = mean_bounds(float(read["value"].sum()), read.height, missing, measure.limits)
    return Estimate.from_flat(
        metric=measure.name,
        group=group | measure.group,
        value=float(read["value"].mean()) if read.height else None,  # type: ignore[arg-type]
        unit=measure.unit,
        low=ends[0],
        high=ends[1],
        level=options.level,
        interval=f"{options.interval} (descriptor)" if ends[0] is not None else "",
        n=read.height,
        clusters=clusters,
        missing=dict(part.filter(pl.col("value").is_null())["status"].value_counts().sort("status").rows()),
        bound_low=bounds[0],
        bound_high=bounds[1],
        **({"caveats": interval_caveats(clusters, ends[0])} if read.height else undefined("no answer could be read")),
    )
