"""Attractiveness: does a beauty filter change a model's judgements, and does this depend on gender, age and race?

The measures of Gulati et al. (2025), sections 3.4 and 4: the order-invariant score and its Kruskal-Wallis tests; and,
since the same faces are compared, the paired tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate, Example, Measure
from ...core.statistics.estimates import correct
from ...probes.attractiveness.terms import TRAITS
from .charts import draw
from .filter import WILCOXON, filter_estimates
from .groups import BY_FACE, CHANGE, group_estimates, human_estimates, mean_estimates
from .measures import MEASURES
from .options import AttractivenessMetricOptions
from .scores import NEEDS, Scores, gather, missing_answers, position_estimates
from .shares import HALO, halo_estimate, share_estimates, stronger_estimates, strongest_estimates
from .words import conclude, examples_of, headline, methods, units

if TYPE_CHECKING:
    import polars as pl


def designs(scores: Scores) -> pl.DataFrame:
    """Return the changes of faces by scenario for all tests, and the faces of each group."""
    changes = units(scores)
    directed = [s.id for s in scores.scenarios if s.positive is not None]
    halo = changes.filter(pl.col("scenario").is_in(directed)).select(
        pl.exclude("scenario", "metric"),
        metric=pl.lit(HALO),
        row=pl.col("scenario"),
        ways=pl.lit("scenario x face"),
    )
    ranked = changes.with_columns(metric=pl.lit(WILCOXON), test=pl.lit("wilcoxon"))
    return pl.concat([halo, changes, ranked, *_group_units(scores, changes)], how="diagonal")


def _group_units(scores: Scores, changes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the faces of known gender, age group and race: the means of their images, and their changes."""
    for by in TRAITS:
        if len(scores.levels(by)) < 2:
            continue
        known = np.tile(scores.codes(by) >= 0, len(scores.scenarios))
        labels = pl.Series("level", list(scores.labels[by]) * len(scores.scenarios), dtype=pl.String)
        rows = changes.with_columns(labels, by=pl.lit(by), test=pl.lit("kruskal-wallis")).filter(known)
        yield rows.with_columns(metric=pl.lit(CHANGE))
        means = scores.score.mean(axis=-1).ravel()
        yield rows.with_columns(metric=pl.lit(BY_FACE), value=pl.Series(means[known]).fill_nan(None), least=pl.lit(0.0))


__all__ = ["Attractiveness", "AttractivenessMetricOptions"]


class Attractiveness(Metric):
    """Effects of the filter, the halo, bias by gender, age and race, and the effect of the filter on it."""

    options: ClassVar[type[Options]] = AttractivenessMetricOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = NEEDS

    def compute(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
        """Return the estimates: over the scenarios first, then scenario by scenario.

        `observations` has a row per answer with `scenario`, `face`, `variant` (`original`, `filtered`), the order
        (`first_is`, `asked`), `score` (share of the positive or first option) and `p_a` (share of the label (a)).

        Raises:
            DataError: a column is absent, a variant has an unknown name, or a face is described in two ways.
        """
        if observations.is_empty():
            return []
        scores = gather(observations)
        everyone = np.ones(len(scores.faces), dtype=np.bool_)
        tested = [
            halo_estimate(scores, options),
            *filter_estimates(scores, options, everyone, {}),
            *group_estimates(scores, options),
            *human_estimates(observations, scores, options),
        ]
        found = correct(tested, options.correction, options.alpha, "scenarios")
        return [
            found[0],
            *share_estimates(scores, found, options),
            *strongest_estimates(scores, found, options),
            *stronger_estimates(scores, found, options),
            *found[1:],
            *mean_estimates(scores, options),
            *position_estimates(observations, options),
            *missing_answers(observations, options),
        ]

    def units(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> pl.DataFrame:
        """Return the change of each face in each scenario, whose means are the gaps."""
        return units(gather(observations))

    def designs(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> pl.DataFrame:
        """Return the units that the halo, the gaps and the tests between groups compare."""
        return designs(gather(observations))

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State in how many scenarios the filter changes the judgement."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the halo and the shares of scenarios."""
        return headline(estimates)

    def methods(self, options: AttractivenessMetricOptions) -> str:
        """Describe how the estimates were computed."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the paper's Figures 3 to 6."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Example]:
        """Pick the scenarios with the widest gaps, and in each the face that changes most."""
        return [] if observations.is_empty() else examples_of(observations, gather(observations), options)
