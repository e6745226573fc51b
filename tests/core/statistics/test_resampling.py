"""Cluster bootstrap and permutation tests, against scipy's own one statistic at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.intervals import ratio, reach_of_clusters
from prejudge.core.statistics.resampling import Resampling, _weights, bootstrap, draw, flip_test, smallest_p, swap_test

PLAN = Resampling()


def tail(clusters):
    """The tail that an expanded percentile interval cuts off."""
    return float(stats.norm.sf(reach_of_clusters(0.95, clusters)))


def mean(totals):
    """Mean of one side, as a statistic."""
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


def gap(totals):
    """Difference of the two sides' means, as a statistic."""
    means = ratio(totals[..., 1], totals[..., 0])
    return (means[..., 0] - means[..., 1])[..., None]


def one_side(counts, sums):
    return np.stack([counts, sums], axis=-1)[:, None, None, :].astype(float)


def two_sides(first, second):
    """Clusters of one answer per side; None where a side has none."""
    cells = [[[0.0, 0.0] if x is None else [1.0, x] for x in pair] for pair in zip(first, second, strict=True)]
    return np.array(cells)[:, None]


@pytest.fixture
def clusters():
    rng = np.random.default_rng(3)
    counts = rng.integers(3, 9, 25)
    return counts, counts * rng.normal(0.3, 0.5, 25)


