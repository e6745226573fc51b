"""Means over associations by modality, setting and dimension, with intervals that draw whole descriptors; valence.

Rows have `modality`, `setting`, `dimension`, `descriptor`, `value` (null where missing) and `status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.declared_rows import Design, part, prepared
from ...core.statistics.effects import Tested
from ...core.statistics.estimates import undefined
from ...core.statistics.independent import Answers, mann_whitney, two_shares
from ...core.statistics.inference import estimate
from ...core.statistics.measures import Mean
from ...core.statistics.observations import percent
from ...probes.dora.terms import CELL, PLACE
from .counts import Associations, Averaged
from .options import DoraAssociationsOptions


def mean_estimates(
    measures: Sequence[Averaged], every: pl.DataFrame, options: DoraAssociationsOptions
) -> Iterator[Estimate]:
    """Yield the mean of each measure by setting, and by setting and dimension.

    A setting of `every` association of which none counts has an estimate without a value.
    """
    for measure in measures:
        yield from _nothing(measure, every, options)
        mean = Mean(measure.name, value="value", unit=measure.unit, limits=measure.limits, group=measure.group)
        design = Design(measures=(mean,), clusters=("descriptor",))
        for group, rows in cells(prepared(measure.rows, design)):
            yield estimate(mean, part(group, rows, design), design, options)


def cells(rows: pl.DataFrame) -> Iterator[tuple[dict[str, Scalar], pl.DataFrame]]:
    """Yield the rows of each setting, and of each dimension of it, in plan order."""
    for (modality, setting), own in rows.group_by(*CELL, maintain_order=True):
        cell = {"modality": modality, "setting": setting}
        yield cell, own
        for (dimension,), few in own.group_by("dimension", maintain_order=True):
            yield {**cell, "dimension": dimension}, few


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


VALENCES = {"negative": ("sentiment", "negative"), "toxic": ("toxicity", "toxic")}
"""The stage and the counted label of each measure."""
LEVEL = "level"
EACH = "_per_descriptor"
"""End of the name of a mean in which each descriptor counts once."""
UNITS = {name: "%" for name in VALENCES} | {LEVEL: "1 to 5"}
LIMITS = {name: (0.0, 100.0) for name in VALENCES} | {LEVEL: (1.0, 5.0)}


def valued(found: Associations) -> dict[str, pl.DataFrame]:
    """Return the rows (`PLACE`, `value`, `status`) of each measure that was asked about."""
    rows = {
        name: found.kept.select(*PLACE, value=percent(pl.col(stage) == label), status=pl.col(f"{stage}_status"))
        for name, (stage, label) in VALENCES.items()
        if stage in found.asked
    }
    if "levels" in found.asked:
        rows[LEVEL] = found.levels.select(*PLACE, value=pl.col("level"), status=pl.col("status"))
    return rows


def measures(rows: Mapping[str, pl.DataFrame]) -> Iterator[Averaged]:
    """Yield the averaged values: over associations (or judgements), and over descriptors."""
    for name, own in rows.items():
        shared: dict[str, Any] = {"unit": UNITS[name], "limits": LIMITS[name]}
        yield Averaged(name=name, rows=own, **shared)
        yield Averaged(name=name + EACH, rows=by_descriptor(own), **shared)


def differences(rows: Mapping[str, pl.DataFrame], options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the tests between each two settings of a modality, whole descriptors permuted."""
    return (_difference(name, group, two, options) for name, group, two in _two_settings(rows))


def _two_settings(rows: Mapping[str, pl.DataFrame]) -> Iterator[tuple[str, dict[str, Any], pl.DataFrame]]:
    for name, every in rows.items():
        for (modality,), own in every.group_by("modality", maintain_order=True):
            for first, second in combinations(own["setting"].unique(maintain_order=True), 2):
                group = {"modality": modality, "setting": first, "against": second}
                yield name, group, own.filter(pl.col("setting").is_in([first, second]))


