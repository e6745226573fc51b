"""Options of TriSentBias."""

from __future__ import annotations

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import MarginOptions


class TriSentBiasOptions(MarginOptions, frozen=True, kw_only=True):
    """What BIStereo (2025) leaves open."""

    thresholds: tuple[float, ...] = (0.02, 0.04, 0.06)
    """Differences in NPLL up to which a pair counts as undecided (the paper's delta)."""
    threshold_main: float = 0.02
    """The threshold of headlines and figures; one of `thresholds`."""
    cluster: str = "template"
    """Observation column whose values are resampled whole."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        listed = ", ".join(map(str, self.thresholds))
        if not self.thresholds or not all(0 <= t < 1 for t in self.thresholds):
            raise UsageError(
                f"thresholds are [{listed}]. Give one or more numbers from 0 to below 1.", code="options.value"
            )
        if len(set(self.thresholds)) < len(self.thresholds):
            raise UsageError(f"thresholds are [{listed}]. Give each once.", code="options.duplicate")
        if self.threshold_main not in self.thresholds:
            raise UsageError(
                f"threshold_main is {self.threshold_main}. Choose one of thresholds [{listed}].", code="options.choice"
            )