def test_bootstrap_agrees_with_scipy(clusters):
    low, high = bootstrap(one_side(*clusters), mean, PLAN)
    theirs = stats.bootstrap(
        clusters,
        lambda n, s, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        n_resamples=9999,
        method="percentile",
        confidence_level=1 - 2 * tail(25),
        rng=np.random.default_rng(0),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert low[0, 0] == pytest.approx(theirs.low, abs=0.03 * width)
    assert high[0, 0] == pytest.approx(theirs.high, abs=0.03 * width)


def test_bootstrap_repeats_with_its_seed(clusters):
    sums = one_side(*clusters)
    assert np.array_equal(bootstrap(sums, mean, PLAN), bootstrap(sums, mean, PLAN))
    assert not np.array_equal(bootstrap(sums, mean, PLAN), bootstrap(sums, mean, Resampling(seed=1)))


def test_bootstrap_of_unpaired_sides_agrees_with_scipy():
    rng = np.random.default_rng(5)
    first, second = rng.normal(1, 1, 20), rng.normal(0, 2, 20)
    sums = two_sides([*first, *[None] * 20], [*[None] * 20, *second])
    low, high = bootstrap(sums, gap, PLAN)
    theirs = stats.bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        method="percentile",
        confidence_level=1 - 2 * tail(20),
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (low[0, 0], high[0, 0]) == pytest.approx((theirs.low, theirs.high), abs=0.08)


def test_unpaired_sides_keep_their_clusters():
    (weights,) = _weights(Resampling(50), 0, np.array([1, 1, 1, 2, 2]), 1)
    assert set(weights[:, :3].sum(axis=1)) == {3.0}
    assert set(weights[:, 3:].sum(axis=1)) == {2.0}


def test_kept_weights_are_those_drawn_anew():
    pattern = np.array([3] * 20)
    kept = [np.concatenate(list(_weights(Resampling(99), 0, pattern, width))) for width in (1, 1, 1 << 18)]
    drawn = draw(np.random.default_rng([0, 1, 0]), [np.arange(20)], 99)
    assert all((weights == drawn).all() for weights in kept)
    assert (next(_weights(Resampling(99, seed=1), 0, pattern, 1)) != drawn).any()


def test_lone_cluster_is_drawn_with_the_others():
    (weights,) = _weights(Resampling(50), 0, np.array([3, 3, 3, 1]), 1)
    assert len(set(weights[:, 3])) > 1


def test_bootstrap_ignores_clusters_of_other_units(clusters):
    alone = one_side(*clusters)
    beside = np.concatenate([np.concatenate([alone, 0 * alone]), np.concatenate([0 * alone, alone])], axis=1)
    (low,), (high,) = bootstrap(alone, mean, PLAN)
    lows, highs = bootstrap(beside, mean, PLAN)
    assert lows[:, 0] == pytest.approx([low[0]] * 2, abs=0.02)
    assert highs[:, 0] == pytest.approx([high[0]] * 2, abs=0.02)


def test_one_cluster_has_no_interval():
    assert np.isnan(bootstrap(one_side([5], [2.0]), mean, PLAN)).all()


def test_equal_clusters_have_no_interval():
    assert np.isnan(bootstrap(one_side([5] * 8, [2.0] * 8), mean, PLAN)).all()


def test_one_cluster_on_one_side_has_no_interval():
    sums = two_sides([1.0, 2.0, 3.0, None], [None, None, None, 0.0])
    assert np.isnan(bootstrap(sums, gap, PLAN)).all()


def test_no_clusters_have_no_interval():
    assert np.isnan(bootstrap(np.zeros((0, 2, 1, 2)), mean, PLAN)).all()


def test_expanded_tail_nears_the_nominal_one():
    assert tail(10_000) == pytest.approx(0.025, abs=1e-4)
    assert tail(7) < 0.01


@pytest.mark.parametrize("size", [2, 5, 10])
def test_flip_test_is_exact_for_few_clusters(size):
    values = np.random.default_rng(size).normal(0.6, 1, size)
    theirs = stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert flip_test(one_side(np.ones(size), values), PLAN)[0, 0] == pytest.approx(theirs.pvalue)


def test_flip_test_agrees_with_scipy_for_many_clusters(clusters):
    theirs = stats.permutation_test((clusters[1],), np.sum, permutation_type="samples", rng=np.random.default_rng(0))
    assert flip_test(one_side(*clusters), PLAN)[0, 0] == pytest.approx(theirs.pvalue, abs=0.005)


def test_flip_test_counts_exact_ties():
    assert flip_test(one_side(np.ones(3), np.array([1, 1, -1])), PLAN)[0, 0] == 1.0


def test_flip_test_is_never_zero():
    assert flip_test(one_side(np.ones(60), np.ones(60)), PLAN)[0, 0] == 1 / 10_000


def test_flip_test_of_no_difference_is_one():
    assert flip_test(one_side(np.ones(5), np.zeros(5)), PLAN)[0, 0] == 1.0


def test_flip_test_of_one_cluster_is_undefined():
    assert np.isnan(flip_test(one_side([4], [2.0]), PLAN)[0, 0])


@pytest.mark.parametrize("size", [4, 9])
def test_swap_test_is_exact_for_few_pairs(size):
    rng = np.random.default_rng(size)
    first, second = rng.normal(0.8, 1, size), rng.normal(0, 1, size)
    theirs = stats.permutation_test(
        (first, second), lambda a, b: a.mean() - b.mean(), permutation_type="samples", n_resamples=np.inf
    )
    assert swap_test(two_sides(first, second), gap, PLAN)[0, 0] == pytest.approx(theirs.pvalue)


def test_swap_test_agrees_with_scipy_for_many_pairs():
    rng = np.random.default_rng(8)
    first, second = rng.normal(0.3, 1, 40), rng.normal(0, 1, 40)
    theirs = stats.permutation_test(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        permutation_type="samples",
        rng=np.random.default_rng(0),
    )
    assert swap_test(two_sides(first, second), gap, PLAN)[0, 0] == pytest.approx(theirs.pvalue, abs=0.01)


def test_swap_test_exchanges_labels_of_unpaired_clusters():
    rng = np.random.default_rng(1)
    first, second = rng.normal(1, 1, 6), rng.normal(0, 1, 6)
    theirs = stats.permutation_test(
        (first, second), lambda a, b: a.mean() - b.mean(), permutation_type="independent", n_resamples=np.inf
    )
    sums = two_sides([*first, *[None] * 6], [*[None] * 6, *second])
    assert swap_test(sums, gap, PLAN)[0, 0] == pytest.approx(theirs.pvalue)


def test_swap_test_draws_labels_of_many_unpaired_clusters():
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.6, 1, 25), rng.normal(0, 1, 20)
    sums = two_sides([*first, *[None] * 20], [*[None] * 25, *second])
    pooled = np.concatenate([first, second])
    draws = rng.permuted(np.tile(pooled, (20_000, 1)), axis=1)
    gaps = draws[:, :25].mean(axis=1) - draws[:, 25:].mean(axis=1)
    expected = np.mean(np.abs(gaps) >= abs(first.mean() - second.mean()))
    assert swap_test(sums, gap, PLAN)[0, 0] == pytest.approx(expected, abs=0.012)


