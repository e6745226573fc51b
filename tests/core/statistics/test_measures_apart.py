"""Tests of a paper's own beside those of clusters, effect sizes with intervals of their own, ends of single rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge import statistics
from prejudge.core.statistics.measures import BISERIAL

from .test_measures import OPTIONS, answers, declared, ok, one

WORDS = tuple("pqrstu")


def by_word(**others):
    return statistics.KruskalWallis(
        "h", value="x", of="word", levels=WORDS, test=statistics.kruskal_test("Kruskal-Wallis"), **others
    )


def test_h_is_that_of_scipy_and_has_no_interval():
    frame = answers()
    found = one(frame, by_word(resamples_of_effect=99))
    groups = [part["x"].to_numpy() for _, part in ok(frame).group_by("word")]
    expected = stats.kruskal(*groups)
    assert (found.value, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.low is None and found.unit == "H, 5 degrees of freedom" and found.clusters == 9
    assert found.effect.value == pytest.approx(expected.statistic / (ok(frame).height - 1))
    assert found.effect.low < found.effect.value < found.effect.high


def test_no_resamples_leave_the_effect_without_its_interval():
    found = one(answers(), by_word(resamples_of_effect=0))
    assert found.effect.value is not None and found.effect.low is None is found.effect.high


def test_answers_that_are_all_alike_are_no_difference():
    found = one(answers().with_columns(x=pl.lit(0.1) + 0.2), by_word(resamples_of_effect=99))
    assert (found.value, found.p, found.effect.value, found.caveats) == (0.0, 1.0, 0.0, ("no_variation",))


def test_one_group_has_no_h():
    found = one(answers().filter((pl.col("word") == "p") | (pl.col("status") != "ok")), by_word())
    assert found.value is None and found.p is None and found.effect.value is None


def signed(rows):
    found = stats.wilcoxon(rows[:, 0])
    return float(found.statistic), float(found.pvalue)


GAP = statistics.Mean("gap", value="x", neutral=0, size=BISERIAL, resamples_of_effect=99, ends=("least", "most"))
AGAIN = statistics.Mean(
    "again",
    value="x",
    neutral=0,
    size=BISERIAL,
    resamples_of_effect=99,
    ends=("least", "most"),
    repeats="gap",
    test=statistics.Test("Wilcoxon", signed, of_rows=True),
)


def test_repeated_measure_differs_in_its_test_alone():
    lost = pl.col("status") != "ok"
    frame = answers().with_columns(
        least=pl.when(lost).then(-9.0).otherwise("x"), most=pl.when(lost).then(9.5).otherwise("x")
    )
    both = declared(GAP, AGAIN).compute(frame, OPTIONS)
    first, second = (next(e for e in both if e.metric == name) for name in ("gap", "again"))
    same = [(e.value, e.interval, e.effect, e.missing, e.n, e.clusters) for e in (first, second)]
    assert same[0] == same[1] and first.test.name.startswith("sign-flip")
    x = ok(frame)["x"].to_numpy()
    assert (second.test.statistic, second.p) == pytest.approx(signed(x[:, None]))
    ranks = stats.rankdata(np.abs(x))
    assert second.effect.value == pytest.approx((ranks * np.sign(x)).sum() / ranks.sum())
    ends = frame["least"].mean(), frame["most"].mean()
    assert (first.missing.bound_low, first.missing.bound_high) == pytest.approx(ends)


def test_every_level_of_a_factor_apart_is_a_family():
    mean = statistics.Mean("gap", value="x", neutral=0, apart=("side",))
    found = [e for e in declared(mean, groups=(("side", "word"),)).compute(answers(), OPTIONS) if e.metric == "gap"]
    assert {e.test.family for e in found if e.p is not None} == {
        f"by word (side: {side}): {sum(e.group['side'] == side for e in found)} tests" for side in "ab"
    }


def test_jackknife_of_a_measure_stands_whatever_the_option_says():
    found = one(answers(), statistics.Difference("gap", value="x", first=pl.col("side") == "a", intervals="jackknife"))
    assert found.interval.method == "cluster jackknife (template)" and found.test.name == "t test, jackknife (template)"
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)


def test_unknown_end_of_a_row_leaves_the_value_without_bounds():
    frame = answers().with_columns(least=pl.when(pl.col("status") == "ok").then("x"), most=pl.col("x"))
    found = one(frame, GAP)
    assert found.value is not None and found.missing.bound_low is None is found.missing.bound_high
