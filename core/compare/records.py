"""What a comparison is asked, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..contracts import Chart, Estimate, Listing
from ..scoring.score import Scores
from .differences import Difference


class CompareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to compare."""

    all_pairs: bool = False
    """Compare every pair of runs instead of each run with the first."""
    allow_different: bool = False
    """Compare the shared trials of runs with different options or data."""
    assignments: Mapping[str, Any] = {}
    """`METRIC.option`, of the study's metrics or of `paired-difference`."""
    margin: float | None = None
    """Difference in percentage points below which it does not matter; without it, the limit of a report."""
    published: tuple[str, ...] = ()
    """Models whose published values are set beside the runs; `all` is every model that has some. One run is enough."""


class Comparison(msgspec.Struct, frozen=True):
    """The result of a comparison."""

    title: str
    runs: dict[str, Scores]
    """By label; the first is the baseline."""
    differences: tuple[Difference, ...]
    headline: tuple[Difference, ...]
    """The differences of the measures that the study itself shows first."""
    conclusion: str
    notes: tuple[str, ...]
    methods: tuple[str, ...]
    charts: tuple[Chart, ...]
    listings: tuple[Listing, ...] = ()
    """What a metric of all runs lists over them."""
    ranked: bool = False
    """Whether it compares ranks of models: the estimates are then rank agreements, not differences."""

    @property
    def estimates(self) -> list[Estimate]:
        """Return the differences as estimates."""
        return [difference.estimate for difference in self.differences]
