"""Accuracy of prompts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.estimates import Caveat
from prejudge.metrics.bistereo.nli_prompts import NLIPrompts, NLIPromptsMetricOptions

OPTIONS = NLIPromptsMetricOptions(resamples=199, over="item")
BY_PREMISE = NLIPromptsMetricOptions(resamples=999)


def answers(**right):
    """Return 40 answers per prompt of which so many, from the first, are right."""
    rows = [
        {
            "item": str(item),
            "prompt": prompt,
            "truth": "neutral",
            "label": "neutral" if item < count else "entailment",
            "status": "ok",
            "reason": None,
        }
        for prompt, count in right.items()
        for item in range(40)
    ]
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String})


def alike(rng, prompts="abcde", premises=60, each=3, shared=0.9):
    """Return answers to prompts of equal accuracy: hypotheses about one premise are mostly right or wrong together."""
    rows = []
    for prompt in prompts:
        for premise in range(premises):
            together = rng.random() < 0.5
            for number in range(each):
                right = together if rng.random() < shared else rng.random() < 0.5
                rows.append((f"{premise}.{number}", str(premise), prompt, "neutral" if right else "entailment"))
    frame = pl.DataFrame(rows, schema=["item", "premise", "prompt", "label"], orient="row")
    return frame.with_columns(truth=pl.lit("neutral"), status=pl.lit("ok"), reason=pl.lit(None, dtype=pl.String))


def leads(frame, options):
    return [e for e in NLIPrompts().compute(frame, options) if e.metric == "less_accurate"]


def test_hypotheses_about_one_premise_are_one_cluster():
    frame = alike(np.random.default_rng(0))
    found = NLIPrompts().compute(frame, BY_PREMISE)
    assert all(e.clusters == 60 for e in found if e.metric in ("accuracy", "less_accurate"))
    # The design effect of three hypotheses that agree in 0.81 of their variance is 1 + 2 * 0.81.
    wide, narrow = (one(NLIPrompts().compute(frame, o), "accuracy", prompt="a") for o in (BY_PREMISE, OPTIONS))
    assert (wide.high - wide.low) / (narrow.high - narrow.low) == pytest.approx(2.62**0.5, rel=0.2)
    assert NLIPrompts().conclude(found).startswith("For premises like these")


def test_prompts_alike_are_rarely_told_apart_though_the_best_is_chosen():
    # At 5 % more than 9 of 80 studies have a chance of 1 %; with pairs as independent most find a difference.
    rng, found, naive, covered = np.random.default_rng(1), 0, 0, 0
    for _ in range(80):
        frame = alike(rng)
        own = leads(frame, BY_PREMISE)
        found += any(e.p_adjusted <= 0.05 for e in own)
        covered += all(e.low <= 0 <= e.high for e in own)
        naive += any(e.p_adjusted <= 0.05 for e in leads(frame, OPTIONS))
    assert found <= 9 and covered >= 71
    assert naive > 16


def test_lead_counts_the_pairs_of_prompts_that_could_have_been_the_best():
    frame = alike(np.random.default_rng(2), prompts="abc")
    own = leads(frame, BY_PREMISE)
    assert [e.interval.level for e in own] == pytest.approx([1 - 0.05 / 3] * 2)
    assert own[0].test.family == "best prompt against the others: 2 tests"
    wide = frame.pivot(on="prompt", index=["item", "premise"], values="label")
    best = own[0].group["than"]
    for e in own:
        gap = [(a == "neutral") - (b == "neutral") for a, b in wide.select(best, e.group["prompt"]).iter_rows()]
        sums = wide.with_columns(gap=pl.Series(gap)).group_by("premise").agg(pl.col("gap").sum())["gap"].to_numpy()
        flipped = np.random.default_rng(0).choice([-1, 1], (20_000, len(sums))) @ sums
        p = np.mean(np.abs(flipped) >= abs(sums.sum()))
        assert e.p == pytest.approx(min(1.5 * p, 1), abs=0.06)


def one(estimates, metric, **group):
    (found,) = [e for e in estimates if e.metric == metric and group.items() <= e.group.items()]
    return found


def test_accuracy_has_an_exact_interval():
    found = one(NLIPrompts().compute(answers(a=30, b=20), OPTIONS), "accuracy", prompt="a")
    expected = stats.binomtest(30, 40).proportion_ci(0.95, method="exact")
    assert found.value == 75 and (found.low, found.high) == pytest.approx((100 * expected.low, 100 * expected.high))


def test_best_prompt_is_compared_on_the_same_pairs():
    found = NLIPrompts().compute(answers(a=20, b=30, c=29), OPTIONS)
    assert one(found, "less_accurate", prompt="a").p == pytest.approx(stats.binomtest(10, 10).pvalue)
    assert one(found, "less_accurate", prompt="c").p_adjusted == 1
    said = NLIPrompts().conclude(found)
    assert said.startswith("For items like these: Accuracy (a) is 50.00 %") and "Accuracy (b) is 75.00 %" in said
    assert {e.group["than"] for e in found if e.metric == "less_accurate"} == {"b"}


def test_few_pairs_are_told():
    frame = answers(a=4, b=6).filter(pl.col("item").cast(pl.Int64) < 8)
    found = one(NLIPrompts().compute(frame, OPTIONS), "less_accurate", prompt="a")
    assert found.value == 25 and found.p == 0.5 and found.caveats == (Caveat.FEW_CLUSTERS,)


def test_answer_without_a_label_is_wrong_and_a_refusal_is_missing():
    frame = answers(a=40).with_columns(
        label=pl.when(pl.col("item").is_in(["0", "1"])).then(None).otherwise("label"),
        status=pl.when(pl.col("item") == "0")
        .then(pl.lit("unreadable"))
        .when(pl.col("item") == "1")
        .then(pl.lit("refused"))
        .otherwise("status"),
    )
    found = one(NLIPrompts().compute(frame, OPTIONS), "accuracy", prompt="a")
    assert found.n == 39 and found.value == pytest.approx(100 * 38 / 39) and found.missing.counts == {"refused": 1}


def test_nothing_answered_is_undefined():
    found = NLIPrompts().compute(answers(a=3).with_columns(status=pl.lit("failed")), OPTIONS)
    assert one(found, "accuracy", prompt="a").value is None
    assert NLIPrompts().conclude(found).startswith("Nothing")
