"""Options of the metric `dora-associations`."""

from __future__ import annotations

from typing import Literal

from ...core.contracts.errors import UsageError
from ...core.statistics.estimates import TestingOptions
from ...probes.dora.salience import Reading

Kept = Literal["exact", "fisher", "log-odds", "pmi", "tf-idf", "all"]


class DoraAssociationsOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for the associations that count, and the lists they are compared with."""

    option_effects = {"documented": "file", "human": "file"}

    method: Kept = "exact"
    """Method that selects the associations for valence, levels, novelty and overlap; `all` takes every association."""
    salience_level: float = 0.05
    """Level of p adjusted (exact, fisher, log-odds), or of p (tf-idf)."""
    salience_keep: Literal["within", "above"] = "within"
    """Associations that `tf-idf` keeps: scores within the standard-deviation range, as in Table 4, or above it."""
    salience_correction: Literal["discrete", "bh"] = "discrete"
    """Of `exact` over wordings: by the p that each test can give, or Benjamini-Hochberg."""
    documented: str | None = None
    """Table of known associations, by the names of its columns: `descriptor` and `word`, or those of SeeGULL,
    CrowS-Pairs or StereoSet. None omits novelty."""
    human: str | None = None
    """CSV of people's judgements: `descriptor`, `word`, `level` from 1 to 5. None omits the agreement with people."""
    gallery: int = 2
    """Number of images to show with their descriptions, per dimension."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if not 0 < self.salience_level < 1:
            raise UsageError(
                f"salience_level is {self.salience_level}. Give a number between 0 and 1.", code="options.value"
            )
        if self.gallery < 0:
            raise UsageError(f"gallery is {self.gallery}. Give 0 or more.", code="options.value")

    @property
    def reading(self) -> Reading:
        """Return the settings of section 3.1."""
        return Reading(keep=self.salience_keep, correction=self.salience_correction)

    @property
    def column(self) -> str | None:
        """Return the column that says which associations count."""
        return None if self.method == "all" else f"salient_{self.method.replace('-', '_')}"
