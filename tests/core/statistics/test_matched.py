"""Tests of paired answers, against scipy and statsmodels where every pair is a cluster."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.matched import mcnemar, mcnemar_p, wilcoxon
from prejudge.core.statistics.resampling import Resampling

PLAN = Resampling(resamples=1999)


@pytest.fixture
def differences():
    """Return tied differences with zeros and a hole, in ten clusters."""
    rng = np.random.default_rng(6)
    d = np.round(rng.normal(0.6, 1.5, 60))
    d[3] = np.nan
    return d, np.repeat(np.arange(10), 6)


def test_wilcoxon_agrees_with_scipy_with_ties_and_zeros(differences):
    found, kept = wilcoxon(*differences, PLAN), differences[0][~np.isnan(differences[0])]
    theirs = stats.wilcoxon(kept[kept != 0])
    assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert found.n == (kept != 0).sum()


def test_wilcoxon_by_clusters_of_one_agrees_with_scipy_permutation():
    d = np.array([1.5, -0.5, 2.0, 3.0, -1.0, 2.5, 0.7])
    theirs = stats.wilcoxon(d, method="exact").pvalue
    assert wilcoxon(d, np.arange(7), PLAN).p_cluster == pytest.approx(theirs)


def test_rank_biserial_stands_in_its_interval(differences):
    (effect,) = wilcoxon(*differences, PLAN).effects
    assert -1 < effect.low < effect.value < effect.high < 1


@pytest.mark.parametrize("test", [wilcoxon])
def test_no_difference_is_undefined(test):
    found = test(np.zeros(4), np.arange(4), PLAN)
    assert (found.p, found.p_cluster, found.effects[0].value) == (None, None, None)
    assert found.undefined


@pytest.mark.parametrize(("b", "c"), [(10, 3), (0, 4), (7, 7), (1, 0)])
def test_mcnemar_exact_agrees_with_statsmodels(b, c):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    assert mcnemar_p(b, c)[0] == pytest.approx(tables.mcnemar([[5, b], [c, 9]], exact=True).pvalue)


def test_mid_p_counts_half_of_what_is_observed():
    # Fagerland, Lydersen and Laake (2013): twice the one-sided mid-p.
    assert mcnemar_p(1, 7)[1] == pytest.approx(2 * (stats.binom.cdf(0, 8, 0.5) + 0.5 * stats.binom.pmf(1, 8, 0.5)))
    assert mcnemar_p(4, 4)[1] == 1.0


def test_mcnemar_without_change_is_undefined():
    exact, middle = mcnemar(np.ones(5), np.ones(5), np.arange(5), PLAN)
    assert (exact.p, middle.p) == (None, None)
    assert exact.effects[0].value == 0.0


def test_mcnemar_effects_are_finite_where_all_change_one_way():
    exact, _ = mcnemar(np.ones(8), np.array([0.0, 0, 0, 0, 0, 1, 1, np.nan]), np.arange(8), PLAN)
    difference, g, odds = exact.effects
    assert (difference.value, g.value, odds.value) == pytest.approx((5 / 7, 0.5, 11.0))
    assert exact.n == 7


def test_mcnemar_by_clusters_is_more_cautious_than_by_pairs():
    first, second = np.repeat([1.0, 1, 1, 1, 0], 12), np.repeat([0.0, 0, 0, 0, 1], 12)
    exact, _ = mcnemar(first, second, np.repeat(np.arange(5), 12), PLAN)
    assert exact.p < 0.001 < 0.3 < exact.p_cluster


def test_row_gives_the_fields_of_an_estimate(differences):
    row = wilcoxon(*differences, PLAN).row()
    assert row["test"] == "Wilcoxon signed-rank, permutation of clusters"
    assert row["effect_name"] == "matched-pairs rank-biserial"
