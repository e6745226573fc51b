"""The verdict on a question: that of its numbers, by the side and the limit that the study declares."""

from __future__ import annotations

from ..catalogue.questions import Question
from ..contracts import sizes
from ..contracts.estimates import Estimate
from ..contracts.sizes import DECIDED, State


def limit_of(question: Question, e: Estimate) -> float | None:
    """Return the limit around neutral, in the estimate's own unit; None where none is known."""
    return sizes.limit_for(e, question.limit)


def state_of(question: Question, e: Estimate) -> State:
    """Return the verdict on one estimate; a count of what is significant is a finding where it is above 0."""
    state = sizes.state_of(e, question.side)
    if not question.counts or state is State.NOTHING or e.value is None:
        return state
    return State.YES if e.value > 0 else State.OPEN


def undone(question: Question, e: Estimate, state: State) -> bool:
    """Return whether the answers that are missing could change the verdict, at their worst."""
    low, high = e.bound_low, e.bound_high
    if not e.missing.total or e.neutral is None or e.value is None:
        return False
    if state in DECIDED:
        return low is None or high is None or low <= e.neutral <= high
    limit = limit_of(question, e)
    if state is State.NEAR and limit is not None:
        return low is None or high is None or low <= e.neutral - limit or high >= e.neutral + limit
    return False
