"""Wilcoxon's signed ranks against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.matched import FEW, signed_ranks


@pytest.mark.parametrize("n", [1, 2, 5, 8, FEW + 1, 60])
@pytest.mark.parametrize("ties", [True, False])
def test_statistic_and_p_are_those_of_scipy(n, ties):
    rng = np.random.default_rng([n, ties])
    moved = rng.choice([-2.0, -1.0, 1.0, 2.0, 3.0], n) if ties else rng.normal(0.5, 1, n)
    found = stats.wilcoxon(moved)
    assert signed_ranks(moved) == pytest.approx((found.statistic, found.pvalue))


def test_even_split_has_p_1():
    assert signed_ranks(np.array([1.0, -1.0])) == (1.5, 1.0)
