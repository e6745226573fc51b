"""The associations of a run in one table: how salient, how negative, how toxic, how biased they were judged to be."""

from __future__ import annotations

import msgspec
import polars as pl

from ..core.associations import PAIR, count_pairs, judgements, measure_cells, mentions, with_answers
from ._dora_options import DoraAssociationsOptions


class Associations(msgspec.Struct, frozen=True):
    """What a run found."""

    every: pl.DataFrame
    """Each pair as `prejudge.core.salience.measure` gives it, with what `with_answers` adds."""
    kept: pl.DataFrame
    """Those that count, by the option `method`."""
    levels: pl.DataFrame
    """One row per judgement of these: `PAIR`, `judgement`, `level`, `status`."""
    asked: tuple[str, ...]
    """Stages that were asked."""


def gather(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    """Put the stages together; raises `DataError` where a column is absent."""
    counted = count_pairs(mentions(observations))
    every = with_answers(measure_cells(counted, options.salience_level, options.reading), observations)
    kept = every if options.column is None else every.filter(options.column)
    levels = judgements(observations).join(kept.select(PAIR), on=PAIR, how="semi", maintain_order="left")
    asked = tuple(observations["stage"].unique(maintain_order=True).drop_nulls().to_list())
    return Associations(every, kept, levels, asked)
