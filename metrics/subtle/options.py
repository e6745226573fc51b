"""Options of the metric `subtle`."""

from __future__ import annotations

from ...core.statistics.facets import FacetOptions


class SubtleMetricOptions(FacetOptions, frozen=True, kw_only=True):
    """Options for measuring associations of polarity."""

    cluster: str | tuple[str, ...] = ("template", "term")
    """Columns that the claim is to hold for beyond their values: two are crossed, one is resampled whole."""
