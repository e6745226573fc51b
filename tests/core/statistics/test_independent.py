"""Tests of answers in groups, against scipy and statsmodels where every answer is a cluster."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.independent import Answers, kruskal_wallis, mann_whitney, two_shares
from prejudge.core.statistics.resampling import Resampling

PLAN = Resampling(resamples=1999)


def scores(groups: int, effect: float = 0.5, clusters: int = 45) -> Answers:
    """Return tied scores, the same count per group, with the first missing."""
    rng = np.random.default_rng(8)
    group = np.arange(clusters) % groups
    values = np.round(rng.normal(effect * group, 1) * 2)
    values[0] = np.nan
    return Answers(values, group, np.arange(clusters))


def test_mann_whitney_agrees_with_scipy():
    answers = scores(2)
    found, samples = mann_whitney(answers, PLAN), answers.there().samples()
    theirs = stats.mannwhitneyu(*samples)
    assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert found.p_cluster == pytest.approx(theirs.pvalue, abs=0.03)
    assert found.effects[0].low < found.effects[0].value < found.effects[0].high


def test_kruskal_wallis_agrees_with_scipy():
    answers = scores(3)
    found, theirs = kruskal_wallis(answers, PLAN), stats.kruskal(*answers.there().samples())
    assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert found.p_cluster == pytest.approx(theirs.pvalue, abs=0.03)
    assert found.n == 44


@pytest.mark.parametrize("test", [kruskal_wallis, mann_whitney])
def test_copies_within_clusters_change_the_classic_p_only(test):
    one = scores(2, clusters=20)
    many = Answers(*(np.repeat(column, 15) for column in (one.values, one.groups, one.clusters)))
    alone, copied = test(one, PLAN), test(many, PLAN)
    assert copied.p < 0.2 * alone.p
    assert copied.p_cluster == pytest.approx(alone.p_cluster)


def test_two_shares_agree_with_fisher_and_the_odds_are_corrected():
    values, groups = np.array([1.0, 1, 1, 1, 0, 0, 0, 1]), np.repeat([0, 1], 4)
    found = two_shares(Answers(values, groups, np.arange(8)), PLAN)
    assert found.p == pytest.approx(stats.fisher_exact([[4, 1], [0, 3]]).pvalue)
    assert found.p_cluster == pytest.approx(found.p)
    difference, odds, h = found.effects
    assert (difference.value, odds.value) == pytest.approx((0.75, (4.5 / 0.5) / (1.5 / 3.5)))
    assert h.value == pytest.approx(np.pi - 2 * np.arcsin(0.5))


def test_cohens_h_agrees_with_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    values, groups = np.array([1.0, 1, 0, 1, 0, 0, 0, 1]), np.repeat([0, 1], 4)
    found = two_shares(Answers(values, groups, np.arange(8)), PLAN).effects[2]
    assert found.value == pytest.approx(proportion.proportion_effectsize(0.75, 0.25))


@pytest.mark.parametrize("test", [kruskal_wallis, mann_whitney, two_shares])
def test_one_group_is_undefined(test):
    found = test(Answers(np.array([0.0, 1.0, 1.0]), np.array([0, 0, 0]), np.arange(3)), PLAN)
    assert (found.p, found.effects[0].value) == (None, None)
    assert found.row()["effect_name"] == ""


@pytest.mark.parametrize("test", [kruskal_wallis])
def test_nothing_but_ties_is_undefined(test):
    assert test(Answers(np.ones(6), np.array([0, 0, 1, 1, 2, 2]), np.arange(6)), PLAN).p is None
