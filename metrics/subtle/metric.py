"""Subtle associations: does the polarity of what is given change the polarity of what is chosen?

The measures of Kamruzzaman et al. (2023), sections Task Definition and Experimental Setup: base rates, conditional
likelihoods, their differences, and Kendall's tau in the coding of the text and in that of the printed table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate, Example, Measure
from .cells import NEEDS, readable
from .charts import draw
from .estimates import estimate_all
from .measures import MEASURES
from .options import SubtleMetricOptions
from .words import conclude, designs, examples_of, headline, methods, units

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Subtle", "SubtleMetricOptions"]


class Subtle(Metric):
    """PL, NL, NuL; PPL to NNuL; their differences; Kendall's tau; places of options; what could not be read."""

    options: ClassVar[type[Options]] = SubtleMetricOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = NEEDS

    def columns(self, options: SubtleMetricOptions) -> frozenset[str]:
        """Return the columns of every study, and the clusters'."""
        return self.needs | set(options.cluster)

    def compute(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
        """Return the estimates: for the whole study, by pronoun, by domain, and by both.

        `observations` has a row per answer with `domain`, `pronoun`, `given` (`positive`, `negative`) and `chosen`
        (`positive`, `negative`, `neutral`; null where it could not be read).

        Raises:
            DataError: a column is absent, or a polarity has an unknown name.
        """
        return [] if observations.is_empty() else estimate_all(readable(observations), options)

    def units(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> pl.DataFrame | None:
        """Return the answers behind the differences, whole and by domain."""
        return units(readable(observations), options)

    def designs(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> pl.DataFrame | None:
        """Return the same with the other way of clustering, where two cross."""
        return designs(readable(observations), options)

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """Answer in one sentence whether what is given changes what is chosen."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the differences by domain, and tau-c of the whole study."""
        return headline(estimates)

    def methods(self, options: SubtleMetricOptions) -> str:
        """Describe in words how the estimates were made."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the differences by domain (the paper's Figure 3), and by pronoun."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Example]:
        """Pick per domain and given polarity answers that follow the polarity of what was given."""
        return examples_of(readable(observations), options)
