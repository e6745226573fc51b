"""`Result`: what every analysis returns in Python: a conclusion, estimates, figures, and the path of its report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

import msgspec
import polars as pl

from ..contracts import Chart
from ..contracts.errors import UnknownNameError
from .figures import export
from .notebook import result_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What an analysis returns. Printed it is its conclusion; a notebook shows the estimates behind a click, too.

    Example:
        >>> import prejudge
        >>> result = prejudge.run("bistereo-pairs", "simulated-biased", per_cell=2, axes=["height"])
        >>> isinstance(result, prejudge.Result), result.estimates.height > 0, result.report.name
        (True, True, 'report.html')
    """

    report: Path | None = None
    """Path of the HTML report, if one was written; the tables lie beside it."""

    @property
    def title(self) -> str:
        """Return what was analysed, in a line."""
        raise NotImplementedError

    @property
    def conclusion(self) -> str:
        """Return the conclusion, in sentences."""
        raise NotImplementedError

    @property
    def estimates(self) -> pl.DataFrame:
        """Return the numbers as a tidy polars frame, one row each; `.to_pandas()` needs the extra `pandas`."""
        raise NotImplementedError

    @property
    def notes(self) -> Sequence[str]:
        """Return what limits the conclusion, in sentences."""
        return ()

    @property
    def charts(self) -> Sequence[Chart]:
        """Return the figures with their titles and captions."""
        return ()

    @overload
    def plot(self) -> dict[str, Figure]: ...

    @overload
    def plot(self, name: str) -> Figure: ...

    def plot(self, name: str | None = None) -> Figure | dict[str, Figure]:
        """Return the figure of this name, or all figures by name.

        Raises:
            UnknownNameError: there is no such figure.
        """
        for chart in self.charts:
            # A notebook shows a figure that pyplot did not make only if the figure can draw itself.
            setattr(chart.figure, "_repr_png_", partial(export, chart, "png"))  # noqa: B010
        figures: dict[str, Figure] = {chart.name: chart.figure for chart in self.charts}
        if name is None:
            return figures
        if name not in figures:
            raise UnknownNameError("figure", name, figures)
        return figures[name]

    def __repr__(self) -> str:
        """Return the title, the conclusion, what limits it, and the path of the report."""
        lines = [self.title, *filter(None, [self.conclusion]), *self.notes]
        return "\n".join(lines if self.report is None else [*lines, f"Report: {self.report}"])

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the estimates behind a click."""
        return result_html(self)
