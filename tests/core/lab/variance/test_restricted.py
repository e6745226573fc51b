"""REML against dense matrices, another library and published values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import chi2

from prejudge.core.contracts.errors import DataError
from prejudge.core.lab.variance.components import RESIDUAL, Cells, estimate
from prejudge.core.lab.variance.limits import Likely
from prejudge.core.lab.variance.restricted import Restricted, restricted
from prejudge.testing import raises_code

DYESTUFF = (
    (1545, 1440, 1440, 1520, 1580),
    (1540, 1555, 1490, 1560, 1495),
    (1595, 1550, 1605, 1510, 1560),
    (1445, 1440, 1595, 1465, 1545),
    (1595, 1630, 1515, 1635, 1625),
    (1520, 1455, 1450, 1480, 1445),
)
"""Yield of six batches of a dye (Davies and Goldsmith 1972, table 6.3)."""


def unbalanced(seed=3, spread=(1.0, 0.5, 0.7, 1.0), lost=0.3):
    rng = np.random.default_rng(seed)
    one, two, _ = (grid.ravel() for grid in np.meshgrid(range(8), range(15), range(2), indexing="ij"))
    a, b, ab = rng.normal(0, spread[0], 8), rng.normal(0, spread[1], 15), rng.normal(0, spread[2], (8, 15))
    y = 5 + a[one] + b[two] + ab[one, two] + rng.normal(0, spread[3], len(one))
    kept = rng.random(len(one)) >= lost
    return {"a": one[kept], "b": two[kept]}, y[kept]


def fitted(facets, y, **options):
    return restricted(estimate(Cells(facets, y), **options))


def variances(found):
    return {one.term.name: one.variance for one in found.components}


def test_published_values_come_back():
    """Bates and others (2015), section 2.1, print 1764 and 2451 for these data (REML)."""
    batch = np.repeat(np.arange(6), 5)
    found = fitted({"batch": batch}, np.array(DYESTUFF, dtype=float).ravel())
    assert found.method == "REML"
    assert variances(found) == pytest.approx({"batch": 1764.05, RESIDUAL: 2451.25}, rel=1e-4)


def test_balanced_design_without_negative_estimates_is_the_analysis_of_variance():
    facets, y = unbalanced(lost=0.0, seed=1)
    moments = estimate(Cells(facets, y))
    assert min(variances(moments).values()) > 0
    assert variances(restricted(moments)) == pytest.approx(variances(moments), rel=1e-4)


def test_crossed_facets_with_holes_are_those_of_another_library():
    facets, y = unbalanced()
    a, b = facets.values()
    data = pd.DataFrame({"y": y, "a": a, "b": b, "ab": 100 * a + b, "all": 1})
    parts = {name: f"0 + C({name})" for name in ("a", "b", "ab")}
    model = sm.MixedLM.from_formula("y ~ 1", groups="all", re_formula="0", vc_formula=parts, data=data)
    other = model.fit(reml=True)
    expected = dict(zip(model.exog_vc.names, other.vcomp, strict=True))
    found = variances(fitted(facets, y))
    assert found["a"] == pytest.approx(expected["a"], rel=2e-3)
    assert found["b"] == pytest.approx(expected["b"], rel=5e-3)
    assert found["a x b"] == pytest.approx(expected["ab"], rel=2e-3)
    assert found[RESIDUAL] == pytest.approx(other.scale, rel=2e-3)


@pytest.fixture
def dense():
    """Return what is computed from sums, and the same from matrices of the size of the answers."""
    facets, y = unbalanced()
    found = estimate(Cells(facets, y))
    at = np.array([0.7, 0.3, 0.4, 0.9])
    a, b = facets.values()
    pair = np.unique(100 * a + b, return_inverse=True)[1]
    inside = [np.eye(own.max() + 1)[own] for own in (a, b, pair)]
    parts = [*(z @ z.T for z in inside), np.eye(len(y))]
    covariance = sum(v * part for v, part in zip(at, parts, strict=True))
    inverse, ones = np.linalg.inv(covariance), np.ones((len(y), 1))
    size = (ones.T @ inverse @ ones).item()
    projected = inverse - inverse @ ones @ ones.T @ inverse / size
    logs = np.linalg.slogdet(covariance)[1] + np.log(size)
    return Restricted.of(found.cells, [one.term for one in found.components][:-1]), at, y, parts, projected, logs


def test_criterion_slope_and_information_are_those_of_dense_matrices(dense):
    sums, at, y, parts, projected, logs = dense
    point = sums.at(at)
    assert point.value == pytest.approx(logs + y @ projected @ y)
    slope = [np.trace(projected @ part) - y @ projected @ part @ projected @ y for part in parts]
    assert point.slope == pytest.approx(np.array(slope))
    expected = [[np.trace(projected @ one @ projected @ two) / 2 for two in parts] for one in parts]
    assert sums.information(at, point) == pytest.approx(np.array(expected))


def test_interval_is_where_the_likelihood_ratio_is_its_quantile():
    """A balanced single facet has a likelihood in two mean squares, profiled here over a grid."""
    groups, each = 6, 5
    y = np.array(DYESTUFF, dtype=float)
    between = each * ((y.mean(axis=1) - y.mean()) ** 2).sum() / (groups - 1)
    within = ((y - y.mean(axis=1, keepdims=True)) ** 2).sum() / (groups * (each - 1))

    def criterion(batch, rest):
        whole = rest + each * batch
        return (
            (groups - 1) * (np.log(whole) + between / whole) + groups * (each - 1) * (np.log(rest) + within / rest)
        )  # fmt: skip

    rest = np.geomspace(500, 20_000, 20_001)
    least = criterion((between - within) / each, within)
    (batch, residual) = fitted({"batch": np.repeat(np.arange(groups), each)}, y.ravel()).components
    for end in (batch.low, batch.high):
        assert criterion(end, rest).min() - least == pytest.approx(chi2.ppf(0.95, 1), abs=0.01)
    grid = np.linspace(0, 50_000, 500_001)
    for end in (residual.low, residual.high):
        assert criterion(grid, end).min() - least == pytest.approx(chi2.ppf(0.95, 1), abs=0.01)


def test_facet_that_does_nothing_is_0_and_its_interval_begins_there():
    rng = np.random.default_rng(0)
    one = np.repeat(np.arange(6), 10)
    y = np.tile(np.linspace(-1, 1, 10), 6) + rng.normal(0, 0.01, 60)
    found = fitted({"a": one}, y)
    assert estimate(Cells({"a": one}, y)).components[0].variance < 0
    assert found.components[0].variance == 0 == found.components[0].low < found.components[0].high


def test_unit_of_the_answers_does_not_matter():
    facets, y = unbalanced()
    small, large = fitted(facets, y), fitted(facets, 1e6 * y - 3e7)
    for one, other in zip(small.components, large.components, strict=True):
        found = (other.variance, other.low, other.high)
        assert found == pytest.approx(tuple(1e12 * own for own in (one.variance, one.low, one.high)), rel=1e-2)


def test_sum_of_components_has_the_interval_of_a_chi_squared():
    """One mean square of 7 degrees of freedom: its variance is 2 s^4 / 7, and its interval is exact."""
    limits = Likely(np.array([3.0]), np.array([[2 * 9.0 / 7]]))
    assert limits.interval(np.array([2.0]), 0.95) == pytest.approx((42 / chi2.ppf(0.975, 7), 42 / chi2.ppf(0.025, 7)))


def test_too_many_levels_and_equal_answers_are_refused():
    rng = np.random.default_rng(0)
    many = np.repeat(np.arange(1001), 2)
    with raises_code(DataError, "variance.levels"):
        fitted({"a": many}, rng.normal(size=len(many)))
    with raises_code(DataError, "variance.nothing"):
        fitted({"a": np.repeat(np.arange(4), 3)}, np.ones(12))
