"""The associations of a run in one table: how salient, how negative, how toxic, how biased they were judged to be."""

from __future__ import annotations

import msgspec
import polars as pl

from ...probes.dora.associations import ABSENT, PAIR, count_pairs, judgements, measure_cells, mentions, with_answers
from .options import DoraAssociationsOptions


class Associations(msgspec.Struct, frozen=True):
    """What a run found."""

    every: pl.DataFrame
    """Each pair as `prejudge.probes.dora.salience.measure` gives it, with what `with_answers` adds."""
    kept: pl.DataFrame
    """Those that count, by the option `method`."""
    levels: pl.DataFrame
    """One row per judgement of these: `PAIR`, `judgement`, `level`, `status`; `ABSENT` where nobody was asked."""
    judged: pl.DataFrame
    """The pairs that the judge was asked about, whether they count or not."""
    asked: tuple[str, ...]
    """Stages that were asked."""


def gather(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    """Put the stages together; raises `DataError` where a column is absent."""
    counted = count_pairs(mentions(observations))
    every = with_answers(measure_cells(counted, options.salience_level, options.reading), observations)
    kept = every if options.column is None else every.filter(options.column)
    asked = tuple(observations["stage"].unique(maintain_order=True).drop_nulls().to_list())
    levels = judgements(observations)
    return Associations(every, kept, _of(kept, levels), levels.select(PAIR).unique(maintain_order=True), asked)


def _of(kept: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return the judgements of the pairs that count; of one that the judge was not asked about, each is absent."""
    # The study chooses what is judged and the metric what counts, by options of their own, which may differ.
    never = kept.select(PAIR).join(levels, on=PAIR, how="anti", maintain_order="left")
    rows = never.join(levels.select("judgement").unique(maintain_order=True), how="cross")
    absent = rows.select(*PAIR, "judgement", status=pl.lit(ABSENT), level=pl.lit(None, dtype=pl.Float64))
    own = levels.join(kept.select(PAIR), on=PAIR, how="semi", maintain_order="left")
    return pl.concat([own.select(absent.columns), absent], how="vertical_relaxed")
