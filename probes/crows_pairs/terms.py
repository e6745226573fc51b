"""Names shared by the probe and the metric of CrowS-Pairs."""

from __future__ import annotations

SIDES = ("more", "less")
"""The more and the less stereotypical sentence."""
DIRECTIONS = ("stereo", "antistereo")
"""Whether a pair states a stereotype or goes against one, as the published file has it."""
CELL = ("direction", "bias_type")
"""Columns that say what a pair is about."""
