"""Options of the metric `attractiveness`."""

from __future__ import annotations

from ..core.errors import UsageError
from ._options import TestingOptions


class AttractivenessMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """How to measure what a filter changes."""

    effect_resamples: int = 999
    """Resamples behind the intervals of rank statistics (epsilon squared, rank-biserial, rank correlations)."""
    splits: int = 200
    """Random halves of the human raters behind a noise ceiling."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        for name, value, least in (("effect_resamples", self.effect_resamples, 99), ("splits", self.splits, 1)):
            if value < least:
                raise UsageError(f"{name} is {value}. Give at least {least}.")