def test_swap_test_of_one_pair_is_undefined():
    assert np.isnan(swap_test(two_sides([1.0], [0.0]), gap, PLAN)[0, 0])


def test_swap_test_without_a_second_side_is_undefined():
    assert np.isnan(swap_test(two_sides([1.0, 2.0], [None, None]), gap, PLAN)[0, 0])


def test_smallest_p_is_one_of_two_mirrored_patterns():
    assert (smallest_p(5, 9999), smallest_p(150, 9999), smallest_p(50_000, 99)) == (0.0625, 1e-4, 0.01)


def test_ratio_of_nothing_is_nan():
    assert np.isnan(ratio(np.array([1.0]), np.array([0.0]))).all()


def test_bca_agrees_with_scipy_on_clusters_of_unequal_size(clusters):
    low, high = bootstrap(one_side(*clusters), mean, Resampling(method="bca"))
    theirs = stats.bootstrap(
        clusters,
        lambda n, s, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        method="BCa",
        confidence_level=1 - 2 * tail(25),
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (low[0, 0], high[0, 0]) == pytest.approx((theirs.low, theirs.high), abs=0.03 * (theirs.high - theirs.low))


def test_bca_leans_with_the_skew():
    sums = one_side(np.ones(30), np.random.default_rng(4).exponential(size=30) ** 2)
    ends = [bootstrap(sums, mean, Resampling(method=method)) for method in ("percentile", "bca")]
    assert ends[1][0][0, 0] > ends[0][0][0, 0]
    assert ends[1][1][0, 0] > ends[0][1][0, 0]


def test_bca_of_unpaired_sides_agrees_with_scipy():
    rng = np.random.default_rng(5)
    first, second = rng.exponential(1, 20), rng.normal(0, 2, 20)
    low, high = bootstrap(two_sides([*first, *[None] * 20], [*[None] * 20, *second]), gap, Resampling(method="bca"))
    theirs = stats.bootstrap(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        method="BCa",
        confidence_level=1 - 2 * tail(20),
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (low[0, 0], high[0, 0]) == pytest.approx((theirs.low, theirs.high), abs=0.08)


def test_bca_of_equal_clusters_has_no_interval():
    assert np.isnan(bootstrap(one_side([5] * 8, [2.0] * 8), mean, Resampling(method="bca"))).all()


def test_jackknife_of_a_mean_is_the_t_interval():
    values = np.random.default_rng(1).normal(size=9)
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    ends = bootstrap(one_side(np.ones(9), values), mean, Resampling(method="jackknife"))
    assert np.ravel(ends) == pytest.approx([theirs.low, theirs.high])


def test_jackknife_of_clusters_agrees_with_cluster_robust_regression():
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(12)
    groups = np.repeat(np.arange(60), rng.integers(2, 9, 60))
    values = rng.normal(size=60)[groups] + rng.normal(size=len(groups))
    fit = linear.OLS(values, np.ones((len(values), 1))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    sums = one_side(np.bincount(groups), np.bincount(groups, weights=values))
    (low,), (high,) = bootstrap(sums, mean, Resampling(method="jackknife"))
    assert (low[0], high[0]) == pytest.approx(tuple(fit.conf_int()[0]), rel=0.05)
    (low,), (high,) = bootstrap(sums, mean, Resampling())
    assert high[0] - low[0] == pytest.approx(np.ptp(fit.conf_int()[0]), rel=0.05)


def test_jackknife_of_equal_clusters_has_no_interval():
    assert np.isnan(bootstrap(one_side([5] * 8, [2.0] * 8), mean, Resampling(method="jackknife"))).all()
