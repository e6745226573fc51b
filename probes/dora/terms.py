"""Names shared by the probes and the metric of BiasDora."""

from __future__ import annotations

STAGES = ("completions", "descriptions", "impressions")
"""Stages with answers in words."""
CELL = ("modality", "setting")
"""Associations are discovered within each of these cells."""
PLACE = (*CELL, "dimension", "descriptor")
PAIR = (*PLACE, "word")
UNKNOWN = "unknown"
"""Label of a single word that the lexicon does not have: it is missing, not neutral."""
ABSENT = "absent"
"""Status of an association without an assessment."""
