"""Numbers, counts and facts in words: one way for every table and sentence."""

import pytest

from prejudge.core.contracts.estimates import Estimate, SignificanceTest
from prejudge.core.contracts.words import counted, exact, explained, fixed, percent, signed

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (fixed(-1.25, 1), f"{MINUS}1.2"),
        (fixed(-0.04, 1), "0.0"),
        (fixed(1234.5, 1), "1,234.5"),
        (signed(0.0, 1), "+0.0"),
        (signed(-0.04, 1), "+0.0"),
        (signed(-2, 1), f"{MINUS}2.0"),
        (signed(2, 2), "+2.00"),
        (percent(0.95), "95 %"),
        (percent(0.999), "99.9 %"),
        (percent(1 / 3, 0), "33 %"),
        (exact(-0.5), f"{MINUS}0.5"),
        (counted(1, "test"), "1 test"),
        (counted(0, "test"), "0 tests"),
        (counted(1200, "test"), "1,200 tests"),
    ],
)
def test_numbers_are_written_one_way(written, expected):
    assert written == expected


def test_facts_are_said_without_underscores():
    found = Estimate(
        metric="m", group={}, value=1.0, facts={"main_threshold": True, "random_splits": 1000, "no": False}
    )
    assert explained(found) == "main threshold; random splits: 1,000"


@pytest.mark.parametrize(("p", "adjusted", "changed"), [(0.01, 0.02, True), (0.01, 0.01, False), (0.01, None, False)])
def test_p_of_a_family_of_one_is_not_adjusted(p, adjusted, changed):
    assert SignificanceTest(p=p, p_adjusted=adjusted).adjusted is changed
