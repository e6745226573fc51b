"""Names shared by the probe and the metric of the study of attractiveness."""

from __future__ import annotations

VARIANTS = ("original", "filtered")
"""Variants of a face: without and with the filter."""
TRAITS = ("gender", "age_group", "race")
"""Columns on the person, by which faces are compared."""
PERSON = (*TRAITS, "source")
DESIGN = ("scenario", "category", "kind", "positive", "stereotype")
"""Columns on the scenario."""
ORDER = ("first_is", "asked")
"""Columns on the order of the options."""
