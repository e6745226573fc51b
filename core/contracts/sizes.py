"""The one vocabulary of verdicts, and the one rule of size: significance and size are two questions.

A difference is called small, or a value near neutral, only where the whole interval that is printed lies within the
size that counts as small, or where the metric's own test of equivalence says so. That a difference is not significant
shows neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from .estimates import WITHIN, Caveat, Estimate, Verdict
from .words import MARGIN, defined

SURE = "This does not show that there is none."
"""What stands beside every verdict that nothing was shown."""
FEWEST_UNITS = 8
"""Units of a compared group, twin pairs or else distinct prompts, below which no number of it stands first."""
POINTS, SHARE = "percentage points", "share"
SMALL_BY_UNIT = {POINTS: 5.0, "%": 5.0, SHARE: 0.05}
"""Distance from neutral that counts as small where neither the study nor its metric says one: a convention."""
NARROW = frozenset({Caveat.FEW_CLUSTERS, Caveat.FEW_LEVELS, Caveat.ONE_CLUSTER, Caveat.NO_VARIATION, Caveat.UNSTABLE})
"""Caveats of intervals that may be too narrow to exclude anything."""


class State(StrEnum):
    """The verdict on a number, or on a question that several numbers answer."""

    SHOWN = "shown"
    """It differs significantly from neutral, after correction."""
    SMALL = "small"
    """The same, but its whole interval lies within the size that counts as small."""
    OPPOSITE = "opposite"
    """Some groups differ significantly to one side, and others to the other, after correction."""
    OPEN = "open"
    """It does not differ significantly, and a difference that matters cannot be excluded."""
    NEAR = "near"
    """It does not differ significantly, and its whole interval lies within the size that counts as small."""
    GIVEN = "given"
    """There is nothing to judge: no neutral value, or no test."""
    UNTESTED = "given"
    """The same, of a difference."""
    NOTHING = "nothing"
    """There is no number, as no answer could be used."""
    UNFIT = "unfit"
    """The model answered fewer than half of the questions: it could not do the task, and no number is of it."""


WORDS = {
    State.SHOWN: "Shown",
    State.SMALL: "Shown, but small",
    State.OPPOSITE: "In opposite directions",
    State.OPEN: "Not shown: too little data",
    State.NEAR: "Near neutral",
    State.GIVEN: "Measured, not judged",
    State.NOTHING: "Nothing can be said",
    State.UNFIT: "Could not do the task",
}
ROW_WORDS = WORDS | {State.OPEN: "Not shown", State.GIVEN: "\N{EM DASH}"}
"""The same in a table, below which `NOT_SHOWN` stands."""
NOT_SHOWN = f"Not shown: the data are too few to tell. {SURE}"
MEANINGS = {
    State.SHOWN: "The difference is statistically significant after correction for the number of tests.",
    State.SMALL: "The difference is statistically significant, but so small that its whole interval lies within the "
    "size that counts as small.",
    State.OPPOSITE: "The difference is statistically significant in both directions, each in some of the groups, after "
    "correction for the number of tests.",
    State.OPEN: f"The numbers are compatible with no difference and with one that matters. {SURE}",
    State.NEAR: "The whole interval lies within the size that counts as small: a larger difference can be excluded, "
    "for what was asked.",
    State.GIVEN: "The measure has no neutral value or no test, so there is nothing to judge.",
    State.NOTHING: f"No answer could be used for this question. {SURE}",
    State.UNFIT: "Fewer than half of the questions were answered, refusals counted as answers: numbers from the others "
    "would say nothing of the model.",
}


def small_for(e: Estimate, own: float | None = None) -> float | None:
    """Return the distance from neutral that counts as small, in the estimate's unit; None where none is known.

    It is the margin of the metric, else the study's `own`, else a convention for shares.
    """
    margin = e.facts.get(MARGIN)
    if isinstance(margin, int | float) and not isinstance(margin, bool):
        return float(margin)
    return own if own is not None else SMALL_BY_UNIT.get(e.unit)


def judged(e: Estimate, own: float | None = None) -> State:
    """Return the verdict on an estimate; `own` as in `small_for`."""
    if e.value is None or not defined(e.value):
        return State.NOTHING
    if e.verdict is None:
        return State.GIVEN
    near = e.verdict is Verdict.NEAR or e.facts.get(WITHIN) is True or _inside(e, small_for(e, own))
    if e.shown:
        return State.SMALL if near else State.SHOWN
    return State.NEAR if near else State.OPEN


def _inside(e: Estimate, small: float | None) -> bool:
    if small is None or e.neutral is None or NARROW.intersection(e.caveats):
        return False
    return e.low is not None and e.high is not None and e.neutral - small < e.low and e.high < e.neutral + small


def over(states: Sequence[State]) -> State:
    """Return the verdict on a question whose numbers have these."""
    known = [state for state in states if state not in (State.GIVEN, State.NOTHING)]
    for state in (State.SHOWN, State.SMALL):
        if state in known:
            return state
    if known:
        return State.NEAR if set(states) == {State.NEAR} else State.OPEN
    return State.GIVEN if State.GIVEN in states else State.NOTHING


def size_of(difference: Estimate) -> State:
    """Return the verdict on a difference of two runs; `UNTESTED` without a value or a test."""
    tested = difference.p_adjusted is not None and difference.value is not None
    return judged(difference) if tested else State.UNTESTED


def with_margin(difference: Estimate, margin: float | None) -> Estimate:
    """Return a difference with the size that counts as small, and whether its whole interval lies within.

    Its interval has the level of the report (95 %), which is stricter than two one-sided tests at 0.05 ask for.

    Args:
        difference: a difference of two runs.
        margin: in its own unit; None: that of the convention, where there is one.
    """
    small = margin if margin is not None else small_for(difference)
    if small is None or difference.value is None:
        return difference
    within = _inside(difference, small)
    near = within and difference.verdict is Verdict.OPEN
    return difference.replace(
        facts={**difference.facts, MARGIN: small, WITHIN: within},
        verdict=Verdict.NEAR if near else difference.verdict,
    )
