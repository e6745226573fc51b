"""What the tests between settings of the dora studies compare, so that `plan` can say what they would find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import polars as pl

from .valence import LEVEL, LIMITS, unit_frame


def designs(rows: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Return the descriptors behind the means of each setting, and the answers of each two settings of a modality."""
    means = unit_frame(rows)
    if means is None:
        return None
    whole = means.filter(pl.col("dimension").is_null()).drop("dimension")
    return pl.concat([whole, *_differences(rows)], how="diagonal_relaxed")


def _differences(rows: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
    for name, part in rows.items():
        for (modality,), own in part.group_by("modality", maintain_order=True):
            for first, second in combinations(own["setting"].unique(maintain_order=True), 2):
                two = own.filter(pl.col("setting").is_in([first, second]))
                yield _units(name, two, {"modality": modality, "setting": first, "against": second})


def _units(name: str, rows: pl.DataFrame, group: dict[str, object]) -> pl.DataFrame:
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
