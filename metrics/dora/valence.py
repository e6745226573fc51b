"""Valence: which share of the associations is negative, which toxic; by setting, by dimension, and apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.effects import Tested
from ...core.statistics.independent import Answers, mann_whitney, two_shares
from ...core.statistics.observations import percent
from ...probes.dora.terms import PLACE
from .counts import Associations
from .means import Averaged, by_descriptor
from .options import DoraAssociationsOptions

VALENCES = {"negative": ("sentiment", "negative"), "toxic": ("toxicity", "toxic")}
"""Each measure: the stage it is read from, and the label it counts."""
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
    """Yield what is averaged: over associations (or judgements), and over descriptors."""
    for name, part in rows.items():
        shared: dict[str, Any] = {"unit": UNITS[name], "limits": LIMITS[name]}
        yield Averaged(name=name, rows=part, **shared)
        yield Averaged(name=name + EACH, rows=by_descriptor(part), **shared)


def differences(rows: Mapping[str, pl.DataFrame], options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the tests between each two settings of a modality, whole descriptors permuted."""
    for name, part in rows.items():
        for (modality,), own in part.group_by("modality", maintain_order=True):
            for first, second in combinations(own["setting"].unique(maintain_order=True), 2):
                group = {"modality": modality, "setting": first, "against": second}
                yield _difference(name, group, own.filter(pl.col("setting").is_in([first, second])), options)


def _difference(name: str, group: dict[str, Any], rows: pl.DataFrame, options: DoraAssociationsOptions) -> Estimate:
    answers = Answers(
        rows["value"].cast(pl.Float64).fill_null(np.nan).to_numpy(),
        (rows["setting"] != group["setting"]).to_numpy().astype(np.int64),
        rows["descriptor"].rank("dense").to_numpy().astype(np.int64) - 1,
    )
    if name == LEVEL:
        return _estimate(name, group, mann_whitney(answers, options.plan), (1.0, "Cliff's delta", 0), options)
    shares = Answers(answers.values / 100, answers.groups, answers.clusters)
    return _estimate(name, group, two_shares(shares, options.plan), (100.0, "percentage points", 1), options)


def _estimate(
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
    """Return the descriptors behind the means in which each counts once: what runs are compared by."""
    parts = []
    for name, part in rows.items():
        each = by_descriptor(part)
        for dimension in (pl.lit(None, dtype=pl.String), pl.col("dimension")):
            parts.append(_units(each, name, dimension))
    return pl.concat(parts) if parts else None


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
    return pl.concat([whole, *_difference_units(rows)], how="diagonal_relaxed")


def _difference_units(rows: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
    for name, part in rows.items():
        for (modality,), own in part.group_by("modality", maintain_order=True):
            for first, second in combinations(own["setting"].unique(maintain_order=True), 2):
                two = own.filter(pl.col("setting").is_in([first, second]))
                yield _design_units(name, two, {"modality": modality, "setting": first, "against": second})


def _design_units(name: str, rows: pl.DataFrame, group: dict[str, object]) -> pl.DataFrame:
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
