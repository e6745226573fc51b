"""Whether a difference matters: significance and size are two questions, and neither answers the other."""

from __future__ import annotations

from enum import StrEnum

from .estimates import WITHIN, Estimate, Verdict
from .words import MARGIN


class Size(StrEnum):
    """What a tested difference says. Without a margin, sizes are not judged."""

    LARGER = "larger than the margin"
    """Significant, and the difference is not below its margin."""
    UNCLEAR = "size unclear"
    """Significant; the difference is below its margin, but its interval reaches beyond."""
    SMALL = "small"
    """Significant, and its interval lies within the margin."""
    SIGNIFICANT = "significant"
    """Significant; no margin is set."""
    ALIKE = "alike within the margin"
    """Not significant, and its interval lies within the margin."""
    NOT_SHOWN = "not shown"
    """Not significant. This does not show that there is none."""
    UNTESTED = "not tested"


def size_of(difference: Estimate) -> Size:
    """Return what a difference says, by its test and the facts `margin` and `within_margin`."""
    if difference.p_adjusted is None or difference.value is None:
        return Size.UNTESTED
    margin, within = difference.facts.get(MARGIN), difference.facts.get(WITHIN) is True
    if not difference.shown:
        return Size.ALIKE if within else Size.NOT_SHOWN
    if not isinstance(margin, int | float):
        return Size.SIGNIFICANT
    if within:
        return Size.SMALL
    return Size.LARGER if abs(difference.value) >= margin else Size.UNCLEAR


def with_margin(difference: Estimate, margin: float | None) -> Estimate:
    """Return a difference with its margin, in its own unit, and whether its interval lies within.

    Its interval has the level of the report (95 %), which is stricter than two one-sided tests at 0.05 ask for.
    """
    if margin is None or difference.value is None:
        return difference
    ends = (difference.low, difference.high)
    within = all(end is not None and abs(end) < margin for end in ends)
    near = within and difference.verdict is Verdict.OPEN
    return difference.replace(
        facts={**difference.facts, MARGIN: margin, WITHIN: within},
        verdict=Verdict.NEAR if near else difference.verdict,
    )
