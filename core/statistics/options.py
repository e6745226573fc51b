"""Options of the metrics on sentence pairs."""

from __future__ import annotations

from ..contracts import Options
from ..contracts.errors import UsageError
from .cluster import METHODS, Method, Resampling
from .families import NAMES, Correction
from .intervals import FEWEST

PERCENTILES = {
    "percentile": f"expanded percentile, stretched below {FEWEST} clusters",
    "bca": "BCa, expanded tails",
}


class TestingOptions(Options, frozen=True, kw_only=True):
    """How to resample, test and correct."""

    alpha: float = 0.05
    """Adjusted p-values up to this count as shown."""
    level: float = 0.95
    """Confidence level of every interval."""
    intervals: Method = "percentile"
    """How intervals are made: `percentile` or `bca` of the cluster bootstrap, or `jackknife` (few clusters)."""
    resamples: int = 9999
    seed: int = 0
    correction: Correction = "bh"
    examples: int = 3
    """Pairs to show per group and direction."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        for name, value in (("alpha", self.alpha), ("level", self.level)):
            if not 0 < value < 1:
                raise UsageError(f"{name} is {value}. Give a number between 0 and 1.", code="options.value")
        if self.resamples < 99:
            raise UsageError(
                f"resamples is {self.resamples}. Give at least 99; 9999 is the default.", code="options.value"
            )
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}. Give 0 or more.", code="options.value")
        if self.intervals not in METHODS:
            raise UsageError(
                f"intervals is {self.intervals!r}. Choose one of {', '.join(map(repr, METHODS))}.",
                code="options.choice",
            )
        if self.correction not in NAMES:
            raise UsageError(
                f"correction is {self.correction!r}. Choose one of {', '.join(map(repr, NAMES))}.",
                code="options.choice",
            )

    @property
    def plan(self) -> Resampling:
        """Return how to resample."""
        return Resampling(self.resamples, self.seed, self.level, self.intervals)

    @property
    def interval(self) -> str:
        """Return the name of the intervals."""
        return METHODS[self.intervals]

    def interval_in_words(self, unit: str) -> str:
        """Describe the intervals, for the methods of a report."""
        if self.intervals == "jackknife":
            return f"{self.level:.0%} jackknife intervals that leave each {unit} out in turn (Student's t)"
        how = PERCENTILES[self.intervals]
        drawn = f"that draw each {unit} whole ({how}, {self.resamples:,} resamples, seed {self.seed})"
        return f"{self.level:.0%} cluster bootstraps {drawn}"


class MarginOptions(TestingOptions, frozen=True, kw_only=True):
    """The same, of a metric that says whether a difference in percent is shown to be near neutral."""

    margin: float | None = None
    """Percentage points around neutral that count as near; gives a verdict of equivalence. None asks for none."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        if self.margin is not None and not 0 < self.margin < 100:
            raise UsageError(
                f"margin is {self.margin}. Give percentage points above 0 and below 100.", code="options.value"
            )


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


class CrowsPairsOptions(MarginOptions, frozen=True, kw_only=True):
    """How to count a pair of CrowS-Pairs."""

    decimals: int | None = 3
    """Round log-probabilities to so many decimals before they are compared, as published; None does not round."""
