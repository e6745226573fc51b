"""The one rule of verdicts: significance and size are two questions, and a verdict has a side.

In this order: the whole interval within the limit is no difference beyond it, whether or not the value differs
significantly; a significant value lies above neutral or below; all else cannot be told yet. A question says on which
side its answer is yes. That a value is not significant does not show that there is no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from .estimates import SIGNIFICANT, WITHIN, Caveat, Estimate, Verdict
from .words import MARGIN, defined

SURE = "Not finding a difference does not show that there is none."
"""What stands beside every verdict that nothing can be told yet."""
FEWEST_UNITS = 8
"""Units of a compared group, twin pairs or else distinct prompts, below which no number of it stands first."""
POINTS, SHARE = "percentage points", "share"
LIMIT_BY_UNIT = {POINTS: 5.0, "%": 5.0, SHARE: 0.05}
"""Limit of a measure for which neither the study nor its metric states one: a convention."""
CONVENTION = "a convention: no source states what matters"
NARROW = frozenset({Caveat.FEW_CLUSTERS, Caveat.FEW_LEVELS, Caveat.ONE_CLUSTER, Caveat.NO_VARIATION, Caveat.UNSTABLE})
"""Caveats of intervals that may be too narrow to exclude anything."""
Side = Literal["above", "below", "either"]
"""Where the answer to a question is yes: of values above neutral, below it, or on either side."""


class State(StrEnum):
    """The verdict on a number, or on a question that several numbers answer."""

    YES = "yes"
    """It differs significantly from neutral, after correction, on the side that the question asks about."""
    NO = "no"
    """It differs significantly, after correction, on the other side."""
    OPPOSITE = "opposite"
    """Some groups differ significantly to one side, and others to the other, after correction."""
    NEAR = "near"
    """The whole interval lies within the limit, whether or not the value differs significantly."""
    OPEN = "open"
    """It does not differ significantly, and a difference beyond the limit is not excluded."""
    UNJUDGED = "unjudged"
    """There is nothing to judge: no neutral value, or no test."""
    NOTHING = "nothing"
    """There is no number, as no answer could be used."""
    UNFIT = "unfit"
    """The model answered fewer than half of the questions: it could not do the task, and no number is of it."""


WORDS = {
    State.YES: "Yes",
    State.NO: "No, the opposite",
    State.OPPOSITE: "In opposite directions",
    State.NEAR: "No difference beyond the limit",
    State.OPEN: "Cannot tell yet",
    State.UNJUDGED: "Not judged",
    State.NOTHING: "No answers",
    State.UNFIT: "Could not do the task",
}
SHORT_WORDS = WORDS | {State.UNJUDGED: "\N{EM DASH}"}
"""The same in a table."""
MEANINGS = {
    State.YES: "The difference is statistically significant after correction for the number of tests, on the side that "
    "the question asks about.",
    State.NO: "The difference is statistically significant after correction for the number of tests, on the side "
    "opposite to the one that the question asks about.",
    State.OPPOSITE: "The difference is statistically significant in both directions, each in some of the groups, after "
    "correction for the number of tests.",
    State.NEAR: "The whole interval lies within the limit: a larger difference can be excluded, for what was asked.",
    State.OPEN: f"The numbers are compatible with no difference and with one beyond the limit. {SURE}",
    State.UNJUDGED: "The measure has no neutral value or no test, so there is nothing to judge.",
    State.NOTHING: f"No answer could be used for this question. {SURE}",
    State.UNFIT: "Fewer than half of the questions were answered, refusals counted as answers: numbers from the others "
    "would say nothing of the model.",
}
DECIDED = frozenset({State.YES, State.NO, State.OPPOSITE})
"""Verdicts of a significant difference that may be beyond the limit."""


def limit_for(e: Estimate, declared: float | None = None) -> float | None:
    """Return the limit around neutral, in the estimate's unit; None where none is known.

    It is the margin of the metric, else the `declared` one of the study's question, else a convention for shares.
    """
    margin = e.facts.get(MARGIN)
    if isinstance(margin, int | float) and not isinstance(margin, bool):
        return float(margin)
    return declared if declared is not None or e.subject else LIMIT_BY_UNIT.get(e.unit)


def judge_within(e: Estimate, limit: float | None, *, significant: bool) -> Estimate:
    """Return a judged estimate with its verdict by the rule, its limit, and whether its interval lies within.

    Args:
        e: with a value and a neutral value.
        limit: distance from neutral, in the estimate's unit; None: no interval is within it.
        significant: whether the value differs from neutral after correction.
    """
    within = _inside(e, limit)
    facts = {name: fact for name, fact in e.facts.items() if name not in (WITHIN, SIGNIFICANT)}
    if limit is not None:
        facts |= {MARGIN: limit, WITHIN: within}
    if within:
        return e.replace(verdict=Verdict.NEAR, facts=facts | ({SIGNIFICANT: True} if significant else {}))
    if not significant or e.value is None or e.neutral is None:
        return e.replace(verdict=Verdict.OPEN, facts=facts)
    return e.replace(verdict=Verdict.ABOVE if e.value > e.neutral else Verdict.BELOW, facts=facts)


def limited(e: Estimate, limit: float | None) -> Estimate:
    """Return an estimate judged by its limit; unchanged where it has no verdict, or nothing states a limit."""
    if e.verdict is None or e.value is None or limit is None:
        return e
    return judge_within(e, limit, significant=e.significant)


def state_of(e: Estimate, side: Side = "either") -> State:
    """Return the verdict on an estimate, by the side on which the answer is yes."""
    if e.value is None or not defined(e.value):
        return State.NOTHING
    if e.verdict is None:
        return State.UNJUDGED
    if e.verdict in (Verdict.ABOVE, Verdict.BELOW):
        return State.YES if side in ("either", e.verdict) else State.NO
    return State.NEAR if e.verdict is Verdict.NEAR else State.OPEN


def over(states: Sequence[State]) -> State:
    """Return the verdict on a question whose numbers have these."""
    judged = [state for state in states if state not in (State.UNJUDGED, State.NOTHING)]
    decided = [state for state in (State.YES, State.NO) if state in judged]
    if decided:
        return decided[0] if len(decided) == 1 else State.OPPOSITE
    if judged:
        return State.NEAR if set(states) == {State.NEAR} else State.OPEN
    return State.UNJUDGED if State.UNJUDGED in states else State.NOTHING


def state_of_difference(difference: Estimate) -> State:
    """Return the verdict on a difference of two runs; `UNJUDGED` without a value or a test."""
    tested = difference.p_adjusted is not None and difference.value is not None
    return state_of(difference) if tested else State.UNJUDGED


def _inside(e: Estimate, limit: float | None) -> bool:
    if limit is None or e.neutral is None or NARROW.intersection(e.caveats):
        return False
    return e.low is not None and e.high is not None and e.neutral - limit < e.low and e.high < e.neutral + limit
