"""What is missing, and whether it differs between groups."""

from __future__ import annotations

import pytest
from scipy import stats

from prejudge.core.statistics.observations import Group, missing_estimates


def test_missing_share_by_group_and_in_all():
    whole, first, second = missing_estimates([Group({"g": 1}, 90, {"refused": 10}), Group({"g": 2}, 100, {})], 0.95)
    assert (whole.value, first.value, second.value) == (5.0, 10.0, 0.0)
    assert (whole.missing.counts, whole.n) == ({"refused": 10}, 200)
    assert second.high > 0


def test_missing_is_tested_between_groups():
    whole, *_ = missing_estimates([Group({"g": 1}, 90, {"refused": 10}), Group({"g": 2}, 100, {})], 0.95)
    assert whole.p == pytest.approx(stats.chi2_contingency([[10, 90], [0, 100]], correction=False).pvalue)
    assert whole.effect.name == "Cramér's V"


def test_nothing_missing_is_one_row_without_test():
    (whole,) = missing_estimates([Group({"g": 1}, 90, {}), Group({"g": 2}, 10, {})], 0.95)
    assert (whole.value, whole.p) == (0.0, None)


def test_all_missing_is_not_tested():
    whole, *_ = missing_estimates([Group({"g": 1}, 0, {"failed": 3}), Group({"g": 2}, 0, {"failed": 2})], 0.95)
    assert (whole.value, whole.p) == (100.0, None)


def test_no_pairs_have_no_share():
    (whole,) = missing_estimates([], 0.95)
    assert (whole.value, whole.low) == (None, None)
