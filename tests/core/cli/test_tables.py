"""`prejudge export`: estimates of some measures and groups."""

from __future__ import annotations

import pytest

from prejudge.core.cli.tables import _selected
from prejudge.core.contracts import Estimate
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.testing import raises_code

EVERY = [
    Estimate.from_flat(metric=metric, group=group, value=1.0)
    for metric in ("bias", "other")
    for group in ({}, {"axis": "height"}, {"axis": "body shape", "threshold": 0.02})
]


@pytest.mark.parametrize(
    ("metrics", "group", "count"),
    [
        ((), {}, 6),
        (("bias",), {}, 3),
        (("bias", "other"), {"axis": "height"}, 2),
        ((), {"axis": "*h*"}, 4),
        (("bias",), {"axis": ""}, 1),
        ((), {"threshold": 0.02, "axis": "body*"}, 2),
    ],
)
def test_measures_and_groups_are_selected(metrics, group, count):
    assert len(_selected(EVERY, metrics, group)) == count


def test_what_is_not_there_is_named():
    with raises_code(UsageError, "export.metric", "bias, other"):
        _selected(EVERY, ("bais",), {})
    with raises_code(UnknownNameError, "unknown-factor", "'axis'"):
        _selected(EVERY, (), {"axes": "height"})
    with raises_code(UsageError, "export.group", "height, body shape"):
        _selected(EVERY, (), {"axis": "weight"})
    with raises_code(UsageError, "export.metric"):
        _selected([], (), {})
