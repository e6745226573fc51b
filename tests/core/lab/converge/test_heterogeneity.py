"""Heterogeneity, partial conjunction and correlations, against published values and by other ways."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import optimize, stats

from prejudge.core.lab.converge.heterogeneity import at_least, correlation, heterogeneity

BCG = [
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232), (17, 1699, 65, 1600),
    (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
]  # fmt: skip
"""Colditz et al. (1994), vaccine against tuberculosis: positive and negative, vaccinated and control."""


def log_risk_ratios():
    values = [math.log(a / (a + b) * (c + d) / c) for a, b, c, d in BCG]
    errors = [math.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)) for a, b, c, d in BCG]
    return values, errors


def test_published_example():
    found = heterogeneity(*log_risk_ratios())
    # metafor, rma(yi, vi, data=dat.bcg) and confint: Q, and the ends of tau squared and I squared.
    assert found.q == pytest.approx(152.2330, abs=5e-5) and found.n == 13 and found.p < 1e-20
    assert (found.tau2_low, found.tau2_high) == pytest.approx((0.1197, 1.1115), abs=5e-5)
    # It looks for the roots to 1e-4 only.
    assert (found.i2_low, found.i2_high) == pytest.approx((0.819177, 0.976781), abs=5e-5)


@pytest.mark.parametrize("seed", range(4))
def test_by_other_ways(seed):
    draw = np.random.default_rng(seed)
    errors = draw.uniform(0.05, 0.3, 5)
    values = draw.normal(0, 0.4, 5) + errors * draw.normal(size=5)
    found = heterogeneity(values, errors)

    def q(tau2):  # over pairs, without a mean: sum of w w' (y - y')^2 / sum of w
        w = 1 / (errors**2 + tau2)
        pairs = combinations(range(5), 2)
        return sum(w[a] * w[b] * (values[a] - values[b]) ** 2 for a, b in pairs) / w.sum()

    def root(target):
        return optimize.brentq(lambda tau2: q(tau2) - target, 0, 1e3, xtol=1e-14) if q(0) > target else 0.0

    assert found.q == pytest.approx(q(0)) and found.p == pytest.approx(stats.chi2.sf(q(0), 4))
    wanted = [root(at) for at in (4, stats.chi2.ppf(0.975, 4), stats.chi2.ppf(0.025, 4))]
    assert [found.tau2, found.tau2_low, found.tau2_high] == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert 0 <= found.i2_low <= found.i2 <= found.i2_high <= 1


def test_one_effect_has_no_heterogeneity_and_equal_ones_none():
    assert heterogeneity([0.3], [0.1]) is None
    equal = heterogeneity([0.3, 0.3], [0.1, 0.2])
    assert (equal.q, equal.p, equal.tau2, equal.i2) == (0, 1, 0, 0)


@pytest.mark.parametrize(
    ("p_values", "least"),
    [([], 0), ([0.04], 0), ([0.02], 1), ([0.001, 0.9], 1), ([0.001, 0.02], 2), ([0.02, 0.02], 0), ([0.001] * 3, 3)],
)
def test_partial_conjunction(p_values, least):
    assert at_least(p_values, 0.025) == least


@pytest.mark.parametrize("shared", [0.0, 0.6, 1.0])
def test_two_of_three_fair_methods_agree_seldom_however_they_depend(shared):
    draw = np.random.default_rng(7)
    z = math.sqrt(shared) * draw.normal(size=(20_000, 1)) + math.sqrt(1 - shared) * draw.normal(size=(20_000, 3))
    up, down = stats.norm.sf(z), stats.norm.cdf(z)
    agreed = sum(max(at_least(a, 0.025), at_least(b, 0.025)) > 1 for a, b in zip(up, down, strict=True))
    # One true effect and two fair methods that depend: still no agreement of two in more than 5 %.
    one = sum(at_least([1e-9, *rest], 0.025) > 1 for rest in up[:, 1:])
    assert stats.binomtest(agreed, 20_000, 0.05, "greater").pvalue > 0.01
    assert stats.binomtest(one, 20_000, 0.025, "greater").pvalue > 0.01


def test_correlation_by_hand():
    x, y = [0.1, 0.4, 0.2, 0.9, 0.7, 0.3], [0.2, 0.3, 0.1, 0.8, 0.9, 0.4]
    signs = [(a < b) == (c < d) for (a, c), (b, d) in combinations(zip(x, y, strict=True), 2)]
    tau = Fraction(2 * sum(signs) - len(signs), len(signs))
    found = correlation(x, y)
    assert found.tau == pytest.approx(float(tau)) and found.n == 6
    reach = stats.norm.ppf(0.975) * math.sqrt(0.437 / 2)
    ends = [math.tanh(math.atanh(float(tau)) + side * reach) for side in (-1, 1)]
    assert [found.low, found.high] == pytest.approx(ends)


def test_correlation_of_equal_orders_has_the_interval_of_disjoint_pairs():
    found = correlation(range(10), range(10))
    assert (found.tau, found.high) == pytest.approx((1, 1))
    assert found.low == pytest.approx(2 * stats.binomtest(5, 5).proportion_ci(0.95).low - 1)
    other = correlation(range(10), range(10, 0, -1))
    assert (other.low, other.high) == (-1, -found.low)


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3])])
def test_no_order_no_correlation(x, y):
    found = correlation(x, y)
    assert found.n == len(x) and found.tau is None and found.low is None
