"""Limits are allowed values: an interval that touches one from outside is not shown to be beyond it."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.core.gate.checks import Allowed, State
from prejudge.core.gate.deciding import thresholds
from prejudge.core.gate.policy import parse_policy, read_policy
from prejudge.testing import raises_code

from .test_gate import estimate as estimate_of

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


def test_thresholds_of_a_measure_without_a_neutral_value_are_its_limits_alone():
    policy = parse_policy("[[rules]]\nmeasure = 'length'\nmax = 9\nmax_distance = 2")
    assert thresholds(policy, estimate_of(metric="length", neutral=5.0)) == [9.0, 3.0, 7.0]
    assert thresholds(policy, estimate_of(metric="length", neutral=None)) == [9.0]


def test_policy_that_is_no_text_is_refused_with_the_reason(tmp_path):
    (tmp_path / "p.toml").write_bytes(b"\xff")
    for path, reason in ((tmp_path / "p.toml", "utf-8"), (tmp_path / "no.toml", "No such file")):
        with raises_code(DataError, "file.unreadable") as raised:
            read_policy(path)
        assert reason in str(raised.value)
