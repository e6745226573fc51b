"""IndiCASA: are masked sentences completed with the stereotype or with its opposite?

Stereotype Probability, Bias Score and KL score of Santhosh et al. (2025), by category and Overall, from the vectors of
completions and of the sentences they are compared with; beside them intervals, tests, what chance alone would score,
and the same corrected for the errors of the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate, Example, Measure
from .charts import draw
from .estimates import estimate_all
from .measures import MEASURES
from .options import IndiCASAMetricOptions
from .votes import NEEDS, prompts_of
from .words import conclude, examples_of, headline, methods, units

if TYPE_CHECKING:
    import polars as pl

__all__ = ["IndiCASA", "IndiCASAMetricOptions"]


class IndiCASA(Metric):
    """Stereotype Probability, Bias Score, KL score; corrected for the encoder; skip ratio, ties, duplicates."""

    options: ClassVar[type[Options]] = IndiCASAMetricOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = NEEDS

    def compute(self, observations: pl.DataFrame, options: IndiCASAMetricOptions) -> list[Estimate]:
        """Return the estimates by category and Overall (an empty group).

        `observations` has a row per text with `prompt`, `source`, `category`, `kind` (`stereotype`,
        `anti-stereotype`, `completion`) and `vector` (a JSON list); or a row per prompt with the kind `verdict` and
        its class in a column `verdict`.

        Raises:
            DataError: a column is absent, a kind is unknown, or vectors differ in length.
        """
        return estimate_all(prompts_of(observations, options), options)

    def units(self, observations: pl.DataFrame, options: IndiCASAMetricOptions) -> pl.DataFrame | None:
        """Return the prompts behind the probability and the share of each category; Overall is no mean of prompts."""
        return units(prompts_of(observations, options))

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """Answer in one sentence whether stereotypes are filled in more often than their opposites."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the scores of the paper's Tables 3 and 7, and what the encoder's errors make of them."""
        return headline(estimates)

    def methods(self, options: IndiCASAMetricOptions) -> str:
        """Describe in words how the estimates were made."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw Bias Scores and stereotype probabilities by category."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: IndiCASAMetricOptions) -> list[Example]:
        """Pick per category completions that are stereotypes."""
        return examples_of(prompts_of(observations, options), options)
