"""`Difference`: what a comparison finds."""

from __future__ import annotations

from typing import NamedTuple

from ..contracts import Estimate

POINTS = {"%": "percentage points"}
"""The unit of a difference, where it is not that of the values."""


class Difference(NamedTuple):
    """A difference between two runs, with each run's value over all its own units."""

    estimate: Estimate
    """Its group has `run` and `against`, then the measure's own."""
    first: float | None
    second: float | None
