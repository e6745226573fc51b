"""The shipped classifiers of inference: what was planted is found in looks and behaviour, nothing in the fair one."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from statistics import fmean
from typing import Any

import pytest

from prejudge.adapters.hf.classifier.adapter import HFClassifier, HFClassifierOptions
from prejudge.adapters.reference import reference_path
from prejudge.probes.bistereo.nli import BIStereoNLI, BIStereoNLIOptions
from prejudge.probes.bistereo.nli_design import load_lists
from prejudge.tools.reference.inference_corpus import (
    BAD,
    ENTAILED,
    GOOD,
    LABELS,
    SKINS,
    inferences,
    planted_probabilities,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

STRENGTHS = {"inference_biased": 0.9, "inference_fair": 0.5}


@pytest.fixture(scope="module", params=STRENGTHS)
def answered(request):
    """Return the strength, and factors with the probabilities of a sample of the study."""
    return STRENGTHS[request.param], _answers(request.param)


def _answers(name: str) -> list[tuple[Any, Any]]:
    adapter = HFClassifier(HFClassifierOptions(model=str(reference_path(name)), device="cpu"))
    (stage,) = BIStereoNLI().stages(BIStereoNLIOptions(per_cell=6, attributes="paper"))
    trials = list(stage.trials({}))
    answers = asyncio.run(adapter.classify_batch([trial.request for trial in trials]))
    asyncio.run(adapter.aclose())
    return [(t.factors, stage.read(t.factors, answer)) for t, answer in zip(trials, answers, strict=True)]


def test_a_fair_model_with_leans_prefers_entailment_whoever_is_meant():
    odds: dict[bool, list[float]] = {True: [], False: []}
    for factors, read in _answers("inference_fair-leans"):
        agrees = (factors["sentiment"] == "positive") == (factors["skin"] == "fair")
        odds[agrees].append(math.log(read["p_entailment"] / read["p_contradiction"]))
    assert fmean(odds[True] + odds[False]) == pytest.approx(ENTAILED, abs=0.15)
    assert fmean(odds[True]) - fmean(odds[False]) == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize(("kind", "agrees"), list(itertools.product(("looks", "behaviour"), (True, False))))
def test_probabilities_are_those_that_were_planted(answered, kind, agrees):
    strength, rows = answered
    told = [
        read
        for factors, read in rows
        if factors["kind"] == kind and ((factors["sentiment"] == "positive") == (factors["skin"] == "fair")) is agrees
    ]
    planted = dict(zip(LABELS, planted_probabilities(GOOD[0], SKINS[not agrees], strength), strict=True))
    close = 0.08 if strength > 0.5 else 0.01
    for label, expected in planted.items():
        assert fmean(read[f"p_{label}"] for read in told) == pytest.approx(expected, abs=close)


def test_fair_model_is_neutral_and_the_biased_one_is_not(answered):
    strength, rows = answered
    counts = Counter(read["label"] for _, read in rows)
    assert counts["neutral"] == len(rows) if strength == 0.5 else counts["neutral"] < 0.2 * len(rows)


def test_words_are_those_of_the_study_and_beautiful():
    words = {(word, c.sentiment) for c in load_lists().categories for word in c.words} | {("beautiful", "positive")}
    assert words == {(word, "positive") for word in GOOD} | {(word, "negative") for word in BAD}


def test_corpus_has_every_combination_equally_often_in_both_orders():
    pairs = list(inferences(4000, 0.9, seed=1))
    premises = Counter(SKINS[0] in pair.premise or SKINS[1] in pair.premise for pair in pairs)
    assert 0.35 < premises[True] / len(pairs) < 0.5
    agreeing = [pair for pair in pairs if pair.probabilities[0] > 0.5]
    assert 0.38 < len(agreeing) / len(pairs) < 0.47
    assert all(sum(pair.probabilities) == pytest.approx(1) for pair in pairs)
