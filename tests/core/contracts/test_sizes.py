"""Which differences matter: the margin in the difference's own unit, held against its interval."""

import pytest

from prejudge.core.contracts import Estimate
from prejudge.core.contracts.estimates import Caveat, Verdict
from prejudge.core.contracts.sizes import ROW_WORDS, State, judged, size_of, with_margin


def difference(value, low, high, verdict):
    return Estimate.from_flat(
        metric="m", group={}, value=value, neutral=0.0, low=low, high=high, p_adjusted=0.5, verdict=verdict
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict", "size"),
    [
        (5.0, 3.0, 7.0, Verdict.ABOVE, State.SHOWN),
        (-2.0, -3.0, -1.0, Verdict.BELOW, State.SHOWN),
        (1.0, 0.5, 3.0, Verdict.ABOVE, State.SHOWN),
        (1.0, 0.5, 1.5, Verdict.ABOVE, State.SMALL),
        (0.1, -0.5, 0.7, Verdict.OPEN, State.NEAR),
        (0.1, -0.5, 2.0, Verdict.OPEN, State.OPEN),
        (1.0, None, None, Verdict.OPEN, State.OPEN),
        (None, None, None, None, State.UNTESTED),
    ],
)
def test_size_by_interval_and_margin(value, low, high, verdict, size):
    assert size_of(with_margin(difference(value, low, high, verdict), 2.0)) is size


def test_without_a_margin_the_convention_for_shares_judges():
    """One rule: what the first screen of a report calls small is small in a comparison."""
    small = difference(1.0, 0.5, 1.5, Verdict.ABOVE)
    assert size_of(with_margin(small, None)) is State.SHOWN  # nothing says what is small in this unit
    points = small.replace(unit="percentage points")
    assert size_of(with_margin(points, None)) is judged(points) is State.SMALL
    assert size_of(with_margin(points, 0.2)) is State.SHOWN
    assert with_margin(difference(0.1, -0.5, 0.7, Verdict.OPEN), 2.0).verdict is Verdict.NEAR


def test_narrow_interval_excludes_nothing():
    few = difference(0.1, -0.5, 0.7, Verdict.OPEN).replace(caveats=(Caveat.FEW_CLUSTERS,))
    assert size_of(with_margin(few, 2.0)) is State.OPEN


def test_every_verdict_has_words():
    assert set(ROW_WORDS) == set(State)
