"""Rank statistics of tables of counts, against scipy's own of the answers themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.ranks import (
    MOST,
    cliffs_delta,
    epsilon_squared,
    kendall_p,
    kruskal_h,
    level_counts,
    rank_biserial,
    tau_b,
    tau_c,
)
from prejudge.core.statistics.resampling import Resampling, bootstrap


@pytest.fixture
def answers():
    """Return tied values, their groups of three, and twenty clusters."""
    rng = np.random.default_rng(2)
    groups = rng.integers(3, size=120)
    return rng.integers(1, 8, 120) + groups * 1.0, groups, rng.integers(20, size=120)


def table(values, groups):
    return level_counts(values, groups, np.zeros(len(values), dtype=int))[0, 0, :, 1:]


def test_kruskal_agrees_with_scipy_with_ties(answers):
    values, groups, _ = answers
    theirs = stats.kruskal(*(values[groups == g] for g in range(3))).statistic
    assert kruskal_h(table(values, groups)) == pytest.approx(theirs)
    assert epsilon_squared(table(values, groups)) == pytest.approx(theirs / 119)


def test_cliffs_delta_agrees_with_mann_whitney(answers):
    values, groups, _ = answers
    first, second = values[groups == 0], values[groups == 1]
    u = stats.mannwhitneyu(first, second).statistic
    assert cliffs_delta(table(values, groups)[:2]) == pytest.approx(2 * u / (len(first) * len(second)) - 1)


@pytest.mark.parametrize(("ours", "variant"), [(tau_b, "b"), (tau_c, "c")])
def test_tau_agrees_with_scipy_with_ties(answers, ours, variant):
    values, groups, _ = answers
    assert ours(table(values, groups)) == pytest.approx(stats.kendalltau(groups, values, variant=variant).statistic)


def test_rank_biserial_agrees_with_wilcoxon_sums():
    differences = np.array([3.0, -1.0, 2.0, 2.0, -2.0, 5.0, 1.0])
    ranks = stats.rankdata(np.abs(differences))
    expected = (ranks * np.sign(differences)).sum() / ranks.sum()
    found = rank_biserial(table(np.abs(differences), (differences < 0).astype(int)))
    assert found == pytest.approx(expected)


def test_counts_leave_out_what_is_missing(answers):
    values, groups, clusters = answers
    holes = values.copy()
    holes[:5] = np.nan
    assert level_counts(holes, groups, clusters)[..., 0].sum() == 115


@pytest.mark.parametrize("statistic", [kruskal_h, epsilon_squared, tau_b, tau_c])
def test_nothing_but_ties_is_undefined(statistic):
    assert np.isnan(statistic(np.array([[5.0], [5.0]])))


def test_empty_group_has_no_delta():
    assert np.isnan(cliffs_delta(np.array([[1.0, 2.0], [0.0, 0.0]])))


def test_bootstrap_of_a_table_makes_ranks_anew(answers):
    values, groups, clusters = answers
    sums = level_counts(values, groups, clusters)
    low, high = bootstrap(sums, lambda t: tau_b(t[..., 1:])[..., None], Resampling(resamples=499))
    rng = np.random.default_rng(0)
    replicates = []
    for _ in range(499):
        rows = np.concatenate([np.flatnonzero(clusters == c) for c in rng.integers(20, size=20)])
        replicates.append(stats.kendalltau(groups[rows], values[rows]).statistic)
    assert high[0, 0] - low[0, 0] == pytest.approx(np.ptp(np.quantile(replicates, [0.02, 0.98])), rel=0.15)


def test_many_different_answers_are_put_into_levels_that_hardly_move_the_ranks():
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=6000)
    values = rng.normal(0.3 * groups, 1)
    counts = table(values, groups)
    assert counts.shape == (3, MOST)
    first, second = values[groups == 0], values[groups == 1]
    delta = 2 * stats.mannwhitneyu(first, second).statistic / (len(first) * len(second)) - 1
    assert cliffs_delta(counts[:2]) == pytest.approx(delta, abs=0.001)
    theirs = stats.kruskal(*(values[groups == g] for g in range(3))).statistic
    assert kruskal_h(counts) == pytest.approx(theirs, rel=0.005)


def test_equal_answers_stay_in_one_level():
    values = np.concatenate([np.zeros(3000), np.arange(1.0, 3001.0)])
    counts = table(values, np.zeros(6000, dtype=int))
    assert counts[0, 0] == 3000


def test_p_of_kendall_is_that_of_scipy_with_ties():
    rng = np.random.default_rng(3)
    for _ in range(50):
        table = rng.integers(0, 9, size=(2, 3)).astype(float)
        first, second = (np.repeat(place.ravel(), table.ravel().astype(int)) for place in np.indices(table.shape))
        wanted = stats.kendalltau(first, second, method="asymptotic")
        assert (tau_b(table), kendall_p(table)) == pytest.approx((wanted.statistic, wanted.pvalue), abs=1e-12)


def test_p_of_kendall_is_undefined_where_all_answers_are_alike():
    assert math.isnan(kendall_p(np.array([[2.0, 0.0], [3.0, 0.0]])))
