"""The exact test and both intervals of a count, beside scipy's."""

from __future__ import annotations

import pytest
from scipy import stats

from prejudge.core.statistics.intervals import binomial_test, exact_interval, wilson_interval

COUNTS = [(hits, n) for n in (1, 2, 7, 12, 90, 301) for hits in sorted({0, 1, n // 3, n // 2, n - 1, n})]


@pytest.mark.parametrize("chance", [0.5, 1 / 3, 0.9])
def test_p_is_that_of_scipy(chance):
    for hits, n in COUNTS:
        assert binomial_test(hits, n, chance) == pytest.approx(stats.binomtest(hits, n, chance).pvalue, abs=1e-13)


@pytest.mark.parametrize(("method", "interval"), [("exact", exact_interval), ("wilson", wilson_interval)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_ends_are_those_of_scipy(method, interval, level):
    for hits, n in COUNTS:
        wanted = stats.binomtest(hits, n).proportion_ci(level, method=method)
        assert interval(hits, n, level) == pytest.approx((wanted.low, wanted.high), abs=1e-13)
