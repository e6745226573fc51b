"""Options of the metric `subtle`."""

from __future__ import annotations

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import MarginOptions


class SubtleMetricOptions(MarginOptions, frozen=True, kw_only=True):
    """Options for measuring associations of polarity."""

    cluster: tuple[str, ...] = ("template", "term")
    """Observation columns whose values are resampled whole; two columns are crossed."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if not 1 <= len(set(self.cluster)) == len(self.cluster) <= 2:
            raise UsageError(
                f"cluster is {', '.join(self.cluster) or 'empty'}. Give one or two different columns.",
                code="options.value",
            )
        if len(self.cluster) == 2 and self.intervals == "bca":
            ways = " and ".join(self.cluster)
            raise UsageError(
                f"intervals is 'bca', which is not available for crossed clusters ({ways}). "
                "Choose percentile or jackknife.",
                code="options.conflict",
            )
