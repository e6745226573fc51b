"""The associations of a run in one table: how salient, how negative, how toxic, how biased they were judged to be."""

from __future__ import annotations

import msgspec
import polars as pl

from ..core.associations import PAIR, count_pairs, measure_cells, mentions
from ._dora_options import DoraAssociationsOptions

JUDGED = ("sentiment", "toxicity")
ABSENT = "absent"
"""Status of an association that was not asked about."""


class Associations(msgspec.Struct, frozen=True):
    """What a run found."""

    every: pl.DataFrame
    """Each pair as `prejudge.core.salience.measure` gives it, with `sentiment`, `toxicity` and `STAGE_status`."""
    kept: pl.DataFrame
    """Those that count, by the option `method`."""
    levels: pl.DataFrame
    """One row per judgement of these: `PAIR`, `judgement`, `level`, `status`."""
    asked: tuple[str, ...]
    """Stages that were asked."""


def gather(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    """Put the stages together; raises `DataError` where a column is absent."""
    every = measure_cells(count_pairs(mentions(observations)), options.salience_level, options.reading)
    asked = tuple(observations["stage"].unique(maintain_order=True).drop_nulls().to_list())
    for stage in JUDGED:
        every = _labelled(every, observations, stage)
    kept = every if options.column is None else every.filter(options.column)
    return Associations(every, kept, _levels(kept, observations), asked)


def _labelled(pairs: pl.DataFrame, observations: pl.DataFrame, stage: str) -> pl.DataFrame:
    """Add the label of a stage as a column of its name; null where it could not be read or was not asked."""
    if "label" not in observations.columns or not (observations["stage"] == stage).any():
        nothing = pl.lit(None, dtype=pl.String)
        return pairs.with_columns(nothing.alias(stage), pl.lit(ABSENT).alias(f"{stage}_status"))
    rows = observations.filter(pl.col("stage") == stage).unique(PAIR, keep="first", maintain_order=True)
    known = rows.select(
        *PAIR,
        pl.when(pl.col("status") == "ok").then(pl.col("label").str.to_lowercase()).alias(stage),
        pl.col("status").alias(f"{stage}_status"),
    )
    joined = pairs.join(known, on=PAIR, how="left", maintain_order="left")
    return joined.with_columns(pl.col(f"{stage}_status").fill_null(ABSENT))


def _levels(kept: pl.DataFrame, observations: pl.DataFrame) -> pl.DataFrame:
    if "level" not in observations.columns:
        schema = dict.fromkeys((*PAIR, "status"), pl.String)
        return pl.DataFrame(schema=schema | {"judgement": pl.Int64, "level": pl.Float64})
    rows = observations.filter(pl.col("stage") == "levels")
    level = pl.when(pl.col("status") == "ok").then(pl.col("level").cast(pl.Float64))
    judged = rows.select(*PAIR, "judgement", "status", level=level)
    return judged.join(kept.select(PAIR), on=PAIR, how="semi", maintain_order="left")
