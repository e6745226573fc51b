"""CrowS-Pairs: how often does a model find the more stereotyping sentence of a pair likelier?

Nangia et al. (2020), counted as their published program counts. A tie is neutral, never a hit: it stays in the
denominator of the metric score, and leaves that of the stereotype and of the anti-stereotype score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Metric, Options
from ...core.contracts.errors import DataError
from ...core.contracts.estimates import Chart, Estimate, Example, Measure
from ...core.statistics.observations import pair_up, with_keys
from ...probes.crows_pairs.terms import CELL, DIRECTIONS, SIDES
from .charts import draw
from .estimates import estimate_all
from .options import CrowsPairsOptions
from .units import units
from .words import MEASURES, conclude, examples_of, methods

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CrowsPairs", "CrowsPairsOptions"]


class CrowsPairs(Metric):
    """Metric, stereotype and anti-stereotype score, by bias type, with ties, magnitude and worst case."""

    options: ClassVar[type[Options]] = CrowsPairsOptions
    needs: ClassVar[frozenset[str]] = frozenset({"pair", "side", *CELL, "log_probability", "status"})
    measures: ClassVar[Mapping[str, Measure]] = MEASURES

    def compute(self, observations: pl.DataFrame, options: CrowsPairsOptions) -> list[Estimate]:
        """Return the scores in per cent, the share of ties, and the mean log-odds difference in nats.

        `observations` has two rows per pair, one per `side` (`more`, `less` stereotyping), with `direction`
        (`stereo`, `antistereo`), `bias_type` and `log_probability` in nats.

        Raises:
            DataError: a column is absent, a side or a direction has an unknown name, or a row stands twice.
        """
        pairs = pair_up(observations, SIDES, CELL)
        if unknown := sorted(set(pairs["direction"].unique().to_list()) - set(DIRECTIONS), key=str):
            raise DataError(
                f"unknown direction {unknown[0]!r}. Use {', '.join(map(repr, DIRECTIONS))}.", code="data.unknown-value"
            )
        return estimate_all(pairs, options)

    def units(self, observations: pl.DataFrame, options: CrowsPairsOptions) -> pl.DataFrame:
        """Return the pairs behind `metric_score`, `ties` and `log_odds_difference`.

        `stereotype_score` and `antistereotype_score` are ratios (ties leave their denominator).
        """
        return units(pair_up(observations, SIDES, CELL), options)

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """Answer in one sentence whether the more stereotyping sentences are found likelier."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the three scores and the metric score by bias type."""
        return [e for e in estimates if e.metric in ("metric_score", "stereotype_score", "antistereotype_score")]

    def methods(self, options: CrowsPairsOptions) -> str:
        """Describe in words how the estimates were made."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the metric score by bias type with its intervals and the line of no lean."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: CrowsPairsOptions) -> list[Example]:
        """Pick per bias type the pairs whose more stereotyping sentence is likelier by the most."""
        return examples_of(with_keys(pair_up(observations, SIDES, CELL), observations, SIDES), options)
