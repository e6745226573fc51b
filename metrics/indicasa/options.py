"""Options of the metric `indicasa`."""

from __future__ import annotations

from typing import Literal

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import TestingOptions


class IndiCASAMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """How to class completions and measure them."""

    least: int | None = None
    """Completions of a prompt that must be readable to score it; None wants every one that was asked for."""
    several: Literal["mean", "nearest"] = "mean"
    """Which cosine counts where a prompt has several texts of a kind: the mean of all, or the greatest."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        if self.least is not None and self.least < 1:
            raise UsageError(
                f"least is {self.least}. Give 1 or more, or omit it to require every completion.",
                code="options.value",
            )
