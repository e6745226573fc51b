"""Families of hypotheses: correction and verdicts."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.estimates import Estimate, Verdict
from prejudge.core.statistics.estimates import adjust, correct, judge

P_VALUES = [0.01, 0.04, 0.03, 0.005]


def estimate(p: float | None, value: float = 1.0, family: str = "a") -> Estimate:
    return Estimate.from_flat(metric="m", group={}, value=value, neutral=0.0, p=p, family=family)


def test_benjamini_hochberg_known_values():
    assert adjust(P_VALUES, "bh") == pytest.approx([0.02, 0.04, 0.04, 0.02])


def test_holm_known_values():
    assert adjust(P_VALUES, "holm") == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_stays_at_most_one():
    assert adjust([0.9, 0.8], "holm") == [1.0, 1.0]


@pytest.mark.parametrize(("ours", "theirs"), [("bh", "fdr_bh"), ("by", "fdr_by"), ("holm", "holm")])
def test_corrections_agree_with_statsmodels(ours, theirs):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = [*P_VALUES, 0.5, 0.04, 0.9]
    assert adjust(p_values, ours) == pytest.approx(multitest.multipletests(p_values, method=theirs)[1])


def test_nothing_to_adjust_is_nothing():
    assert adjust([], "bh") == []


def test_families_are_corrected_apart():
    found = correct([estimate(0.02), estimate(0.02, family="b"), estimate(0.5)], "holm", 0.05, "cells")
    assert [e.p_adjusted for e in found] == [0.04, 0.02, 0.5]
    assert [e.test.family for e in found] == ["a: 2 cells", "b: 1 test", "a: 2 cells"]
    assert {e.test.correction for e in found} == {"Holm"}


def test_untested_estimate_does_not_count():
    tested, untested = correct([estimate(0.02), estimate(None)], "bh", 0.05, "cells")
    assert (tested.p_adjusted, untested.p_adjusted) == (0.02, None)
    assert (untested.test.correction, untested.verdict) == ("", None)


@pytest.mark.parametrize(
    ("value", "p", "verdict"),
    [(1.0, 0.05, Verdict.ABOVE), (-1.0, 0.05, Verdict.BELOW), (1.0, 0.051, Verdict.OPEN), (1.0, None, None)],
)
def test_verdict_follows_side_and_p(value, p, verdict):
    assert correct([estimate(p, value)], "bh", 0.05, "cells")[0].verdict is verdict


@pytest.mark.parametrize(
    ("p", "within", "verdict"),
    [
        (0.5, True, Verdict.NEAR),
        (0.5, False, Verdict.OPEN),
        (None, True, Verdict.NEAR),
        (None, False, Verdict.OPEN),
        (0.01, True, Verdict.NEAR),
        (0.01, False, Verdict.ABOVE),
    ],
)
def test_an_interval_within_the_margin_comes_before_significance(p, within, verdict):
    ends = {"low": 0.5, "high": 1.5 if within else 3.0}
    (found,) = correct([estimate(p).replace(facts={"margin": 2.0}, **ends)], "bh", 0.05, "cells")
    assert found.verdict is verdict and found.facts["within_margin"] is within
    assert found.significant is (p == 0.01)


def test_without_a_neutral_value_nothing_is_judged():
    assert judge(estimate(0.01).replace(neutral=None, p_adjusted=0.01), 0.05).verdict is None
