"""Options of the metric `attractiveness`."""

from __future__ import annotations

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import TestingOptions

LEAST = 99
"""Resamples below which an interval has no ends."""


class AttractivenessMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """How to measure what a filter changes."""

    effect_resamples: int = 999
    """Resamples behind the intervals of rank statistics (epsilon squared, rank-biserial, rank correlations).

    0 makes no such intervals.
    """
    splits: int = 200
    """Random halves of the human raters behind a noise ceiling."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        if self.effect_resamples and self.effect_resamples < LEAST:
            raise UsageError(
                f"effect_resamples is {self.effect_resamples}. Give at least {LEAST}, or 0 for none.",
                code="options.value",
            )
        if self.splits < 1:
            raise UsageError(f"splits is {self.splits}. Give at least 1.", code="options.value")
