"""Limits are allowed values: an interval that touches one from outside is not shown to be beyond it."""

from __future__ import annotations

import pytest

from prejudge.core.gate.checks import Allowed, State

ALLOWED = Allowed(least=0.0, most=5.0)


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (0.0, 5.0, State.PASS),
        (1.0, 4.0, State.PASS),
        (5.0, 7.0, State.OPEN),
        (5.0 + 1e-9, 7.0, State.FAIL),
        (-3.0, 0.0, State.OPEN),
        (-3.0, -1e-9, State.FAIL),
        (0.0, 5.0 + 1e-9, State.OPEN),
        (-1e-9, 5.0, State.OPEN),
    ],
)
def test_interval_that_touches_a_limit(low, high, state):
    assert ALLOWED.state(low, high) is state
