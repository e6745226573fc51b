"""Ends of intervals: how far they reach, and where they stop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.intervals import (
    FREE,
    SHARE,
    percentiles,
    ratio,
    reach_of,
    reach_of_clusters,
    stretched,
    within,
)
from prejudge.core.statistics.resampling import Resampling, bootstrap

PLAN = Resampling()


def mean(totals):
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


def one_side(values):
    values = np.asarray(values, dtype=float)
    return np.stack([np.ones_like(values), values], axis=-1)[:, None, None]


def left_out_gaps(first, second):
    """The difference of two means with each cluster left out in turn."""
    without = [np.delete(first, i).mean() - second.mean() for i in range(len(first))]
    without += [first.mean() - np.delete(second, i).mean() for i in range(len(second))]
    return np.array(without)[:, None]


@pytest.mark.parametrize(("one", "other"), [(5, 5), (4, 30), (12, 7)])
def test_reach_of_two_groups_is_that_of_welch(one, other):
    rng = np.random.default_rng(one)
    first, second = rng.normal(0, 1, one), rng.normal(1, 3, other)
    strata = [np.arange(one), np.arange(one, one + other)]
    (found,) = reach_of(left_out_gaps(first, second), strata, 0.95)
    spread = np.sqrt(first.var() / one + second.var() / other)  # What the bootstrap sees: divided by n, not n - 1.
    welch = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    assert found * spread == pytest.approx((welch.high - welch.low) / 2)


def test_reach_of_one_stratum_is_that_of_its_clusters():
    values = np.random.default_rng(0).normal(size=9)
    without = np.array([np.delete(values, i).mean() for i in range(9)])[:, None]
    assert reach_of(without, [np.arange(9)], 0.95) == pytest.approx([reach_of_clusters(0.95, 9)])


def test_five_even_clusters_reach_as_far_as_student():
    values = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    low, high = bootstrap(one_side(values), mean, PLAN, (FREE,))
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    assert (low[0, 0], high[0, 0]) == pytest.approx((theirs.low, theirs.high), abs=0.12)


def test_an_end_stops_at_the_limit_of_its_statistic():
    shares = [0.7, 0.9, 1.0, 1.0, 1.0]
    low, high = bootstrap(one_side(shares), mean, PLAN, (SHARE,))
    assert high[0, 0] == 1.0
    free_low, free_high = bootstrap(one_side(shares), mean, PLAN, (FREE,))
    assert free_high[0, 0] > 1.0
    assert free_low[0, 0] == low[0, 0]


def test_an_end_without_a_limit_stops_at_the_outmost_replicate():
    low, high = bootstrap(one_side([0.0, 0.0, 0.0, 0.0, 1.0]), mean, PLAN)
    assert 0.0 <= low[0, 0] < high[0, 0] <= 1.0
    free_low, free_high = bootstrap(one_side([0.0, 0.0, 0.0, 0.0, 1.0]), mean, PLAN, (FREE,))
    assert free_low[0, 0] < low[0, 0]
    assert free_high[0, 0] >= high[0, 0]


def test_from_ten_clusters_on_nothing_is_stretched():
    values = np.random.default_rng(2).normal(size=10)
    assert np.array_equal(*(bootstrap(one_side(values), mean, PLAN, ranges) for ranges in ((), (FREE,))))


def test_jackknife_ends_stop_at_the_limit_too():
    shares = one_side([0.7, 0.9, 1.0, 1.0, 1.0])
    _, high = bootstrap(shares, mean, Resampling(method="jackknife"), (SHARE,))
    assert high[0, 0] == 1.0


def test_statistics_of_one_call_have_limits_of_their_own():
    low, high = within(np.array([[-2.0, -2.0, -2.0]]), np.array([[2.0, 2.0, 2.0]]), (FREE, SHARE))
    assert low.tolist() == [[-2.0, 0.0, -2.0]]
    assert high.tolist() == [[2.0, 1.0, 2.0]]


def test_percentiles_take_a_tail_for_each_statistic():
    replicates = np.random.default_rng(4).normal(size=(999, 3, 2))
    tails = np.array([[0.025, 0.01], [0.025, 0.2], [0.1, 0.01]])
    low, high = percentiles(replicates, tails)
    for place in np.ndindex(3, 2):
        ends = np.quantile(replicates[:, *place], [tails[place], 1 - tails[place]])
        assert (low[place], high[place]) == pytest.approx(tuple(ends))


def test_a_statistic_without_replicates_has_no_interval():
    replicates = np.full((99, 1, 1), np.nan)
    low, high = stretched(replicates, np.array([[0.5]]), np.array([[3.0]]), 0.95)
    assert np.isnan([low, high]).all()
