"""Options of the metric `attractiveness`."""

from __future__ import annotations

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import TestingOptions

LEAST = 99
"""Minimum number of resamples for an interval."""


class AttractivenessMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for the effects of a filter."""

    effect_resamples: int = 999
    """Resamples behind the intervals of rank statistics (epsilon squared, rank-biserial, rank correlations).

    0 makes no such intervals.
    """
    splits: int = 200
    """Number of random splits of the human raters for the highest expected agreement."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if self.effect_resamples and self.effect_resamples < LEAST:
            raise UsageError(
                f"effect_resamples is {self.effect_resamples}. Give at least {LEAST}, or 0 for none.",
                code="options.value",
            )
        if self.splits < 1:
            raise UsageError(f"splits is {self.splits}. Give at least 1.", code="options.value")
