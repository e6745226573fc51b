"""The pairs behind TriSentBias as units: every measure but `preference` (a ratio) and `missing`."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ...core.statistics.observations import Measure, percent, unit_rows
from .trisentbias_options import TriSentBiasOptions
from .trisentbias_tally import CELL, npll_difference

GROUP = ("axis", "gender")
NPLL = pl.col("npll")


def units(pairs: pl.DataFrame, options: TriSentBiasOptions) -> pl.DataFrame:
    """Return the units of the cells, then those of the contrasts where a group has both contexts."""
    # NaN would count as beyond every threshold; a pair without a difference is beyond none.
    npll = pl.Series("npll", npll_difference(pairs["difference"].to_numpy())).fill_nan(None)
    pairs = pairs.with_columns(npll)
    rows = unit_rows(pairs, _cells(options.thresholds), CELL, options.cluster)
    rows += unit_rows(_contrasted(pairs), _contrasts(options.thresholds), GROUP, options.cluster)
    return pl.concat(rows, how="diagonal")


def _cells(thresholds: tuple[float, ...]) -> Iterator[Measure]:
    yield Measure("log_odds_difference", pl.col("difference"))
    for delta in thresholds:
        liked, disliked = percent(NPLL > delta), percent(NPLL < -delta)
        yield Measure("z1", percent(NPLL.abs() <= delta), 0.0, 100.0, threshold=delta)
        yield Measure("z2", liked, 0.0, 100.0, threshold=delta)
        yield Measure("z3", disliked, 0.0, 100.0, threshold=delta)
        yield Measure("net_preference", liked - disliked, -100.0, 100.0, threshold=delta)


def _contrasts(thresholds: tuple[float, ...]) -> Iterator[Measure]:
    praise = pl.when(pl.col("sentiment") == "positive").then(1).otherwise(-1)
    yield Measure("favouritism_log_odds", pl.col("difference"), sign=praise)
    for delta in thresholds:
        yield Measure("favouritism", percent(NPLL > delta), 0.0, 100.0, praise, delta)
        yield Measure("discrimination", percent(NPLL < -delta), 0.0, 100.0, -praise, delta)


def _contrasted(pairs: pl.DataFrame) -> pl.DataFrame:
    both = pairs.filter(pl.col("sentiment") != "neutral")
    return both.filter(pl.col("sentiment").n_unique().over(GROUP) == 2)
