"""Equivalence: verdicts of intervals against a margin."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.core.contracts import Estimate
from prejudge.core.contracts.estimates import Caveat, Verdict
from prejudge.core.statistics.estimates import judge
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.metrics.crows_pairs.metric import CrowsPairs, CrowsPairsOptions


@pytest.mark.parametrize(
    ("low", "high", "p", "verdict"),
    [
        (-0.7, 0.8, 0.9, Verdict.NEAR),
        (0.1, 0.8, 0.01, Verdict.NEAR),
        (0.6, 1.8, 0.01, Verdict.ABOVE),
        (-0.8, 1.8, 0.4, Verdict.OPEN),
        (-1.0, 0.4, 0.4, Verdict.OPEN),
        (None, None, 0.4, Verdict.OPEN),
    ],
)
def test_verdict_follows_the_interval_around_neutral(low, high, p, verdict):
    ends = [None if end is None else 50 + end for end in (low, high)]
    e = Estimate.from_flat(
        metric="m", group={}, value=50.2, neutral=50.0, low=ends[0], high=ends[1], p_adjusted=p, facts={"margin": 1.0}
    )
    assert judge(e, 0.05).verdict is verdict
    narrow = judge(e.replace(caveats=(Caveat.FEW_CLUSTERS,)), 0.05)
    assert narrow.verdict is (Verdict.ABOVE if p == 0.01 else Verdict.OPEN)


@pytest.mark.parametrize(("effect", "margin", "verdict"), [(0.0, 60.0, Verdict.NEAR), (1.2, 5.0, Verdict.ABOVE)])
def test_trisentbias_gives_a_verdict_for_a_margin(study, effect, margin, verdict):
    options = TriSentBiasOptions(over="template", margin=margin, resamples=499)
    found = [e for e in TriSentBias().compute(study(effect), options) if e.metric == "favouritism"]
    assert found
    assert [(e.verdict, e.facts.get("margin")) for e in found] == [(verdict, margin)] * len(found)


def test_contrast_without_an_interval_has_no_verdict(study):
    found = TriSentBias().compute(study(20.0), TriSentBiasOptions(over="template", margin=5.0, resamples=99))
    saturated = [e for e in found if e.metric == "favouritism" and e.low is None]
    assert saturated
    assert not any(e.facts["within_margin"] for e in saturated)


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
