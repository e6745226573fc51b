"""Power and smallest detectable effects: against statsmodels for one answer per cluster, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.errors import UsageError
from prejudge.metrics._arrays import ratio
from prejudge.metrics._cluster import Resampling
from prejudge.metrics._crossed import crossed_bootstrap
from prejudge.metrics._power import (
    CrossedDesign,
    Design,
    discordance_spread,
    minimum_detectable_effect,
    pilot,
    power,
    proportion_spread,
)


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
    design = CrossedDesign(rows=rows, columns=columns, row_icc=shares[0], column_icc=shares[1])
    rng, studies = np.random.default_rng(3), 2000
    parts = [rng.normal(size=size) for size in ((rows, 1, studies), (1, columns, studies), (rows, columns, studies))]
    weights = np.sqrt([*shares, 1 - sum(shares)])
    values = minimum_detectable_effect(design) + sum(w * part for w, part in zip(weights, parts, strict=True))
    cells = np.stack([np.ones_like(values), values], axis=-1)[:, :, :, None]
    low, _ = crossed_bootstrap(cells, lambda t: ratio(t[..., 1], t[..., 0]), Resampling(method="jackknife"))
    assert (low[:, 0] > 0).mean() == pytest.approx(0.8, abs=0.035)


def test_crossed_design_of_one_kind_of_cluster_is_that_design():
    crossed = CrossedDesign(rows=20, columns=500, row_icc=0.3)
    plain = Design(clusters=20, size=500, icc=0.3)
    assert minimum_detectable_effect(crossed) == pytest.approx(minimum_detectable_effect(plain), rel=0.01)


def test_shares_above_one_are_refused():
    with pytest.raises(UsageError, match="sum up to 1"):
        CrossedDesign(rows=5, columns=5, row_icc=0.6, column_icc=0.6)


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
    with pytest.raises(UsageError, match="Give"):
        Design(**wrong)
