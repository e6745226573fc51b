"""Names shared by the probe and the metric of the study of attractiveness."""

from __future__ import annotations

VARIANTS = ("original", "filtered")
"""Of a face: without and with the filter."""
TRAITS = ("gender", "age_group", "race")
"""What is known of a face, and compared."""
PERSON = (*TRAITS, "source")
DESIGN = ("scenario", "category", "kind", "positive", "stereotype")
"""Columns that say what a scenario is about."""
ORDER = ("first_is", "asked")
"""Columns that say how the options were shown."""
