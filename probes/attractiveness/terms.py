"""Names shared by the probe and the metric of the study of attractiveness."""

from __future__ import annotations

VARIANTS = ("original", "filtered")
"""Variants of a face: without and with the filter."""
TRAITS = ("gender", "age_group", "race")
"""Columns on the person, by which faces are compared."""
PERSON = (*TRAITS, "source")
ATTRACTIVENESS = "attractiveness"
"""Column of people's ratings of how attractive a face is in this image; and the name of those ratings."""
BETWEEN = " vs "
"""Stands between the two options in the name of a scenario, and between the groups of a stereotype."""
DESIGN = ("scenario", "category", "kind", "positive", "stereotype")
"""Columns on the scenario."""
ORDER = ("first_is", "asked")
"""Columns on the order of the options."""