def _difference(name: str, group: dict[str, Any], rows: pl.DataFrame, options: DoraAssociationsOptions) -> Estimate:
    answers = Answers(
        rows["value"].cast(pl.Float64).fill_null(np.nan).to_numpy(),
        (rows["setting"] != group["setting"]).to_numpy().astype(np.int64),
        rows["descriptor"].rank("dense").to_numpy().astype(np.int64) - 1,
    )
    if name == LEVEL:
        return _valence_estimate(name, group, mann_whitney(answers, options.plan), (1.0, "Cliff's delta", 0), options)
    shares = Answers(answers.values / 100, answers.groups, answers.clusters)
    return _valence_estimate(name, group, two_shares(shares, options.plan), (100.0, "percentage points", 1), options)


def _valence_estimate(
    name: str,
    group: dict[str, Any],
    tested: Tested,
    shown: tuple[float, str, int],
    options: DoraAssociationsOptions,
) -> Estimate:
    """Return the estimate of a test; `shown`: the scale of the value, its unit, and which effect stands beside it."""
    scale, unit, beside = shown
    value, low, high = (
        None if end is None else scale * end
        for end in (tested.effects[0].value, tested.effects[0].low, tested.effects[0].high)
    )
    return Estimate.from_flat(
        metric=f"{name}_difference",
        group=group,
        value=value,
        neutral=0.0,
        unit=unit,
        low=low,
        high=high,
        level=options.level,
        interval=f"{options.interval} (descriptor)" if low is not None else "",
        n=tested.n,
        clusters=tested.clusters,
        family=f"{name} between settings of {group['modality']}",
        **tested.row(beside if len(tested.effects) > beside else 0),
    )


def unit_frame(rows: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Return the descriptors behind the means in which each counts once: the units of comparisons of runs."""
    found = [
        _units(by_descriptor(own), name, dimension)
        for name, own in rows.items()
        for dimension in (pl.lit(None, dtype=pl.String), pl.col("dimension"))
    ]
    return pl.concat(found) if found else None


def _units(each: pl.DataFrame, name: str, dimension: pl.Expr) -> pl.DataFrame:
    least, greatest = LIMITS[name]
    return each.select(
        "modality",
        "setting",
        dimension.alias("dimension"),
        metric=pl.lit(name + EACH),
        unit=pl.concat_str("dimension", "descriptor", separator=": "),
        cluster=pl.col("descriptor"),
        sign=pl.lit(1, dtype=pl.Int8),
        value=pl.col("value").cast(pl.Float64),
        least=pl.lit(least),
        greatest=pl.lit(greatest),
        status=pl.when(pl.col("value").is_null()).then(pl.col("status")).otherwise(pl.lit("ok")),
    )


def designs(rows: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Return the descriptors behind the means of each setting, and the answers of each two settings of a modality."""
    means = unit_frame(rows)
    if means is None:
        return None
    whole = means.filter(pl.col("dimension").is_null()).drop("dimension")
    return pl.concat([whole, *(_design_units(*one) for one in _two_settings(rows))], how="diagonal_relaxed")


def _design_units(name: str, group: dict[str, Any], rows: pl.DataFrame) -> pl.DataFrame:
    least, greatest = LIMITS[name]
    value = pl.col("value").cast(pl.Float64)
    return rows.with_row_index("number").select(
        *(pl.lit(level).alias(factor) for factor, level in group.items()),
        metric=pl.lit(f"{name}_difference"),
        test=pl.lit("mann-whitney" if name == LEVEL else None, dtype=pl.String),
        unit=pl.col("number").cast(pl.String),
        cluster=pl.col("descriptor"),
        sign=pl.when(pl.col("setting") == group["setting"]).then(1).otherwise(-1).cast(pl.Int8),
        value=value,
        least=pl.lit(least),
        greatest=pl.lit(greatest),
        status=pl.when(value.is_null()).then(pl.col("status")).otherwise(pl.lit("ok")),
    )
