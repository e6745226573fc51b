"""Labels of a sample: estimators recomputed from their formulas, and coverage simulated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from prejudge.core.contracts.errors import UsageError
from prejudge.core.statistics.intervals import wilson_interval
from prejudge.core.statistics.labelled import (
    Part,
    agreement_rate,
    corrected_share,
    difference,
    joint_share,
    ppi_mean,
    rogan_gladen,
)


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
    every = [(v, c) for v in (True, False) for c in range(3)]
    made = [
        Part(int(((cells == c) & (verdicts == v)).sum()), (int((~labels[own]).sum()), int(labels[own].sum())))
        for (v, c), own in zip(every, rows, strict=True)
    ]
    return made[:3], made[3:]


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0])
def test_corrected_share_is_prediction_powered_at_any_weight(power):
    labels, verdicts, cells, rows = world()
    found = corrected_share(parts_of(labels, verdicts, cells, rows), 1, verdicts.mean(), 0.95, random=True)
    sampled = np.concatenate(rows)
    weights = np.concatenate(
        [
            np.full(len(own), ((cells == cells[own[0]]) & (verdicts == verdicts[own[0]])).sum() / len(own))
            for own in rows
        ]
    )
    rest = weights * (labels[sampled] - power * verdicts[sampled])
    assert found.value == pytest.approx(power * verdicts.mean() + rest.sum() / len(labels))
    assert (found.population, found.labelled) == (900, len(sampled))


def test_all_labelled_leaves_nothing_uncertain():
    labels, verdicts, cells, _ = world()
    rows = [np.flatnonzero((cells == c) & (verdicts == v)) for v in (True, False) for c in range(3)]
    own, others = parts_of(labels, verdicts, cells, rows)
    found = corrected_share((own, others), 1, 0.5, 0.95, random=True)
    assert (found.value, found.low, found.high) == pytest.approx([labels.mean()] * 3)
    rate = agreement_rate(own, others, 1, 0.95)
    assert (rate.value, rate.low, rate.high) == pytest.approx([verdicts[labels].mean()] * 3)


def test_unlabelled_stratum_may_be_anything():
    parts = [Part(50, (10, 10)), Part(50, (0, 0))]
    found = corrected_share([parts], 1, 0.5, 0.95, random=True)
    assert found.unlabelled_parts == 1 and found.high - found.low > 0.5
    assert joint_share([Part(50, (0, 0))], 1, 0.95).value is None
    assert corrected_share([[Part(50, (0, 0))]], 1, 0.5, 0.95, random=True).value is None


def test_difference_joins_both_uncertainties():
    wide, narrow = (corrected_share([[Part(1000, (n, n))]], 1, 0.5, 0.95, random=True) for n in (5, 400))
    rate = difference(wide, narrow)
    assert rate.value == 0 and rate.high - rate.low > wide.high - wide.low


def test_labels_that_were_not_drawn_correct_nothing():
    with pytest.raises(UsageError) as error:
        corrected_share([[Part(10, (2, 2))]], 1, 0.5, 0.95, random=False)
    assert error.value.code == "annotation.not-random"


def test_rogan_gladen_inverts_the_matrix():
    found = rogan_gladen(0.4, 500, (45, 50), (80, 100), 0.95)
    exact = (Fraction(4, 10) + Fraction(80, 100) - 1) / (Fraction(45, 50) + Fraction(80, 100) - 1)
    assert found.value == pytest.approx(float(exact)) and found.low < found.value < found.high
    with pytest.raises(UsageError) as error:
        rogan_gladen(0.4, 500, (25, 50), (50, 100), 0.95)
    assert error.value.code == "annotation.matrix"


def test_weight_of_a_judge_is_the_best():
    random = np.random.default_rng(1)
    strata = np.repeat([0, 1], [30, 40])
    truth = random.normal(size=70)
    judge = 0.5 * truth + random.normal(size=70)
    sizes, means = np.array([600.0, 400.0]), np.array([0.1, -0.2])

    def at(power):
        value = variance = 0.0
        for s in (0, 1):
            rest, n = (truth - power * judge)[strata == s], (strata == s).sum()
            weight = sizes[s] / 1000
            value += weight * (power * means[s] + rest.mean())
            variance += weight**2 * (1 - n / sizes[s]) * rest.var(ddof=1) / n
        return value, variance

    best = min(np.linspace(0, 1, 2001), key=lambda power: at(power)[1])
    found = ppi_mean(truth, judge, strata, sizes, means, 0.95)
    value, variance = at(best)
    assert found.value == pytest.approx(value, abs=1e-3)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 68) * variance**0.5, rel=1e-3)
    with pytest.raises(UsageError) as error:
        ppi_mean(truth[:5], judge[:5], strata[:5], sizes, means, 0.95)
    assert error.value.code == "annotation.few"


def test_intervals_hold_the_truth():
    held = []
    for seed in range(300):
        labels, verdicts, cells, rows = world(seed, 600)
        own, others = parts_of(labels, verdicts, cells, rows)
        share = corrected_share((own, others), 1, verdicts.mean(), 0.95, random=True)
        rate = agreement_rate(own, others, 1, 0.95)
        held.append((share.low <= labels.mean() <= share.high, rate.low <= verdicts[labels].mean() <= rate.high))
    assert (np.mean(held, axis=0) > stats.binom.ppf(1e-4, 300, 0.95) / 300).all()
    assert np.mean(held) < 1
