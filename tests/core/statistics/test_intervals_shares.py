"""Shares of a count."""

from __future__ import annotations

import pytest
from scipy import stats

from prejudge.core.statistics.intervals import scaled, share, worst_case


def test_share_agrees_with_beta_quantiles():
    found = share(7, 20, 0.95)
    assert found.value == 0.35
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 7, 14))
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 8, 13))


def test_share_tests_against_one_half():
    assert share(7, 20, 0.95).p == pytest.approx(2 * stats.binom.cdf(7, 20, 0.5))


def test_share_of_nothing_is_none():
    found = share(0, 0, 0.95)
    assert (found.value, found.low, found.high, found.p) == (None, None, None, None)


def test_full_share_has_a_wide_interval():
    found = share(5, 5, 0.95)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.025**0.2)


def test_tiny_p_is_not_zero():
    assert share(100_000, 100_000, 0.95).p > 0


def test_worst_case_covers_every_answer():
    assert worst_case(3, 8, 2) == (0.3, 0.5)


def test_worst_case_of_nothing_is_none():
    assert worst_case(0, 0, 0) == (None, None)


def test_worst_case_of_all_missing_is_everything():
    assert worst_case(0, 0, 4) == (0.0, 1.0)


def test_scaled_keeps_none():
    assert (scaled(None, 100), scaled(0.25, 100), scaled(0.25, 1, -0.5)) == (None, 25.0, -0.25)
