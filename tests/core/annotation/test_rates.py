"""Rates of agreement by a stratified sample: recomputed from their formulas, and coverage simulated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.annotation.rates import Part, agreement_rate, joint_share
from prejudge.core.statistics.intervals import wilson_interval


def test_wilson_is_that_of_scipy():
    for hits, n in ((0, 5), (3, 7), (90, 100), (5, 5)):
        other = stats.binomtest(hits, n).proportion_ci(0.9, method="wilson")
        assert wilson_interval(hits, n, 0.9) == pytest.approx((other.low, other.high), abs=1e-9)
    assert wilson_interval(0, 0, 0.9) == (0, 1)


def test_wilson_of_weighted_counts_solves_its_equation():
    low, high = wilson_interval(2.5, 7.25, 0.9)
    z, share = stats.norm.isf(0.05), 2.5 / 7.25
    for end in (low, high):
        assert (share - end) ** 2 == pytest.approx(z * z * end * (1 - end) / 7.25)


def world(seed=3, n=900):
    """Return labels, verdicts, cells and sampled rows of a population drawn by cell and verdict."""
    random = np.random.default_rng(seed)
    cells, labels = random.integers(0, 3, n), random.random(n) < 0.3
    verdicts = np.where(random.random(n) < 0.85, labels, ~labels)
    rows = [
        random.choice(np.flatnonzero((cells == c) & (verdicts == v)), 12 + 3 * c, replace=False)
        for v in (True, False)
        for c in range(3)
    ]
    return labels, verdicts, cells, rows


def parts_of(labels, verdicts, cells, rows):
    """Return the strata of either verdict with the counts of their labels."""
    strata = [(v, c) for v in (True, False) for c in range(3)]
    parts = [
        Part(int(((cells == c) & (verdicts == v)).sum()), (int((~labels[own]).sum()), int(labels[own].sum())))
        for (v, c), own in zip(strata, rows, strict=True)
    ]
    return parts[:3], parts[3:]


def test_all_labelled_leaves_nothing_uncertain():
    labels, verdicts, cells, _ = world()
    rows = [np.flatnonzero((cells == c) & (verdicts == v)) for v in (True, False) for c in range(3)]
    rate = agreement_rate(*parts_of(labels, verdicts, cells, rows), 1, 0.95)
    assert (rate.value, rate.low, rate.high) == pytest.approx([verdicts[labels].mean()] * 3)


def test_nothing_labelled_is_no_rate():
    assert joint_share([Part(50, (0, 0))], 1, 0.95).value is None


def test_intervals_hold_the_truth():
    held = []
    for seed in range(300):
        labels, verdicts, cells, rows = world(seed, 600)
        rate = agreement_rate(*parts_of(labels, verdicts, cells, rows), 1, 0.95)
        held.append(rate.low <= verdicts[labels].mean() <= rate.high)
    assert stats.binom.ppf(1e-4, 300, 0.95) / 300 < np.mean(held) < 1
