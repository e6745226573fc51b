"""`Presentation`: what a metric says and draws of its estimates. Every member has a default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .estimates import Chart, Estimate, Example, Listing

if TYPE_CHECKING:
    import polars as pl

HEADLINE = 40
"""Maximum number of headline estimates if the metric does not choose them."""


class Presentation:
    """The texts, figures and examples of a metric, for the report, the terminal and comparisons of runs."""

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """Answer the question of the study in a few sentences, with uncertainty."""
        return ""

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Return the most important estimates; by default all, if there are at most 40."""
        return list(estimates) if len(estimates) <= HEADLINE else []

    def methods(self, options: Any) -> str:
        """Describe in words how the estimates were made, for the report."""
        return ""

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the estimates, as the paper does."""
        return []

    def side_by_side(self, runs: Mapping[str, Sequence[Estimate]]) -> list[Chart]:
        """Draw all estimates of several runs, by label, as the paper does; `compare` draws those of the headline."""
        return []

    def across(self, runs: Mapping[str, tuple[pl.DataFrame, Any]]) -> list[Listing]:
        """List what several runs found, by label: the observations and options of each.

        The runs may be of several studies: if all have such a metric, they can be compared without shared trials.
        """
        return []

    def examples(self, observations: pl.DataFrame, options: Any) -> list[Example]:
        """Choose exchanges that illustrate the numbers."""
        return []
