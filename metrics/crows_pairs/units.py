"""The pairs behind CrowS-Pairs as units: the scores whose denominator is every readable pair."""

from __future__ import annotations

import polars as pl

from ...core.statistics.observations import Measure, percent, unit_rows
from .estimates import compared
from .options import CrowsPairsOptions


def units(pairs: pl.DataFrame, options: CrowsPairsOptions) -> pl.DataFrame:
    """Return the units of the whole set, then those of the bias types. Every pair is a cluster of its own."""
    pairs = compared(pairs, options.decimals)
    score = Measure("metric_score", percent(pl.col("hit")), 0.0, 100.0)
    ties = Measure("ties", percent(pl.col("tie")), 0.0, 100.0)
    odds = Measure("log_odds_difference", pl.col("difference"))
    rows = unit_rows(pairs, (score, ties, odds), (), "pair")
    rows += unit_rows(pairs, (score, odds), ("bias_type",), "pair")
    return pl.concat(rows, how="diagonal").drop("threshold")
