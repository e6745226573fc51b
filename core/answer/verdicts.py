"""The verdict on a question: that of its numbers, with the size that the study says counts as small."""

from __future__ import annotations

from ..catalogue.questions import Question
from ..contracts.estimates import Estimate
from ..contracts.sizes import State, judged, small_for


def small_of(question: Question, e: Estimate) -> float | None:
    """Return the distance from neutral that counts as small, in the estimate's own unit; None where none is known."""
    return small_for(e, question.small)


def state_of(question: Question, e: Estimate) -> State:
    """Return the verdict on one estimate; a count of what is significant is a finding where it is above 0."""
    state = judged(e, question.small)
    if not question.counts or state is State.NOTHING or e.value is None:
        return state
    return State.SHOWN if e.value > 0 else State.OPEN


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
