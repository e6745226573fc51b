"""Options of the metric `dora-associations`."""

from __future__ import annotations

from typing import Literal

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import TestingOptions
from ...probes.dora.salience import Reading

Kept = Literal["tf-idf", "fisher", "log-odds", "pmi", "all"]


class DoraAssociationsOptions(TestingOptions, frozen=True, kw_only=True):
    """Which associations count, and what they are held against."""

    method: Kept = "tf-idf"
    """Whose salient associations valence, levels, novelty and overlap are about; `all` takes every association."""
    salience_level: float = 0.05
    """Level of p (tf-idf), or of p adjusted (fisher, log-odds)."""
    salience_keep: Literal["within", "above"] = "within"
    """Of `tf-idf`: scores within the standard-deviation range, as in Table 4, or above it."""
    documented: str | None = None
    """CSV of known associations: `descriptor` and `word`, or CrowS-Pairs's `sent_more`. None asks not."""
    human: str | None = None
    """CSV of people's judgements: `descriptor`, `word`, `level` from 1 to 5. None asks not."""
    gallery: int = 2
    """Images to show with their descriptions, per dimension."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        super().__post_init__()
        if not 0 < self.salience_level < 1:
            raise UsageError(
                f"salience_level is {self.salience_level}. Give a number between 0 and 1.", code="options.value"
            )
        if self.gallery < 0:
            raise UsageError(f"gallery is {self.gallery}. Give 0 or more.", code="options.value")

    @property
    def reading(self) -> Reading:
        """Return how section 3.1 is read."""
        return Reading(keep=self.salience_keep)

    @property
    def column(self) -> str | None:
        """Return the column that says which associations count."""
        return None if self.method == "all" else f"salient_{self.method.replace('-', '_')}"
