"""`Difference`: what a comparison finds."""

from __future__ import annotations

from typing import NamedTuple

from ..answer.rows import about_of, label_of
from ..contracts import Estimate

POINTS = {"%": "percentage points"}
"""The unit of a difference, where it is not that of the values."""
ENDS = ("run", "against")


class Difference(NamedTuple):
    """A difference between two runs, with each run's value over all its own units."""

    estimate: Estimate
    """Its group has `run` and `against`, then the measure's own."""
    first: float | None
    second: float | None


def words_of(e: Estimate) -> tuple[str, str]:
    """Return what a difference is of, in words: the measure with its unit, and the levels of the group."""
    levels = about_of(e.replace(group={name: level for name, level in e.group.items() if name not in ENDS}))
    return f"{label_of(e)}{f' ({e.unit})' if e.unit else ''}", levels or "all"
