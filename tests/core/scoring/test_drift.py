"""Paired tests of answers before and now: exact on small cases, silent on noise, and able to speak."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.contracts.records import Generation, TokenScores, Usage
from prejudge.core.scoring.drift import Pair, compare


def pair(before, after, outcome="label"):
    texts = [Generation(text=str(value)) for value in (before, after)]
    return Pair("s", texts[0], texts[1], ({outcome: before}, {outcome: after}))


def scores(before, after):
    answers = [TokenScores(log_probability=value, count=3) for value in (before, after)]
    return Pair("s", answers[0], answers[1], ({"log_probability": before}, {"log_probability": after}))


def only(pairs, tolerance=1e-4):
    drift = compare(pairs, tolerance)
    (found,) = drift.comparisons
    return drift, found


def test_same_answers_are_no_drift():
    drift, found = only([pair("a", "a")] * 5 + [pair("b", "b")] * 5)
    assert (drift.same, drift.share, found.p, found.changed) == (10, 1.0, 1.0, 0) and not drift.drifted(0.05)
    assert drift.same_low == pytest.approx(stats.binomtest(10, 10).proportion_ci(method="wilson").low)


def test_two_categories_are_tested_by_mcnemar():
    drift, found = only([pair("a", "b")] * 9 + [pair("b", "a")] + [pair("a", "a")] * 10)
    assert found.p == pytest.approx(stats.binomtest(1, 10).pvalue) and drift.drifted(0.05)
    assert (found.n, found.changed, found.effect) == (20, 10, 0.5)


def test_more_categories_are_tested_together():
    drift, found = only([pair("a", "b")] * 12 + [pair("a", "c")] * 3 + [pair("c", "c")] * 5)
    assert found.test.startswith("permutation") and found.p < 0.01
    _, balanced = only([pair("a", "b"), pair("b", "c"), pair("c", "a")] * 5)
    assert balanced.changed == 15 and balanced.p > 0.5


def test_numbers_are_tested_by_signed_ranks():
    moved = np.random.default_rng(0).normal(0.3, 0.2, 30)
    drift, found = only([scores(-5.0, -5.0 + float(d)) for d in moved])
    assert found.p == pytest.approx(stats.wilcoxon(moved).pvalue) and drift.drifted(0.05)
    assert found.largest == pytest.approx(np.abs(moved).max()) and 0.5 < found.effect <= 1


def test_rounding_is_no_drift():
    drift, found = only([scores(-5.0, -5.0 - 5e-5)] * 30)
    assert drift.same == 30 and found.p == 1.0 and found.largest == pytest.approx(5e-5)


def test_tokens_used_are_no_difference():
    before, after = Generation(text="a"), Generation(text="a", usage=Usage(output_tokens=3))
    assert compare([Pair("s", before, after, ({"x": 1}, {"x": 1}))], 0.0).same == 1


def test_missing_answers_are_counted_and_not_compared():
    gone = Pair("s", Generation(text="a"), None, ({"label": "a"}, {}))
    drift, found = only([pair("a", "a"), gone])
    assert (drift.asked, drift.missing, drift.share, found.n) == (2, 1, 1.0, 1)
    assert compare([gone], 0.0).share is None


def test_p_is_corrected_over_all_outcomes():
    pairs = [pair("a", "b")] * 6 + [pair("x", "x", "other")] * 6
    drift = compare(pairs, 0.0)
    assert [found.p_adjusted for found in drift.comparisons] == pytest.approx([2 * 2 / 2**6, 1.0])


def test_false_alarms_are_as_rare_as_the_level():
    rng = np.random.default_rng(1)
    alarms = sum(
        only([scores(-5.0, -5.0 + float(d)) for d in rng.normal(0, 1, 40)])[0].drifted(0.05) for _ in range(400)
    )
    assert 8 <= alarms <= 34
