"""The step-up procedure for discrete tests: its definition test by test, and its false discoveries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.probes.dora.discrete import Nulls, discrete_adjusted
from prejudge.probes.dora.salience import corrected_over

LEVEL = 0.05


def chances(rng, kinds):
    """Return the upper tails of binomial tests with few trials, 0 hits first."""
    trials, share = rng.integers(1, 12, kinds), rng.uniform(0.02, 0.5, kinds)
    return (
        trials,
        share,
        np.array([stats.binom.sf(np.arange(-1, 12), n, p) for n, p in zip(trials, share, strict=True)]),
    )


def kept_by_definition(p, tails, counts):
    """Return the tests that HSU keeps (Doehler, Durand and Roquain 2018, section 3.1), with loops."""
    every = [row for row, count in zip(tails, counts, strict=True) for _ in range(int(count))]
    values = sorted({value for row in tails for value in row if 0 < value < 0.5})

    def chance(row, t):
        return max((value for value in row if value <= t), default=0.0)

    def odds(t):
        return sum(chance(row, t) / (1 - chance(row, t)) for row in every)

    largest = max((t for t in values if odds(t) <= LEVEL * len(every)), default=0.0)
    below = [t for t in values if t <= largest]
    critical = [0.0]
    for k in range(1, len(p) + 1):
        fit = [t for t in below if sum(chance(row, t) / (1 - chance(row, largest)) for row in every) <= LEVEL * k]
        critical.append(max(fit, default=0.0))
    ordered = np.sort(p)
    most = max((k for k in range(1, len(p) + 1) if ordered[k - 1] <= critical[k]), default=0)
    return set(np.flatnonzero(p <= critical[most])) if most else set()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_is_what_the_procedure_keeps(seed):
    rng = np.random.default_rng(seed)
    trials, share, tails = chances(rng, 25)
    hits = rng.binomial(trials, np.where(np.arange(25) < 12, 0.95, share))
    p = tails[np.arange(25), hits]
    kept = set(np.flatnonzero(discrete_adjusted(p, Nulls(tails, np.ones(25)), LEVEL) <= LEVEL))
    assert kept == kept_by_definition(p, tails, np.ones(25)) and (kept or seed)


def test_it_keeps_what_benjamini_hochberg_keeps_and_more():
    rng = np.random.default_rng(1)
    trials, share, tails = chances(rng, 2000)
    p = tails[np.arange(2000), rng.binomial(trials, np.where(np.arange(2000) < 200, 0.95, share))]
    bh = corrected_over(p, 2000) <= LEVEL
    ours = discrete_adjusted(p, Nulls(tails, np.ones(2000)), LEVEL) <= LEVEL
    assert (ours >= bh).all() and ours.sum() > 1.2 * bh.sum()


def test_false_discoveries_are_as_rare_as_the_level_says():
    rng = np.random.default_rng(2)
    shares, found = [], 0
    for _ in range(300):
        trials, share, tails = chances(rng, 200)
        p = tails[np.arange(200), rng.binomial(trials, np.where(np.arange(200) < 30, 0.9, share))]
        kept = discrete_adjusted(p, Nulls(tails, np.ones(200)), LEVEL) <= LEVEL
        shares.append(kept[30:].sum() / max(kept.sum(), 1))
        found += kept[:30].sum()
    assert np.mean(shares) < LEVEL and found > 300 * 5


def test_tests_of_unknown_chances_count_as_continuous():
    rng = np.random.default_rng(3)
    p = np.append(rng.uniform(size=90), rng.uniform(0, 1e-4, 10))
    ours = discrete_adjusted(p, Nulls(np.zeros((0, 1)), np.zeros(0), others=100.0), LEVEL)
    bh = corrected_over(p, 100)
    assert 10 <= (ours <= LEVEL).sum() <= (bh <= LEVEL).sum() and (ours[bh < 0.5] >= bh[bh < 0.5]).all()
    assert np.isnan(discrete_adjusted(np.array([np.nan]), Nulls(np.zeros((0, 1)), np.zeros(0), 1.0), LEVEL)).all()
