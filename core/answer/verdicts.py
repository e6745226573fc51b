"""The verdict on a question, from those on its estimates and the size that counts as small."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalogue.questions import Question
from ..contracts.estimates import WITHIN, Caveat, Estimate, Verdict
from ..contracts.words import MARGIN, defined
from .records import POINTS, SHARE, State

SMALL_BY_UNIT = {POINTS: 5.0, "%": 5.0, SHARE: 0.05}
"""Distance from neutral that counts as small where neither the study nor its metric says one: a convention."""
NARROW = frozenset({Caveat.FEW_CLUSTERS, Caveat.FEW_LEVELS, Caveat.ONE_CLUSTER, Caveat.NO_VARIATION, Caveat.UNSTABLE})
"""Caveats of intervals that may be too narrow to exclude anything."""


def small_of(question: Question, e: Estimate) -> float | None:
    """Return the distance from neutral that counts as small, in the estimate's own unit; None where none is known."""
    own = e.facts.get(MARGIN)
    if isinstance(own, int | float) and not isinstance(own, bool):
        return float(own)
    return question.small if question.small is not None else SMALL_BY_UNIT.get(e.unit)


def state_of(question: Question, e: Estimate) -> State:
    """Return the verdict on one estimate.

    A difference is called small, or a value near neutral, only where the whole interval that is printed lies within
    the size that counts as small, or where the metric's own test of equivalence says so. That a difference is not
    significant shows neither.
    """
    if e.value is None or not defined(e.value):
        return State.NOTHING
    if question.counts:
        return State.SHOWN if e.value > 0 else State.OPEN
    if e.verdict is None:
        return State.GIVEN
    near = e.verdict is Verdict.NEAR or e.facts.get(WITHIN) is True or _inside(e, small_of(question, e))
    if e.shown:
        return State.SMALL if near else State.SHOWN
    return State.NEAR if near else State.OPEN


def _inside(e: Estimate, small: float | None) -> bool:
    if small is None or e.neutral is None or NARROW.intersection(e.caveats):
        return False
    return e.low is not None and e.high is not None and e.neutral - small < e.low and e.high < e.neutral + small


def state_over(states: Sequence[State]) -> State:
    """Return the verdict on a question whose estimates have these."""
    judged = [state for state in states if state not in (State.GIVEN, State.NOTHING)]
    for state in (State.SHOWN, State.SMALL):
        if state in judged:
            return state
    if judged:
        return State.NEAR if set(states) == {State.NEAR} else State.OPEN
    return State.GIVEN if State.GIVEN in states else State.NOTHING


def undone(question: Question, e: Estimate, state: State) -> bool:
    """Return whether the answers that are missing could change the verdict, at their worst."""
    low, high = e.bound_low, e.bound_high
    if not e.missing.total or e.neutral is None or e.value is None:
        return False
    if state in (State.SHOWN, State.SMALL):
        return low is None or high is None or low <= e.neutral <= high
    small = small_of(question, e)
    if state is State.NEAR and small is not None:
        return low is None or high is None or low <= e.neutral - small or high >= e.neutral + small
    return False
