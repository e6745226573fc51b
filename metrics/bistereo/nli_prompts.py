"""Accuracy of each prompt on pairs whose label is known, and the best prompt against every other."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import polars as pl

from ...core.contracts import Options
from ...core.contracts.estimates import Estimate
from ...core.statistics.declaration import Declaration
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.estimates import POINTS, correct
from ...core.statistics.facets import FacetOptions
from ...core.statistics.measures import Share
from ...core.statistics.measures_compared import MCNEMAR, Matched
from ...core.statistics.observations import ABSENT, require_columns

__all__ = ["NLIPrompts", "NLIPromptsMetricOptions"]

ACCURACY, AGAINST = ("prompt",), ("prompt", "than")


ITEM, LEAD, FAMILY = "item", "less_accurate", "best prompt against the others"
PAIRS = MCNEMAR._replace(name=f"{MCNEMAR.name}, pairs")


class NLIPromptsMetricOptions(FacetOptions, frozen=True, kw_only=True):
    """Options for the tests."""

    over: str | tuple[str, ...] = "premise"
    """What the claim is to hold for beyond the pairs at hand. Several hypotheses are about one premise. `item` takes
    every pair as independent, and does not count that the best prompt was chosen."""

    @property
    def paired(self) -> bool:
        """Return whether every pair is independent."""
        return self.ways == (ITEM,)


class NLIPrompts(DeclaredMetric):
    """Accuracy by prompt; the best against every other.

    An answer without a label is wrong; a refusal or a failure is missing. The best prompt is chosen by the same data,
    so its accuracy is a little too high; p and intervals of its lead count that any pair of prompts could have been it
    (Bonferroni).
    """

    options: ClassVar[type[Options]] = NLIPromptsMetricOptions
    needs: ClassVar[frozenset[str]] = frozenset({"item", "prompt", "truth", "label", "status"})
    row = "item"
    fixed = "The best prompt was chosen by the same data, so its accuracy is a little too high."
    groups = (ACCURACY, AGAINST)
    missing = ("prompt", "truth")
    kinds = "truth"
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
            LEAD,
            first="best",
            second="right",
            status="both",
            size="matched odds ratio",
            scale=100,
            limits=(0, 100),
            groups=(AGAINST,),
            family=lambda by: FAMILY,
            label="Difference in accuracy",
            meaning="Accuracy of the best prompt, chosen by the same data, minus that of another, on the same pairs.",
            unit=POINTS,
            direction="a greater lead of the best prompt",
        ),
    )

    def design(self, options: NLIPromptsMetricOptions) -> Declaration:
        """Return what is declared; what is missing is given by prompt and truth, and by truth."""
        measures, alone = self._declared.measures, options.paired
        if alone:
            measures = tuple(msgspec.structs.replace(m, test=PAIRS) if isinstance(m, Matched) else m for m in measures)
        return msgspec.structs.replace(self._declared, measures=measures, clusters=() if alone else options.ways)

    def compute(self, observations: pl.DataFrame, options: NLIPromptsMetricOptions) -> list[Estimate]:
        """Return the estimates; those of leads for all pairs of prompts at once, since the best could be any.

        Raises:
            DataError: a column is absent.
        """
        found = super().compute(observations, options)
        others = [place for place, e in enumerate(found) if e.metric == LEAD]
        if options.paired or not others:
            return found
        pairs = len(others) * (len(others) + 1) // 2
        strict = super().compute(observations, msgspec.structs.replace(options, level=1 - (1 - options.level) / pairs))
        for place in others:
            lead = strict[place]
            p = None if lead.p is None else min(lead.p * pairs / len(others), 1.0)
            found[place] = lead.replace(p=p, family=FAMILY)
        return correct(found, options.correction, options.alpha, "tests")

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
