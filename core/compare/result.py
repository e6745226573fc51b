"""`ComparisonResult`: a comparison of runs in Python."""

from __future__ import annotations

import polars as pl

from ..contracts import Chart
from ..report.result import Result
from .records import Comparison
from .write import differences_frame


class ComparisonResult(Result, frozen=True):
    """A comparison of runs.

    Example:
        >>> import prejudge
        >>> small = {"per_cell": 2, "axes": ["height"]}
        >>> fair = prejudge.run("bistereo-pairs", "simulated-fair", **small)
        >>> biased = prejudge.run("bistereo-pairs", "simulated-biased", **small)
        >>> prejudge.compare(fair.name, biased.name).title
        'Body image stereotypes in language models: 2 runs compared'
    """

    comparison: Comparison
    """The runs, their differences, and what is said of them."""

    @property
    def title(self) -> str:
        """Return what was compared, in a line."""
        return self.comparison.title

    @property
    def conclusion(self) -> str:
        """Return the conclusion, one sentence."""
        return self.comparison.conclusion

    @property
    def estimates(self) -> pl.DataFrame:
        """Return the differences as a tidy frame, one row each; of runs of several studies, the rank correlations."""
        return differences_frame(self.comparison)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Return the figures with their titles and captions."""
        return self.comparison.charts
