"""Permutation of labels between groups of clusters, against scipy where every cluster is one answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.intervals import ratio
from prejudge.core.statistics.ranks import kruskal_h, level_counts
from prejudge.core.statistics.resampling import Resampling, label_test

PLAN = Resampling(resamples=4999)


def spread_of_means(totals):
    """Return the variance of the groups' means; large where they differ."""
    return ratio(totals[..., 1], totals[..., 0]).var(axis=-1)[..., None]


def lone(values, groups):
    sums = np.zeros((len(values), max(groups) + 1, 2))
    sums[np.arange(len(values)), groups] = np.stack([np.ones(len(values)), values], axis=1)
    return sums


def kruskal(totals):
    return kruskal_h(totals[..., 1:])[..., None]


def test_few_clusters_are_permuted_exactly():
    values, groups = np.array([1.0, 2.5, 3.0, 7.0, 8.0, 8.5, 4.0]), [0, 0, 0, 1, 1, 2, 2]
    theirs = stats.permutation_test(
        [values[np.array(groups) == g] for g in range(3)],
        lambda a, b, c: np.var([a.mean(), b.mean(), c.mean()]),
        permutation_type="independent",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert label_test(lone(values, groups), spread_of_means, PLAN)[0] == pytest.approx(theirs.pvalue)


def test_many_clusters_agree_with_scipy():
    rng = np.random.default_rng(7)
    groups = np.repeat([0, 1, 2], 15)
    values = np.round(rng.normal(size=45) + 0.4 * groups, 1)
    sums = level_counts(values, groups, np.arange(45))[:, 0]
    theirs = stats.permutation_test(
        [values[groups == g] for g in range(3)],
        lambda a, b, c: stats.kruskal(a, b, c).statistic,
        permutation_type="independent",
        alternative="greater",
        n_resamples=999,
        rng=np.random.default_rng(0),
    )
    assert label_test(sums, kruskal, PLAN)[0] == pytest.approx(theirs.pvalue, abs=0.035)


def test_clusters_move_whole():
    rng = np.random.default_rng(0)
    groups, values = np.repeat([0, 1], 6), rng.normal(size=12)
    many = level_counts(np.repeat(values, 20), np.repeat(groups, 20), np.repeat(np.arange(12), 20))[:, 0]
    one = level_counts(values, groups, np.arange(12))[:, 0]
    assert label_test(many, kruskal, PLAN) == pytest.approx(label_test(one, kruskal, PLAN))


def test_clusters_with_every_group_permute_within():
    rng = np.random.default_rng(3)
    blocks = rng.normal(size=(12, 3)) + 5 * rng.normal(size=(12, 1)) + [0.0, 0.5, 1.2]
    sums = np.stack([np.ones_like(blocks), blocks], axis=-1)
    theirs = stats.permutation_test(
        list(blocks.T),
        lambda a, b, c, axis: np.var([a.mean(axis=axis), b.mean(axis=axis), c.mean(axis=axis)], axis=0),
        permutation_type="samples",
        alternative="greater",
        n_resamples=4999,
        rng=np.random.default_rng(0),
    )
    found = label_test(sums, spread_of_means, PLAN)[0]
    assert found == pytest.approx(theirs.pvalue, abs=0.02)
    assert found < 0.1 < label_test(lone(blocks.T.ravel(), np.repeat([0, 1, 2], 12)), spread_of_means, PLAN)[0]


def test_clusters_with_some_groups_stay_within_them():
    sums = np.zeros((8, 3, 2))
    sums[:4, :2] = [1.0, 1.0]
    sums[4:, 2] = [1.0, 9.0]
    assert label_test(sums, lambda t: t[..., 2, 1:], PLAN)[0] == 1.0


def test_one_group_is_undefined():
    assert np.isnan(label_test(lone(np.arange(4.0), [0, 0, 0, 0]), spread_of_means, PLAN)).all()


def test_no_answers_are_undefined():
    assert np.isnan(label_test(np.zeros((3, 2, 2)), spread_of_means, PLAN)).all()
