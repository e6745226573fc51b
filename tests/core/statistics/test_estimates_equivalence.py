"""Equivalence: verdicts of intervals against a margin."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from prejudge.core.contracts.estimates import Verdict
from prejudge.core.statistics.estimates import Margin, equivalence, judge_intervals
from prejudge.core.statistics.intervals import ratio
from prejudge.core.statistics.resampling import Resampling
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.metrics.crows_pairs.metric import CrowsPairs, CrowsPairsOptions

PLAN = Resampling(resamples=1999)


def mean(totals):
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


@pytest.fixture
def values():
    return np.random.default_rng(3).normal(0.1, 1, 40)


def counted(values, size=1):
    return np.stack([np.full(len(values), float(size)), values * size], axis=-1)


@pytest.mark.parametrize(
    ("narrow", "wide", "near", "differs"),
    [
        ((-0.5, 0.6), (-0.7, 0.8), True, False),
        ((0.2, 0.6), (0.1, 0.8), True, True),
        ((0.7, 1.6), (0.6, 1.8), False, True),
        ((-0.7, 1.6), (-0.8, 1.8), False, False),
        ((-1.0, 0.2), (-1.2, 0.4), False, False),
        ((float("nan"),) * 2, (float("nan"),) * 2, False, False),
    ],
)
def test_what_is_shown_follows_the_intervals(narrow, wide, near, differs):
    found = judge_intervals(narrow, wide, Margin(1.0))
    assert (found.near, found.excludes_neutral) == (near, differs)


def test_verdict_is_about_the_neutral_value():
    assert judge_intervals((48.0, 52.0), (47.5, 52.5), Margin(5.0, neutral=50.0)).near


def test_undefined_interval_shows_nothing():
    (found,) = equivalence(counted(np.ones(1))[:, None, None], mean, PLAN, Margin(1.0))
    assert (found[0].near, found[0].low, found[0].facts) == (False, None, {})


def test_wider_margin_shows_more(values):
    verdicts = [equivalence(counted(values)[:, None, None], mean, PLAN, Margin(m))[0][0].near for m in (0.1, 0.9)]
    assert verdicts == [False, True]


@pytest.mark.parametrize(("effect", "margin", "verdict"), [(0.0, 60.0, Verdict.NEAR), (1.2, 5.0, Verdict.ABOVE)])
def test_trisentbias_gives_a_verdict_for_a_margin(study, effect, margin, verdict):
    options = TriSentBiasOptions(over="template", margin=margin, resamples=499)
    found = [e for e in TriSentBias().compute(study(effect), options) if e.metric == "favouritism"]
    assert found
    assert [(e.verdict, e.facts.get("margin")) for e in found] == [(verdict, margin)] * len(found)


def test_verdicts_go_by_alpha_and_not_by_the_level_that_is_shown(study):
    rows = study(0.12)
    options = [
        TriSentBiasOptions(over="template", margin=30.0, resamples=499, level=level) for level in (0.5, 0.95, 0.99)
    ]
    facts = [[e.facts for e in TriSentBias().compute(rows, own) if e.metric == "favouritism"] for own in options]
    assert facts[0] == facts[1] == facts[2]
    assert all(fact["margin"] == 30 for fact in facts[0])


def test_contrast_without_an_interval_has_no_verdict(study):
    found = TriSentBias().compute(study(20.0), TriSentBiasOptions(over="template", margin=5.0, resamples=99))
    saturated = [e for e in found if e.metric == "favouritism" and e.low is None]
    assert saturated
    assert not any("margin" in e.facts for e in saturated)


def test_no_margin_gives_no_verdict(study):
    estimates = TriSentBias().compute(study(), TriSentBiasOptions(over="template", resamples=99))
    assert not any("margin" in e.facts for e in estimates)


@pytest.mark.parametrize(("hits", "verdict"), [(500, Verdict.NEAR), (900, Verdict.ABOVE), (530, Verdict.OPEN)])
def test_crows_pairs_gives_a_verdict_for_a_margin(hits, verdict):
    rows = [
        {"pair": f"p{i}", "side": side, "direction": "stereo", "bias_type": "age", "status": "ok", "log_probability": x}
        for i in range(1000)
        for side, x in (("more", -2.0 if i < hits else -4.0), ("less", -3.0))
    ]
    options = CrowsPairsOptions(margin=5.0, resamples=99)
    score = next(e for e in CrowsPairs().compute(pl.DataFrame(rows), options) if e.metric == "metric_score")
    assert (score.verdict, score.facts["margin"]) == (verdict, 5.0)
    shown = CrowsPairsOptions(margin=5.0, resamples=99, level=0.5)
    again = next(e for e in CrowsPairs().compute(pl.DataFrame(rows), shown) if e.metric == "metric_score")
    assert again.facts == score.facts
