"""BIStereo-NLI: inferences from a skin tone, and inferences of a skin tone.

The measures of BIStereo, section 4.2: %E, %C, %N; and the halo and horn effects of section 4.2.1 as differences
between the two skin tones of one pair, over templates and attribute words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate, Example
from .measures import NLI
from .nli_estimates import estimate_all
from .nli_pairs import NEEDS, BIStereoNLIMetricOptions, readable
from .nli_words import conclude, draw, examples_of, headline, methods, units

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BIStereoNLI", "BIStereoNLIMetricOptions"]


class BIStereoNLI(Metric):
    """%E, %C, %N by cell; halo and horn effects with paired cluster tests; what could not be read."""

    options: ClassVar[type[Options]] = BIStereoNLIMetricOptions
    needs: ClassVar[frozenset[str]] = NEEDS
    measures = NLI

    def columns(self, options: BIStereoNLIMetricOptions) -> frozenset[str]:
        """Return the columns of every study, and the cluster's."""
        return self.needs | set(options.ways)

    def compute(self, observations: pl.DataFrame, options: BIStereoNLIMetricOptions) -> list[Estimate]:
        """Return the estimates; values in per cent or percentage points.

        Raises:
            DataError: a column is absent, a label or skin tone is unknown, or a pair has a skin tone twice.
        """
        return [] if observations.is_empty() else estimate_all(readable(observations, options), options)

    def units(self, observations: pl.DataFrame, options: BIStereoNLIMetricOptions) -> pl.DataFrame:
        """Return the pairs behind the contrasts, and the answers behind the shares of labels."""
        return units(readable(observations, options), options)

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State whether halo and horn effects were shown."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the halo and horn effects, whole and by gender and kind."""
        return headline(estimates)

    def methods(self, options: BIStereoNLIMetricOptions) -> str:
        """Describe how the estimates were computed."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw contradiction and entailment by skin tone (the paper's Figure 3), and the effects."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: BIStereoNLIMetricOptions) -> list[Example]:
        """Pick pairs that are entailed for one skin tone only."""
        return examples_of(readable(observations, options), options)
