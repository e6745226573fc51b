"""Names shared by the probe and the metric of the subtle-bias studies."""

from __future__ import annotations

POSITIVE, NEGATIVE, NEUTRAL = POLARITIES = ("positive", "negative", "neutral")
"""Polarities of the options."""
GIVEN = (POSITIVE, NEGATIVE)
"""Polarities of the given term."""
