"""Quantiles and tails, beside those of scipy.stats."""

from __future__ import annotations

import numpy as np
from scipy import stats

from prejudge.core.statistics import intervals

P = np.array([0.001, 0.025, 0.3, 0.5, 0.99, np.nan])
X = np.array([-3.0, 0.0, 0.7, 4.0, np.nan])
FREEDOM = np.array([[0.4], [1.0], [7.5], [1e6], [np.inf], [np.nan]])


def test_normal_is_that_of_scipy():
    for ours, theirs in ((intervals.normal_ppf, stats.norm.ppf), (intervals.normal_isf, stats.norm.isf)):
        np.testing.assert_array_equal(ours(P), theirs(P))
    for ours, theirs in ((intervals.normal_cdf, stats.norm.cdf), (intervals.normal_sf, stats.norm.sf)):
        np.testing.assert_array_equal(ours(X), theirs(X))


def test_t_is_that_of_scipy():
    np.testing.assert_array_equal(intervals.t_isf(P, FREEDOM), stats.t.isf(P, FREEDOM))
    np.testing.assert_array_equal(intervals.t_sf(X, FREEDOM), stats.t.sf(X, FREEDOM))
