"""Agreement of annotators on tuples: Krippendorff's alpha, and counts at each threshold."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from ...core.statistics.ranks import Agreement, agreement, rating_table
from ...core.statistics.resampling import Resampling

COLUMNS = ("tuple", "annotator", "stereotype")


class TupleAgreement(msgspec.Struct, frozen=True):
    """The agreement of annotators on a set of tuples."""

    alpha: Agreement
    yes: dict[str, tuple[int, int]]
    """By annotator: number of tuples called a stereotype, number of tuples rated."""
    thresholds: dict[int, int]
    """By number of annotators: tuples that at least so many call a stereotype."""
    level: float

    def lines(self) -> Iterator[str]:
        """Yield the results as lines of text."""
        yield from self.alpha.lines("tuples", self.level)
        for annotator, (yes, rated) in self.yes.items():
            yield f"  {annotator}: {yes} of {rated} are stereotypes"
        for least, count in self.thresholds.items():
            yield f"  at least {least}: {count} tuples"


def tuple_agreement(ratings: pl.DataFrame, plan: Resampling | None = None) -> TupleAgreement:
    """Return alpha of the ratings 1 and 0, with counts by annotator and by threshold.

    Args:
        ratings: A row per rating with `tuple`, `annotator`, `stereotype` (1, 0, or null for an unrated tuple).
        plan: Resampling plan; default: percentile bootstrap with 9,999 samples of tuples.

    Raises:
        DataError: an annotator rated a tuple twice.
    """
    chosen = plan or Resampling()
    rating = pl.col("stereotype")
    by_annotator = ratings.drop_nulls().group_by("annotator").agg(rating.sum(), pl.len()).sort("annotator")
    yes = {who: (int(hits), int(rated)) for who, hits, rated in by_annotator.iter_rows()}
    scores = ratings.group_by("tuple").agg(rating.sum())["stereotype"]
    thresholds = {least: int((scores >= least).sum()) for least in range(1, len(yes) + 1)}
    alpha = agreement(rating_table(ratings, COLUMNS), "nominal", chosen)
    return TupleAgreement(alpha, yes, thresholds, chosen.level)
