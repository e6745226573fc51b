"""Accuracy of each prompt on pairs whose label is known, and the best prompt against every other."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from ...core.contracts import Options
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.declared_rows import Design
from ...core.statistics.estimates import POINTS, TestingOptions
from ...core.statistics.measures import Share
from ...core.statistics.measures_compared import MCNEMAR, Matched
from ...core.statistics.observations import ABSENT, require_columns

__all__ = ["NLIPrompts", "NLIPromptsMetricOptions"]

ACCURACY, AGAINST = ("prompt",), ("prompt", "than")


class NLIPromptsMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for the tests."""


class NLIPrompts(DeclaredMetric):
    """Accuracy by prompt, with an exact interval; McNemar's test of the best against every other.

    An answer without a label is wrong; a refusal or a failure is missing. The best prompt is chosen by the same data,
    so its accuracy is a little too high.
    """

    options: ClassVar[type[Options]] = NLIPromptsMetricOptions
    needs: ClassVar[frozenset[str]] = frozenset({"item", "prompt", "truth", "label", "status"})
    row = "item"
    groups = (ACCURACY, AGAINST)
    measures = (
        Share(
            "accuracy",
            hit="right",
            status="answered",
            groups=(ACCURACY,),
            meaning="Share of pairs whose known label is given; an answer without a label is wrong.",
            direction="a more accurate prompt",
        ),
        Matched(
            "less_accurate",
            first="best",
            second="right",
            status="both",
            test=MCNEMAR._replace(name=f"{MCNEMAR.name}, pairs"),
            size="matched odds ratio",
            scale=100,
            limits=(0, 100),
            groups=(AGAINST,),
            family=lambda by: "best prompt against the others",
            label="Difference in accuracy",
            meaning="Accuracy of the best prompt, chosen by the same data, minus that of another, on the same pairs.",
            unit=POINTS,
            direction="a greater lead of the best prompt",
        ),
    )

    def design(self, options: NLIPromptsMetricOptions) -> Design:
        """Return what is declared; what is missing is given by prompt and truth, and by truth."""
        measures = self._declared.measures
        return Design(measures=measures, groups=self.groups, row=self.row, missing=("prompt", "truth"), kinds="truth")

    def rows(self, observations: pl.DataFrame, options: NLIPromptsMetricOptions) -> pl.DataFrame:
        """Return the answers with `right`, and beside it that of the best prompt, `than`, to the same pair.

        Raises:
            DataError: a column is absent.
        """
        require_columns(observations, {*self.needs})
        right = (pl.col("label").cast(pl.String) == pl.col("truth")).fill_null(False)
        answered = pl.col("status").replace("unreadable", "ok")
        frame = observations.with_columns(pl.col("prompt").cast(pl.String), answered=answered).with_columns(
            right=pl.when(pl.col("answered") == "ok").then(right)
        )
        means = frame.group_by("prompt", maintain_order=True).agg(pl.col("right").mean()).drop_nulls("right")
        than = means.sort("right", descending=True, maintain_order=True)["prompt"].first() if means.height else ""
        best = frame.filter(pl.col("prompt") == than).select("item", best="right", _best="answered")
        status = pl.when(pl.col("answered") != "ok").then("answered").otherwise(pl.col("_best").fill_null(ABSENT))
        both = frame.join(best, on="item", how="left", maintain_order="left")
        other = pl.when(pl.col("prompt") != than).then(pl.lit(than or None, dtype=pl.String))
        return both.with_columns(status.alias("both"), other.alias("than"))
