"""The rule of verdicts: the limit in the value's own unit, held against the interval, then significance and side."""

import pytest

from prejudge.core.contracts import Estimate
from prejudge.core.contracts.estimates import Caveat, Verdict
from prejudge.core.contracts.sizes import (
    MEANINGS,
    SHORT_WORDS,
    WORDS,
    State,
    limit_for,
    limited,
    over,
    state_of,
    state_of_difference,
)


def difference(value, low, high, verdict):
    return Estimate.from_flat(
        metric="m", group={}, value=value, neutral=0.0, low=low, high=high, p_adjusted=0.5, verdict=verdict
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict", "state"),
    [
        (5.0, 3.0, 7.0, Verdict.ABOVE, State.YES),
        (-2.0, -3.0, -1.0, Verdict.BELOW, State.NO),
        (1.0, 0.5, 3.0, Verdict.ABOVE, State.YES),
        (1.0, 0.5, 1.5, Verdict.ABOVE, State.NEAR),
        (0.1, -0.5, 0.7, Verdict.OPEN, State.NEAR),
        (0.1, -0.5, 2.0, Verdict.OPEN, State.OPEN),
        (1.0, None, None, Verdict.OPEN, State.OPEN),
        (None, None, None, None, State.NOTHING),
    ],
)
def test_verdict_by_interval_limit_and_side(value, low, high, verdict, state):
    e = limited(difference(value, low, high, verdict), 2.0)
    assert state_of(e, "above") is state
    turned = {State.YES: State.NO, State.NO: State.YES}
    assert state_of(e, "below") is turned.get(state, state)
    assert state_of_difference(e) is (State.UNJUDGED if value is None else turned.get(State.NO) if e.shown else state)


def test_significance_is_kept_where_the_interval_is_within_the_limit():
    within = limited(difference(1.0, 0.5, 1.5, Verdict.ABOVE), 2.0)
    assert (within.verdict, within.significant, within.shown) == (Verdict.NEAR, True, False)
    again = limited(within, 1.2)
    assert (again.verdict, again.significant) == (Verdict.ABOVE, True)
    assert not limited(difference(0.1, -0.5, 0.7, Verdict.OPEN), 2.0).significant


def test_without_a_limit_the_convention_for_shares_judges():
    e = difference(1.0, 0.5, 1.5, Verdict.ABOVE)
    assert limit_for(e) is None and limited(e, None) is e
    points = e.replace(unit="percentage points")
    assert limit_for(points) == 5.0 and limit_for(points, 0.2) == 0.2
    assert limit_for(points.replace(facts={"margin": 0.1}), 0.2) == 0.1
    # Of missing answers and positions nothing says what matters.
    assert limit_for(points.replace(topic="missing")) is None


def test_narrow_interval_excludes_nothing():
    few = difference(0.1, -0.5, 0.7, Verdict.OPEN).replace(caveats=(Caveat.FEW_CLUSTERS,))
    assert state_of_difference(limited(few, 2.0)) is State.OPEN


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ([State.YES, State.NEAR], State.YES),
        ([State.NO, State.OPEN], State.NO),
        ([State.YES, State.NO, State.OPEN], State.OPPOSITE),
        ([State.NEAR, State.NEAR], State.NEAR),
        ([State.NEAR, State.OPEN], State.OPEN),
        ([State.UNJUDGED, State.NOTHING], State.UNJUDGED),
        ([State.NOTHING], State.NOTHING),
    ],
)
def test_verdict_over_groups(states, state):
    assert over(states) is state


def test_every_verdict_has_words():
    assert set(SHORT_WORDS) == set(WORDS) == set(MEANINGS) == set(State)
