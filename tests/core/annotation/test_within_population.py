"""The estimator for the answers of a run alone: recomputed by other means, and coverage simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prejudge.core.annotation.powered import Side, within_population
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code

from .test_rates import world


def side_of(labels, verdicts, cells, rows):
    """Return a side, of verdicts that are yes or no, and the places and chances of its labels."""
    sampled = np.concatenate(rows)
    strata = (((cells == cells[own[0]]) & (verdicts == verdicts[own[0]])).sum() for own in rows)
    chances = np.concatenate([np.full(len(own), len(own) / size) for own, size in zip(rows, strata, strict=True)])
    sizes = np.array([(~verdicts).sum(), verdicts.sum()], dtype=float)
    values = verdicts[sampled].astype(float)
    groups = verdicts[sampled].astype(int)
    return Side(sizes, np.array([0.0, 1.0]), groups, values, labels[sampled] - values, chances), sampled


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0])
def test_share_is_prediction_powered_at_any_weight(power):
    labels, verdicts, cells, rows = world()
    side, sampled = side_of(labels, verdicts, cells, rows)
    differences = (labels[sampled] - power * verdicts[sampled]) / side.chances
    expected = power * verdicts.mean() + differences.sum() / len(labels)
    assert within_population([side], 0.95, 1.0).value == pytest.approx(expected)


def test_interval_is_that_of_the_labels_in_a_loop():
    labels, verdicts, cells, rows = world()
    side, sampled = side_of(labels, verdicts, cells, rows)
    variance, unseen = 0.0, []
    for verdict in (False, True):
        own = [
            (place, chance) for place, chance in zip(sampled, side.chances, strict=True) if verdicts[place] == verdict
        ]
        mean = sum(labels[place] / chance for place, chance in own) / sum(1 / chance for _, chance in own)
        for place, chance in own:
            factor = 1 + (1 - chance) / (len(own) - 1)
            variance += (1 - chance) * factor * ((labels[place] - mean) / chance / len(labels)) ** 2
            unseen.append((1 - chance) / (chance * len(labels)) ** 2)
    half = stats.t.ppf(0.975, len(sampled) - 2) * math.sqrt(variance + 2 * np.mean(unseen))
    corrected = within_population([side], 0.95, 1.0)
    assert corrected.high - corrected.value == pytest.approx(half) == corrected.value - corrected.low


def test_all_labelled_leaves_nothing_uncertain():
    labels, verdicts, cells, _ = world()
    rows = [np.flatnonzero((cells == c) & (verdicts == v)) for v in (True, False) for c in range(3)]
    corrected = within_population([side_of(labels, verdicts, cells, rows)[0]], 0.95, 1.0)
    assert (corrected.value, corrected.low, corrected.high) == pytest.approx([labels.mean()] * 3)


def test_difference_joins_both_uncertainties():
    wide, narrow = (
        Side(
            np.array([1000.0]),
            np.array([0.5]),
            np.zeros(2 * n, dtype=int),
            np.full(2 * n, 0.5),
            np.repeat([-0.5, 0.5], n),
            np.full(2 * n, n / 500),
        )
        for n in (20, 400)
    )
    both = within_population([wide, narrow], 0.95)
    assert both.value == 0
    errors = [
        (one.high - one.value) / stats.t.ppf(0.975, labels - 1)
        for one, labels in ((within_population([wide], 0.95), 40), (within_population([narrow], 0.95), 800))
    ]
    assert errors[1] < errors[0]
    assert both.high == pytest.approx(stats.t.ppf(0.975, 838) * math.hypot(*errors))


def test_numbers_count_with_the_weight_of_least_variance():
    """Of numbers that are mostly noise: the weight, and so the width, are the best of all in a search."""
    random = np.random.default_rng(1)
    truth = random.normal(size=70)
    judge = 0.5 * truth + random.normal(size=70)
    sizes = np.array([10.0] * 100)
    side = Side(sizes, np.full(100, 0.1), random.integers(0, 100, 70), judge, truth - judge, np.full(70, 0.07))
    best = min(np.linspace(0, 1, 2001), key=lambda power: np.var(truth - power * judge))
    corrected = within_population([side], 0.95)
    assert corrected.value == pytest.approx(best * 0.1 + (truth - best * judge).mean(), abs=1e-3)
    variance = 0.93 * np.var(truth - best * judge, ddof=1) / 70
    assert corrected.high - corrected.value == pytest.approx(stats.t.ppf(0.975, 69) * math.sqrt(variance), rel=0.02)


def test_few_labels_are_refused():
    labels, verdicts, cells, rows = world()
    side, _ = side_of(labels, verdicts, cells, rows)
    few = side._replace(**{name: getattr(side, name)[:19] for name in ("groups", "values", "changes", "chances")})
    with raises_code(UsageError, "annotation.few"):
        within_population([few], 0.95)
    with raises_code(UsageError, "annotation.few"):
        within_population([side, few], 0.95)


@pytest.mark.parametrize("right", [0.85, 1.0], ids=["a judge that errs", "a judge that is always right"])
def test_intervals_hold_the_truth(right):
    held = []
    for seed in range(300):
        labels, verdicts, cells, rows = world(seed, 600)
        if right == 1.0:
            labels = verdicts
        corrected = within_population([side_of(labels, verdicts, cells, rows)[0]], 0.95, 1.0)
        held.append(corrected.low <= labels.mean() <= corrected.high)
    assert np.mean(held) > stats.binom.ppf(1e-4, 300, 0.95) / 300
