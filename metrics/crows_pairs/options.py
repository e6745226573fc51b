"""Options of CrowS-Pairs."""

from __future__ import annotations

from ...core.statistics.estimates import MarginOptions


class CrowsPairsOptions(MarginOptions, frozen=True, kw_only=True):
    """How to count a pair of CrowS-Pairs."""

    decimals: int | None = 3
    """Round log-probabilities to so many decimals before they are compared, as published; None does not round."""
