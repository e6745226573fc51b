"""Associations without a predefined list: which are salient, negative, toxic, biased, new, and shared.

The measures of BiasDora (Raj et al. 2024), sections 3 and 4, with tests that hold their level beside the paper's
filters (`docs/statistics.md`, Salience of associations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from ...core.contracts import Metric, Options
from ...core.contracts.errors import DataError
from ...core.contracts.estimates import Chart, Estimate, Example, Listing, Measure
from ...core.statistics.estimates import correct
from ...probes.dora.terms import PLACE
from .across import listings
from .charts import draw
from .counts import (
    Associations,
    agreement_estimates,
    count_estimates,
    gather,
    judged_estimates,
    missing_by_stage,
    overlap_estimates,
    share_measures,
    undocumented,
    unreadable_kinds,
)
from .means import designs, differences, mean_estimates, measures, unit_frame, valued
from .measures import MEASURES
from .options import DoraAssociationsOptions
from .people import calibration, corrected_levels
from .published import reappeared
from .words import conclude, examples_of, headline, methods

if TYPE_CHECKING:
    from .counts import Averaged

__all__ = ["DoraAssociations", "DoraAssociationsOptions"]


class DoraAssociations(Metric):
    """Words said of descriptors more often than by chance, with their valence and bias level."""

    options: ClassVar[type[Options]] = DoraAssociationsOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = frozenset({"stage", *PLACE, "status", "reason", "key"})
    """And the columns of the stages: `word`, `text`, `image`, `label`, `judgement`, `level`."""
    every_stage: ClassVar[bool] = True
    files: ClassVar[frozenset[str]] = frozenset({"documented", "human"})

    def compute(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> list[Estimate]:
        """Return the estimates: counts, valence and levels by setting and dimension, differences, overlap, missing.

        `observations` has all stages: `completions` (`word`), `descriptions` and `impressions` (`text`, `image`),
        `sentiment` and `toxicity` (`word`, `label`), `levels` (`word`, `judgement`, `level` from 1 to 5).

        Raises:
            DataError: a column is absent, or a file that an option names cannot be used.
        """
        found = _gathered(observations, options)
        rows = valued(found)
        averaged: list[Averaged] = [*measures(rows), *share_measures(found)]
        if options.documented is not None:
            averaged.append(undocumented(found, options.documented))
        tested = [*differences(rows, options), *overlap_estimates(found, options)]
        if options.human is not None:
            tested += calibration(found, options.human, options)
            tested += corrected_levels(found, options.human, options)
        return [
            *count_estimates(found),
            *mean_estimates(averaged, found.every, options),
            *correct(tested, options.correction, options.alpha, "comparisons"),
            *reappeared(found),
            *judged_estimates(found),
            *agreement_estimates(found, options),
            *missing_by_stage(observations, options),
            *unreadable_kinds(observations),
        ]

    def units(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> pl.DataFrame | None:
        """Return the descriptors behind the means that count each of them once."""
        return unit_frame(valued(_gathered(observations, options)))

    def designs(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> pl.DataFrame | None:
        """Return the same without dimensions, and the answers that tests between settings compare."""
        return designs(valued(_gathered(observations, options)))

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State how many associations there are, and how negative they are."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the counts by method, and the valence of each setting."""
        return headline(estimates)

    def methods(self, options: DoraAssociationsOptions) -> str:
        """Describe how the estimates were computed."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw levels and valence as heat maps, and the overlap of settings."""
        return draw(estimates)

    def across(self, runs: Mapping[str, tuple[pl.DataFrame, DoraAssociationsOptions]]) -> list[Listing]:
        """List the associations of all runs as an atlas, those that two runs share, and those that differ."""
        return listings(runs)

    def examples(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> list[Example]:
        """Rank the associations by setting and dimension, and show images beside their descriptions."""
        return examples_of(_gathered(observations, options), observations, options)


def _gathered(observations: pl.DataFrame, options: DoraAssociationsOptions) -> Associations:
    if "stage" not in observations.columns:
        raise DataError(
            "the observations have no column 'stage'. Give those of all stages, stacked.", code="data.column-missing"
        )
    return gather(observations, options)
