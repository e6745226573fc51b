"""Which differences matter: the margin in the difference's own unit, held against its interval."""

import pytest

from prejudge.core.contracts import Estimate
from prejudge.core.contracts.estimates import Verdict
from prejudge.core.contracts.sizes import Size, size_of, with_margin


def difference(value, low, high, verdict):
    return Estimate.from_flat(metric="m", group={}, value=value, low=low, high=high, p_adjusted=0.5, verdict=verdict)


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict", "size"),
    [
        (5.0, 3.0, 7.0, Verdict.ABOVE, Size.LARGER),
        (-2.0, -3.0, -1.0, Verdict.BELOW, Size.LARGER),
        (1.0, 0.5, 3.0, Verdict.ABOVE, Size.UNCLEAR),
        (1.0, 0.5, 1.5, Verdict.ABOVE, Size.SMALL),
        (0.1, -0.5, 0.7, Verdict.OPEN, Size.ALIKE),
        (0.1, -0.5, 2.0, Verdict.OPEN, Size.NOT_SHOWN),
        (1.0, None, None, Verdict.OPEN, Size.NOT_SHOWN),
        (None, None, None, None, Size.UNTESTED),
    ],
)
def test_size_by_interval_and_margin(value, low, high, verdict, size):
    assert size_of(with_margin(difference(value, low, high, verdict), 2.0)) is size


def test_without_a_margin_no_size_is_judged():
    for margin in (None,):
        assert size_of(with_margin(difference(0.001, 0.0005, 0.0015, Verdict.ABOVE), margin)) is Size.SIGNIFICANT
    assert with_margin(difference(0.1, -0.5, 0.7, Verdict.OPEN), 2.0).verdict is Verdict.NEAR
