"""Accuracy of prompts."""

from __future__ import annotations

import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.estimates import Caveat
from prejudge.metrics.bistereo.nli_prompts import NLIPrompts, NLIPromptsMetricOptions

OPTIONS = NLIPromptsMetricOptions(resamples=199)


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
