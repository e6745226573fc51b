"""Marking a comparison of runs that are not as they were stored."""

from __future__ import annotations

import msgspec
import polars as pl

from ..scoring.unproved import unproved, unproved_words
from ..scoring.warnings import ALTERED
from .records import Comparison


def marked(comparison: Comparison) -> Comparison:
    """Return a comparison with a mark on every number, if one of its runs is not as it was stored."""
    altered = {label: scores.unproved for label, scores in comparison.runs.items() if scores.unproved}
    if not altered:
        return comparison
    differences, headline = (
        tuple(one._replace(estimate=unproved(one.estimate)) for one in part)
        for part in (comparison.differences, comparison.headline)
    )
    mark = pl.lit(value=True).alias("unproved")
    return msgspec.structs.replace(
        comparison,
        title=unproved_words(comparison.title),
        differences=differences,
        headline=headline,
        conclusion=unproved_words(comparison.conclusion),
        notes=(*(ALTERED.format(problem=f"{run}: {problem}") for run, problem in altered.items()), *comparison.notes),
        charts=tuple(msgspec.structs.replace(chart, title=unproved_words(chart.title)) for chart in comparison.charts),
        listings=tuple(msgspec.structs.replace(one, frame=one.frame.with_columns(mark)) for one in comparison.listings),
    )
