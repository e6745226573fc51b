"""Attractiveness: does a beauty filter change a model's judgements, and does this depend on gender, age and race?

The measures of Gulati et al. (2025), sections 3.4 and 4: the order-invariant score and its Kruskal-Wallis tests; and,
since the same faces are compared, the paired tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import polars as pl

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate, Example, Measure
from ...core.statistics.estimates import correct
from ...core.statistics.observations import Group, missing_estimates, unreadable_kinds
from ...probes.attractiveness.terms import TRAITS
from .charts import draw
from .gaps import halo_estimate, mean_estimates, position_estimates
from .kruskal import filter_estimates, group_estimates
from .measures import BY_FACE, GAP, HALO, MEASURES, MOVED, WILCOXON, AttractivenessMetricOptions
from .people import check_estimate, human_estimates
from .scores import NEEDS, Scores, gather
from .shares import scenario_estimates
from .words import conclude, examples_of, headline, methods

__all__ = ["Attractiveness", "AttractivenessMetricOptions"]


def _units(scores: Scores) -> pl.DataFrame:
    """Return the change of each face in each scenario, whose means are the gaps."""
    change = scores.change
    lost = scores.lost.max(axis=2).ravel()
    faces = list(scores.faces) * len(change)
    return pl.DataFrame(
        {
            "metric": pl.repeat(GAP, change.size, eager=True),
            "scenario": [s.id for s in scores.scenarios for _ in scores.faces],
            "unit": faces,
            "cluster": faces,
            "sign": pl.repeat(1, change.size, dtype=pl.Int8, eager=True),
            "value": pl.Series("value", change.ravel()).fill_nan(None),
            "least": pl.repeat(-1.0, change.size, eager=True),
            "greatest": pl.repeat(1.0, change.size, eager=True),
            "status": ["ok" if code < 0 else scores.statuses[code] for code in lost],
        }
    )


def _designs(scores: Scores) -> pl.DataFrame:
    """Return the changes of faces by scenario for all tests, and the faces of each group."""
    changes = _units(scores)
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
        yield rows.with_columns(metric=pl.lit(MOVED))
        means = scores.score.mean(axis=-1).ravel()
        yield rows.with_columns(metric=pl.lit(BY_FACE), value=pl.Series(means[known]).fill_nan(None), least=pl.lit(0.0))


def _missing(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of missing answers by category and variant, and of each kind of unreadable answer."""
    by = ("category", "variant")
    cells = observations.lazy().group_by(*by, "status").len().sort(*by, "status").collect()
    groups = []
    for values, part in cells.partition_by(*by, as_dict=True).items():
        counts = dict(part.select("status", "len").iter_rows())
        answered = counts.pop("ok", 0)
        groups.append(Group(dict(zip(by, values, strict=True)), answered, counts))
    return [*missing_estimates(groups, options.level), *unreadable_kinds(observations, options.level)]


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
        halo, *found = correct(tested, options.correction, options.alpha, "scenarios")
        return [
            halo,
            *scenario_estimates(scores, found, options),
            check_estimate(observations, options),
            *found,
            *mean_estimates(scores, options),
            *position_estimates(observations, options),
            *_missing(observations, options),
        ]

    def units(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> pl.DataFrame:
        """Return the change of each face in each scenario, whose means are the gaps."""
        return _units(gather(observations))

    def designs(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> pl.DataFrame:
        """Return the units that the halo, the gaps and the tests between groups compare."""
        return _designs(gather(observations))

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
