"""Power and smallest detectable effects: against statsmodels for one answer per cluster, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prejudge.core.contracts.errors import UsageError
from prejudge.core.statistics.intervals import ratio
from prejudge.core.statistics.multiway import Cells, infer
from prejudge.core.statistics.power import (
    CrossedDesign,
    Design,
    GroupsDesign,
    RankDesign,
    discordance_spread,
    levels_needed,
    minimum_detectable_effect,
    pilot,
    power,
    proportion_spread,
)
from prejudge.testing import raises_code


@pytest.mark.parametrize(("clusters", "effect"), [(10, 0.5), (40, 0.2), (150, 0.3), (5, 1.5)])
def test_power_of_a_mean_agrees_with_statsmodels(clusters, effect):
    theirs = pytest.importorskip("statsmodels.stats.power").TTestPower().power(effect, clusters, 0.05)
    assert power(effect, Design(clusters=clusters)) == pytest.approx(theirs)


def test_power_of_two_groups_agrees_with_statsmodels():
    theirs = pytest.importorskip("statsmodels.stats.power").TTestIndPower().power(0.5, 30, 0.05)
    assert power(0.5, Design(clusters=30, groups=2)) == pytest.approx(theirs)


def test_smallest_effect_agrees_with_statsmodels():
    theirs = pytest.importorskip("statsmodels.stats.power").TTestPower().solve_power(nobs=25, alpha=0.05, power=0.8)
    assert minimum_detectable_effect(Design(clusters=25, spread=2.0)) == pytest.approx(2 * theirs, rel=1e-4)


@pytest.mark.parametrize("design", [Design(clusters=2, size=3, icc=0.5), Design(clusters=9, size=100, icc=0.02)])
def test_smallest_effect_has_the_power_asked_for(design):
    assert power(minimum_detectable_effect(design, wanted=0.9), design) == pytest.approx(0.9)


@pytest.mark.parametrize("clusters", [6, 20, 60])
@pytest.mark.parametrize("icc", [0.0, 0.1, 0.5])
def test_closed_form_is_right_within_two_points(clusters, icc):
    """Simulate cluster means, with their between and within variance, and test them by t."""
    size, studies = 12, 20_000
    design = Design(clusters=clusters, size=size, icc=icc)
    effect = minimum_detectable_effect(design)
    rng = np.random.default_rng(clusters)
    between, within = (rng.normal(size=(studies, clusters)) for _ in range(2))
    means = effect + np.sqrt(icc) * between + np.sqrt((1 - icc) / size) * within
    found = stats.ttest_1samp(means, 0, axis=1).pvalue <= 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_closed_form_holds_for_shares():
    rng = np.random.default_rng(1)
    rates = rng.beta(9, 9, size=(20_000, 40))  # Correlation 1 / (9 + 9 + 1), mean one half.
    design = Design(clusters=40, size=10, spread=proportion_spread(0.5), icc=1 / 19)
    effect = minimum_detectable_effect(design)
    shares = rng.binomial(10, np.clip(rates + effect, 0, 1)) / 10
    assert (stats.ttest_1samp(shares, 0.5, axis=1).pvalue <= 0.05).mean() == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("rows", "columns", "shares"), [(12, 40, (0.2, 0.2)), (30, 30, (0.3, 0.05)), (15, 60, (0.1, 0.0))]
)
def test_closed_form_holds_for_crossed_designs(rows, columns, shares):
    design = CrossedDesign(levels=(rows, columns), shares=shares)
    rng, studies = np.random.default_rng(3), 2000
    parts = [rng.normal(size=size) for size in ((rows, 1, studies), (1, columns, studies), (rows, columns, studies))]
    weights = np.sqrt([*shares, 1 - sum(shares)])
    values = minimum_detectable_effect(design) + sum(w * part for w, part in zip(weights, parts, strict=True))
    cells = np.stack([np.ones_like(values), values], axis=-1)[:, :, :, None]
    low = infer(Cells.of_table(cells), lambda t: ratio(t[..., 1], t[..., 0]), 0.95).low
    assert (low[:, 0] > 0).mean() == pytest.approx(0.8, abs=0.035)


def test_crossed_design_of_one_kind_of_cluster_is_that_design():
    crossed = CrossedDesign(levels=(20, 500), shares=(0.3, 0.0))
    plain = Design(clusters=20, size=500, icc=0.3)
    assert minimum_detectable_effect(crossed) == pytest.approx(minimum_detectable_effect(plain), rel=0.01)


def test_shares_above_one_are_refused():
    with raises_code(UsageError, "options.value"):
        CrossedDesign(levels=(5, 5), shares=(0.6, 0.6))


def test_uneven_clusters_lower_the_power():
    even, uneven = (Design(clusters=20, size=10, icc=0.2, unevenness=u) for u in (0.0, 1.0))
    assert power(0.4, even) > power(0.4, uneven)


def test_discordance_is_the_variance_of_paired_answers():
    d = np.repeat([1.0, -1.0, 0.0], [10, 10, 80])
    assert discordance_spread(0.2) == pytest.approx(d.std())


def test_pilot_finds_spread_and_correlation():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(2000), 5)
    values = rng.normal(0, 1, 2000)[clusters] + rng.normal(0, 2, 10_000)
    values[::50] = np.nan
    found = pilot(values, clusters)
    assert found.icc == pytest.approx(0.2, abs=0.04)
    assert found.spread == pytest.approx(np.sqrt(5), abs=0.1)
    assert (found.n, found.clusters) == (9800, 2000)


def test_pilot_agrees_with_analysis_of_variance():
    rng = np.random.default_rng(2)
    values, clusters = rng.normal(size=60) + np.repeat(rng.normal(size=12), 5), np.repeat(np.arange(12), 5)
    f = stats.f_oneway(*(values[clusters == c] for c in range(12))).statistic
    assert pilot(values, clusters).icc == pytest.approx((f - 1) / (f + 4))


def test_pilot_of_singletons_has_no_correlation():
    found = pilot(np.array([1.0, 2.0, 4.0]), np.arange(3))
    assert (found.icc, found.clusters) == (None, 3)


def test_pilot_of_nothing_is_undefined():
    assert pilot(np.array([np.nan]), np.array([0])).spread is None


@pytest.mark.parametrize("wrong", [{"clusters": 1}, {"clusters": 5, "icc": 1.2}, {"clusters": 5, "spread": 0.0}])
def test_no_design_is_refused(wrong):
    with raises_code(UsageError, "options.value"):
        Design(**wrong)


@pytest.mark.parametrize("sizes", [(30, 30, 30, 30), (12, 12, 12)])
def test_power_of_groups_agrees_with_statsmodels(sizes):
    theirs = pytest.importorskip("statsmodels.stats.power").FTestAnovaPower()
    design = GroupsDesign(clusters=sizes)
    assert power(0.3, design) == pytest.approx(theirs.power(0.3, sum(sizes), 0.05, k_groups=len(sizes)))
    wanted = theirs.solve_power(nobs=sum(sizes), alpha=0.05, power=0.8, k_groups=len(sizes))
    assert minimum_detectable_effect(design) == pytest.approx(wanted, rel=1e-4)


def test_two_groups_by_f_are_two_groups_by_t():
    by_t = minimum_detectable_effect(Design(clusters=40, size=8, icc=0.1, groups=2))
    # Two equal groups: f is half the difference of their means.
    by_f = minimum_detectable_effect(GroupsDesign(clusters=(40, 40), size=8, icc=0.1))
    assert by_f == pytest.approx(by_t / 2, rel=1e-4)


def test_ranks_of_groups_need_more_answers_by_their_efficiency():
    plain, ranked = (GroupsDesign(clusters=(50, 50, 50), ranks=ranks) for ranks in (False, True))
    assert minimum_detectable_effect(plain) / minimum_detectable_effect(ranked) == pytest.approx(np.sqrt(3 / np.pi))


@pytest.mark.parametrize(("groups", "share", "answers"), [(2, 0.6, 131), (1, 0.6, 262), (2, 0.55, 523)])
def test_rank_tests_agree_with_the_sample_sizes_of_noether(groups, share, answers):
    """N = (z + z)^2 / (12 c (1 - c) (p - 1/2)^2) in all, or (z + z)^2 / (3 (p' - 1/2)^2)."""
    z = stats.norm.isf(0.025) + stats.norm.isf(0.2)
    wanted = z**2 / (6 * (share - 0.5) ** 2 if groups == 2 else 3 * (share - 0.5) ** 2)
    assert answers == round(wanted)  # in each group
    assert power(2 * share - 1, RankDesign(clusters=answers, groups=groups)) == pytest.approx(0.8, abs=0.01)


def test_rank_test_of_two_groups_agrees_with_statsmodels():
    nonparametric = pytest.importorskip("statsmodels.stats.nonparametric")
    levels = (np.arange(2000) + 0.5) / 2000
    reference = stats.norm.ppf(levels)
    theirs = nonparametric.samplesize_rank_compare_onetail(reference + 0.6, reference, 0.05, power=0.8)
    delta = 2 * stats.norm.cdf(0.6 / np.sqrt(2)) - 1
    assert power(delta, RankDesign(clusters=round(theirs.nobs_ref), groups=2)) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("n", [12, 40])
def test_rank_tests_of_scipy_find_the_smallest_effect_as_often_as_said(groups, n):
    effect = minimum_detectable_effect(RankDesign(clusters=n, groups=groups))
    rng, shift = np.random.default_rng(n), stats.norm.ppf((1 + effect) / 2)
    if groups == 1:
        p = stats.wilcoxon(rng.normal(shift / np.sqrt(2), 1, size=(3000, n)), axis=1).pvalue
    else:
        first, second = (rng.normal(mean, 1, size=(3000, n)) for mean in (shift * np.sqrt(2), 0))
        p = stats.mannwhitneyu(first, second, axis=1).pvalue
    assert (p <= 0.05).mean() == pytest.approx(0.8, abs=0.04)


def test_ranks_of_four_pairs_find_nothing():
    assert minimum_detectable_effect(RankDesign(clusters=4)) == np.inf


def test_clusters_lower_the_power_of_ranks():
    alone, alike = (RankDesign(clusters=20, size=5, icc=icc, groups=2) for icc in (0.0, 0.3))
    assert power(0.3, alone) > power(0.3, alike)


def test_crossed_design_with_the_last_alone_leaves_out_what_rows_add():
    crossed = CrossedDesign(levels=(30, 40), shares=(0.4, 0.12), spread=2.0)
    plain = Design(clusters=40, size=30, spread=2 * np.sqrt(0.6), icc=0.2)
    assert minimum_detectable_effect(crossed.last_alone) == pytest.approx(minimum_detectable_effect(plain))
    assert minimum_detectable_effect(crossed) > minimum_detectable_effect(crossed.last_alone)


def test_cells_that_are_not_asked_lower_the_power():
    whole, part = (CrossedDesign(levels=(10, 10), shares=(0.0, 0.0), fill=fill) for fill in (1.0, 0.5))
    assert part.standard_error == pytest.approx(np.sqrt(2) * whole.standard_error)


@pytest.mark.parametrize(
    ("design", "wrong"),
    [
        (CrossedDesign, {"levels": (5, 1), "shares": (0.0, 0.0)}),
        (CrossedDesign, {"levels": (5, 5), "shares": (0.0,)}),
        (CrossedDesign, {"levels": (5, 5), "shares": (0.0, 0.0), "fill": 0.0}),
        (CrossedDesign, {"levels": (5, 5), "shares": (0.0, 0.0), "groups": 3}),
        (RankDesign, {"clusters": 5, "groups": 3}),
        (GroupsDesign, {"clusters": (5,)}),
        (GroupsDesign, {"clusters": (1, 1)}),
        (GroupsDesign, {"clusters": (5, 5), "icc": 2.0}),
    ],
)
def test_no_design_of_these_is_refused(design, wrong):
    with raises_code(UsageError, "options.value"):
        design(**wrong)


def test_power_below_alpha_is_refused():
    with raises_code(UsageError, "options.value"):
        minimum_detectable_effect(RankDesign(clusters=30), wanted=0.01)


@pytest.mark.parametrize("facet", [0, 1])
def test_levels_needed_are_the_fewest_that_have_the_power(facet):
    design = CrossedDesign(levels=(12, 7), shares=(0.01, 0.02), groups=2)
    needed = levels_needed(design, facet, 0.4)
    enough, fewer = (power(0.4, design.with_levels(facet, needed - less)) for less in (0, 1))
    assert enough >= 0.8 > fewer
    assert levels_needed(design, 0, 0.2) is None  # seven words alone leave more than that to chance


def test_design_of_the_levels_needed_reaches_the_power():
    """Simulated: leans of words, of templates and of pairs; tested by the crossed jackknife as a study is."""
    rng, effect, spreads = np.random.default_rng(8), 0.5, np.array([0.1, 0.3, 1.0])
    total = float((spreads**2).sum())
    design = CrossedDesign(
        levels=(20, 4),
        shares=(spreads[0] ** 2 / total, spreads[1] ** 2 / total),
        spread=math.sqrt(total),
        groups=2,
    )
    words = levels_needed(design, 1, effect)

    def gap(totals):
        return (totals[..., 0, 1] / totals[..., 0, 0] - totals[..., 1, 1] / totals[..., 1, 0])[..., None]

    found = 0
    for _ in range(300):
        cells = np.zeros((20, 2 * words, 1, 2, 2))
        for side in range(2):
            own = slice(side * words, (side + 1) * words)
            lean = rng.normal(0, spreads[0], (20, 1)) + rng.normal(0, spreads[1], (1, words))
            cells[:, own, 0, side, 0] = 1
            cells[:, own, 0, side, 1] = lean + rng.normal(0, spreads[2], (20, words)) + effect * (side == 0)
        found += infer(Cells.of_table(cells), gap, 0.95).p[0, 0] <= 0.05
    assert words > 4 and stats.binom.ppf(0.001, 300, 0.8) <= found <= stats.binom.ppf(0.999, 300, 0.9)


def test_less_than_one_degree_of_freedom_is_no_error():
    design = CrossedDesign(levels=(2, 2), shares=(0.0, 0.0))
    assert design.freedom < 1
    found = minimum_detectable_effect(design) / design.standard_error
    rng = np.random.default_rng(0)
    t = (rng.normal(size=200_000) + found) / np.sqrt(rng.chisquare(design.freedom, 200_000) / design.freedom)
    assert np.mean(np.abs(t) > stats.t.isf(0.025, design.freedom)) == pytest.approx(0.8, abs=0.005)
