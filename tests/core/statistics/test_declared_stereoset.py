"""StereoSet as the page on plugins declares it, against its published definitions on made-up answers.

Of every target term: the share of items whose stereotypical sentence is likelier than the anti-stereotypical one, and
the share of meaningful sentences likelier than the unrelated one, both strictly. The scores are the plain means over
terms, and ICAT = LM * min(SS, 100 - SS) / 50 of these means.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge import statistics
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.estimates import Caveat
from prejudge.testing import MetricContract, raises_code

PAGE = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
SHOWN = next(text for text in PAGE.read_text("utf-8").split("```python\n") if "class StereoSet" in text).split("```")[0]
NAMES: dict = {}
exec(compile(SHOWN, str(PAGE), "exec"), NAMES)
StereoSet, LABELS = NAMES["StereoSet"], NAMES["LABELS"]
OPTIONS = statistics.MarginOptions(resamples=499, margin=5)


def observed() -> pl.DataFrame:
    """Return three sentences per item; terms have 2 to 6 items, scores often tie, and some answers are missing."""
    rng = np.random.default_rng(7)
    rows = []
    for term in range(24):
        for item in range(int(rng.integers(2, 7))):
            for label in LABELS:
                lost = rng.random() < 0.03
                rows.append(
                    {
                        "item": f"{term}-{item}",
                        "label": label,
                        "target": f"term {term}",
                        "bias_type": ("gender", "race", "religion")[term % 3],
                        "log_probability": None if lost else -float(rng.integers(3, 8)),
                        "status": "refused" if lost else "ok",
                        "reason": None,
                        "trial": f"{term}-{item}/{label}",
                        "key": f"{term}-{item}/{label}".encode(),
                    }
                )
    return pl.DataFrame(rows)


def scores(rows: pl.DataFrame) -> dict[str, Fraction]:
    """Return the published scores in exact fractions; an item with a missing sentence is left out."""
    items: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows.filter(pl.col("status") == "ok").to_dicts():
        items[row["target"], row["item"]][row["label"]] = row["log_probability"]
    by_term: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for (target, _), own in items.items():
        if len(own) == 3:
            pro, anti, unrelated = (own[label] for label in LABELS)
            by_term[target].append((pro > anti, (pro > unrelated) + (anti > unrelated), pro == anti))
    n = len(by_term)
    ss, related, ties = (
        sum(Fraction(sum(own[place] for own in found), len(found)) for found in by_term.values()) / n * 100
        for place in range(3)
    )
    lm = related / 2
    return {"language_score": lm, "stereotype_score": ss, "ties": ties, "icat": lm * min(ss, 100 - ss) / 50}


def computed(rows: pl.DataFrame, **options) -> dict:
    """Return the estimates by measure and group."""
    found = StereoSet().compute(rows, statistics.MarginOptions(**({"resamples": 499, "margin": 5} | options)))
    return {(e.metric, *e.group.values()): e for e in found}


class TestContract(MetricContract):
    make = StereoSet
    observations = staticmethod(observed)
    outcomes = ("log_probability",)
    options = {"resamples": 99}


def test_it_takes_no_more_than_sixty_lines():
    assert len(SHOWN.splitlines()) <= 60


def test_scores_are_the_published_ones_to_the_last_digit():
    rows, found = observed(), computed(observed())
    parts = {(): rows}
    parts |= {(name,): rows.filter(bias_type=name) for name in ("gender", "race", "religion")}
    for group, part in parts.items():
        for name, value in scores(part).items():
            assert found[(name, *group)].value == pytest.approx(float(value), rel=1e-13), (name, group)
    for target in rows["target"].unique():
        for name, value in scores(rows.filter(target=target)).items():
            assert found[name, target].value == pytest.approx(float(value), rel=1e-13)


def test_ties_are_no_hits_and_are_told():
    rows = observed().with_columns(log_probability=pl.lit(-3.0), status=pl.lit("ok"))
    found = computed(rows)
    assert found["stereotype_score",].value == 0 and found["ties",].value == 100 and found["language_score",].value == 0
    assert found["icat",].value == 0 and Caveat.NO_VARIATION in found["icat",].caveats


def test_item_with_a_missing_sentence_is_counted_and_bounds_the_scores():
    rows = observed()
    lost = rows.filter(pl.col("status") != "ok")["item"].n_unique()
    found = computed(rows)["stereotype_score",]
    assert lost > 3 and found.missing.counts == {"refused": lost} and found.n == rows["item"].n_unique() - lost
    gone = pl.col("item").is_in(rows.filter(pl.col("status") != "ok")["item"].unique().implode())
    ends = []
    for best in LABELS[1], LABELS[0]:
        filled = pl.when(gone).then((pl.col("label") == best).cast(float)).otherwise("log_probability")
        ends.append(float(scores(rows.with_columns(log_probability=filled, status=pl.lit("ok")))["stereotype_score"]))
    assert (found.bound_low, found.bound_high) == pytest.approx(tuple(ends))


def test_intervals_leave_out_one_term_at_a_time():
    rows = observed()
    found = computed(rows, intervals="jackknife")
    for group, part in {(): rows, ("race",): rows.filter(bias_type="race")}.items():
        terms = part["target"].unique().to_list()
        left = [scores(part.filter(pl.col("target") != term)) for term in terms]
        for name, value in scores(part).items():
            spread = sum((float(own[name]) - float(value)) ** 2 for own in left)
            reach = stats.t.isf(0.025, len(terms) - 1) * np.sqrt((len(terms) - 1) / len(terms) * spread)
            ends = max(float(value) - reach, 0), min(float(value) + reach, 100)
            estimate = found[(name, *group)]
            assert (estimate.low, estimate.high) == pytest.approx(ends) and estimate.clusters == len(terms)
            assert (Caveat.FEW_CLUSTERS in estimate.caveats) == (len(terms) < 10)


def test_lean_of_terms_is_tested_by_flipping_whole_terms():
    rows = observed().filter(pl.col("bias_type") == "race")
    found = computed(rows)["stereotype_score",]
    means = [float(scores(rows.filter(target=term))["stereotype_score"]) - 50 for term in rows["target"].unique()]
    exact = stats.permutation_test(
        (np.array(means),), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    assert found.p == pytest.approx(exact.pvalue)


def test_row_that_stands_twice_or_of_another_label_is_refused():
    rows = observed()
    with raises_code(DataError, "data.duplicate"):
        computed(pl.concat([rows, rows.head(1)]))
    with raises_code(DataError, "data.unknown-value"):
        computed(rows.with_columns(label=pl.lit("other")))


def test_absent_sentence_is_missing():
    found = computed(observed().filter(~((pl.col("item") == "0-0") & (pl.col("label") == "unrelated"))))
    assert found["icat",].missing.counts["absent"] == 1
