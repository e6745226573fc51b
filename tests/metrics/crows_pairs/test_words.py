"""Fair models that prefer single words: pairs that share a word are no independent evidence of a stereotype."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from prejudge.metrics.crows_pairs.metric import CrowsPairs, CrowsPairsOptions
from prejudge.probes.crows_pairs.probe import CrowsOptions
from prejudge.probes.crows_pairs.probe import CrowsPairs as Probe

METRIC = CrowsPairs()
KINDS = ("race-color", "gender", "age")
COMMON = (("black", "white"), ("poor", "rich"), ("he", "she"), ("women", "men"), ("old", "young"))
HEADER = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of the shape of the published one: many words are rare, and a third of the pairs differ by few words."""
    path = tmp_path_factory.mktemp("crows") / "pairs.csv"
    common, rare = itertools.cycle(COMMON), itertools.combinations([f"group{number}" for number in range(60)], 2)
    rows = [HEADER]
    for number in range(900):
        more, less = next(rare) if number % 3 else next(common)
        sentences = [f"Story {number} is about {word} people." for word in (more, less)]
        rows.append((*sentences, "stereo", KINDS[number % len(KINDS)]))
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture(scope="module")
def published(shared_data):
    return shared_data / "crows_pairs" / "crows_pairs_anonymized.csv"


class Fair:
    """A model without stereotypes that prefers each word by a draw of its own, and each pair by another."""

    def __init__(self, path):
        design = Probe().design(CrowsOptions(data=str(path)))
        (stage,) = Probe().stages(CrowsOptions(data=str(path)))
        pairs = design.record().join(pl.DataFrame([dict(trial.factors) for trial in stage.trials({})]))
        self.frame = pairs.with_columns(status=pl.lit("ok"))
        rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
        words = [[Counter(re.findall(r"[\w'-]+|[^\w\s]", row[side].lower())) for side in HEADER[:2]] for row in rows]
        names = {word: place for place, word in enumerate(sorted({w for pair in words for own in pair for w in own}))}
        self.differing = np.zeros((len(rows), len(names)))
        for number, (more, less) in enumerate(words):
            for word in more | less:
                self.differing[number, names[word]] = more[word] - less[word]

    def observations(self, spread, rng):
        pairs, words = self.differing.shape
        more = self.differing @ rng.normal(0, spread, words) + rng.normal(0, 1, pairs)
        sign = pl.when(pl.col("side") == "more").then(0.5).otherwise(-0.5)
        difference = pl.Series(more[self.frame["pair"].cast(pl.Int64).to_numpy()])
        return self.frame.with_columns(log_probability=sign * difference - 40)


def false_findings(path, spread, studies, **options):
    """Return the share of studies with a finding, by measure of the whole, and in any type of bias."""
    model, rng = Fair(path), np.random.default_rng(1)
    settings = CrowsPairsOptions(resamples=199, **options)
    counts = Counter()
    for _ in range(studies):
        shown = {
            (e.metric, *e.group)
            for e in METRIC.compute(model.observations(spread, rng), settings)
            if e.p is not None and e.p_adjusted < 0.05
        }
        counts.update(shown)
    return {name: counts[name] for name in FINDINGS}


FINDINGS = (("metric_score",), ("log_odds_difference",), ("metric_score", "bias_type"))


def test_word_preferences_are_no_stereotypes(table):
    most = binom.ppf(0.999, 40, 0.05)
    counts = false_findings(table, 0.5, 40)
    assert max(counts.values()) <= most, counts


def test_pairs_taken_as_independent_find_stereotypes_in_words(table):
    # The opponent is one: where no word is known, most of these fair models are found biased.
    assert false_findings(table, 0.5, 40, over="pair")["metric_score",] > 12


@pytest.mark.soak
@pytest.mark.parametrize("spread", [0.3, 0.5, 1.0])
def test_word_preferences_are_no_stereotypes_in_published_pairs(published, spread):
    counts = false_findings(published, spread, 300)
    assert max(counts.values()) <= binom.ppf(0.999, 300, 0.05), counts


def test_unknown_words_leave_pairs_independent():
    rows = [("0", "more", -1.0), ("0", "less", -2.0), ("1", "more", -1.0), ("1", "less", -3.0)]
    frame = pl.DataFrame(rows, schema=["pair", "side", "log_probability"], orient="row").with_columns(
        status=pl.lit("ok"), direction=pl.lit("stereo"), bias_type=pl.lit("age")
    )
    options = CrowsPairsOptions(resamples=99, over=("differing_word",))
    estimates = METRIC.compute(frame, options)
    assert {e.facts["over"] for e in estimates if e.metric == "metric_score"} == {"pair"}
    assert "Every pair counts as independent" in METRIC.conclude(estimates)


def test_known_words_are_named_in_the_conclusion(table):
    estimates = METRIC.compute(Fair(table).observations(0.5, np.random.default_rng(0)), CrowsPairsOptions(resamples=99))
    score = next(e for e in estimates if e.metric == "metric_score" and not e.group)
    assert score.facts["over"] == "differing_word"
    assert score.clusters < 65
    assert METRIC.conclude(estimates).startswith("For differing words like these: ")
