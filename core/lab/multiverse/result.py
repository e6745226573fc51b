"""`MultiverseResult`: the result of a study under every defensible choice, in Python."""

from __future__ import annotations

import polars as pl

from ...contracts import Chart
from ...report.result import Result
from .multiverse import Found
from .page import chart, frame
from .words import conclusion


class MultiverseResult(Result, frozen=True):
    """The result of a study under every defensible choice.

    Example:
        >>> import prejudge
        >>> small = {"per_cell": 2, "axes": ["height"]}
        >>> run = prejudge.run("bistereo-pairs", "simulated-biased", **small)
        >>> group = {"axis": "height", "gender": "women"}
        >>> result = prejudge.multiverse("bistereo-pairs", "simulated-biased", group=group, **small)
        >>> "verdict" in result.estimates.columns
        True
    """

    multiverse: Found
    """The choices, the result under each, and what was not asked."""

    @property
    def title(self) -> str:
        """Return the measure, in a line."""
        estimate = self.multiverse.own.estimate
        return f"{estimate.label or estimate.metric} under every choice"

    @property
    def conclusion(self) -> str:
        """Return how many universes agree, and which choice moves the result most."""
        return conclusion(self.multiverse)

    @property
    def estimates(self) -> pl.DataFrame:
        """Return a row per universe, least value first: its choices, value, interval, verdict and run."""
        return frame(self.multiverse)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Return the specification curve."""
        return (chart(self.multiverse),)
