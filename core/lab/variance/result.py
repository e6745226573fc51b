"""`VarianceResult`: where the variance of a measure comes from, in Python."""

from __future__ import annotations

import polars as pl

from ...contracts import Chart
from ...report.result import Result
from .page import charts
from .variance import Variance, component_rows, design_rows
from .words import conclusion


class VarianceResult(Result, frozen=True):
    """Where the variance of a measure comes from, and what more answers would do.

    Example:
        >>> import prejudge
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> result = prejudge.variance(run.name)
        >>> result.title, "standard error" in result.designs.columns
        ('Favouritism (log-odds): components of variance', True)
    """

    variance: Variance
    """The measure, its components, and the headline's standard error."""

    @property
    def title(self) -> str:
        """Return the measure, in a line."""
        return f"{self.variance.outcome.words.label}: components of variance"

    @property
    def conclusion(self) -> str:
        """Return what varies most, the standard error and its source, the reliability, and what a smaller one needs."""
        return conclusion(self.variance)

    @property
    def notes(self) -> list[str]:
        """Return what cannot be estimated, with its code."""
        return [f"Note ({note.code}): {note.text}" for note in self.variance.notes]

    @property
    def estimates(self) -> pl.DataFrame:
        """Return a row per component: variance, interval, and its shares of the variance and of the squared error."""
        return pl.DataFrame(component_rows(self.variance), infer_schema_length=None)

    @property
    def designs(self) -> pl.DataFrame:
        """Return a row per design: levels of each facet, standard error, smallest detectable effect, requests, cost."""
        return pl.DataFrame(design_rows(self.variance), infer_schema_length=None)

    @property
    def charts(self) -> list[Chart]:
        """Return the figures with their titles and captions."""
        return charts(self.variance)
