"""What is counted in a pair, and what becomes of pairs and cells that lack something."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.metrics.bistereo.trisentbias import CELL, TriSentBias, TriSentBiasOptions, npll_difference


def computed(observed, pairs, **options):
    return TriSentBias().compute(observed(pairs), TriSentBiasOptions(over="template", resamples=99, **options))


def naive(desirable, undesirable):
    return (np.exp(desirable) - np.exp(undesirable)) / (np.exp(desirable) + np.exp(undesirable))


@pytest.mark.parametrize(("desirable", "undesirable"), [(-3.0, -3.5), (-20.0, -19.0), (-1.0, -1.0), (-5.0, -30.0)])
def test_npll_is_the_papers_formula(desirable, undesirable):
    assert npll_difference(np.array(desirable - undesirable)) == pytest.approx(naive(desirable, undesirable))


def test_npll_holds_where_the_formula_underflows():
    with np.errstate(invalid="ignore"):
        assert np.isnan(naive(np.float64(-2000.0), np.float64(-2001.0)))
    assert npll_difference(np.array(-2000.0 - -2001.0)) == pytest.approx(naive(0.0, -1.0))


@pytest.mark.parametrize(
    ("threshold", "differences", "shares"),
    [
        (0.5, [2 * np.arctanh(0.5) * x for x in (0.99, 1.01, -1.01)] + [-5.0], [25.0, 25.0, 50.0]),
        (0.0, [0.0, 1.0, -1.0], [100 / 3] * 3),
    ],
)
def test_threshold_itself_is_within(observed, threshold, differences, shares):
    pairs = [{"difference": d} for d in differences]
    found = computed(observed, pairs, thresholds=(threshold,), threshold_main=threshold)
    assert [e.value for e in found if e.metric in ("z1", "z2", "z3")] == pytest.approx(shares)


def test_cells_keep_the_order_of_the_study(observed):
    cells = [("b", "men", "neutral"), ("b", "women", "negative"), ("a", "men", "positive"), ("b", "men", "positive")]
    found = computed(observed, [dict(zip(CELL, cell, strict=True)) for cell in cells])
    groups = [tuple(e.group.values()) for e in found if e.metric == "log_odds_difference"]
    assert groups == [cells[3], cells[0], cells[1], cells[2]]


def test_missing_pairs_are_counted_and_not_summed(observed):
    found = computed(observed, [{"difference": 1.0}, {"status": "refused"}, {"status": "failed"}])
    (mean,) = (e for e in found if e.metric == "log_odds_difference")
    assert (mean.value, mean.n, mean.missing.counts) == (1.0, 1, {"failed": 1, "refused": 1})


def test_pairs_without_cluster_form_one(observed):
    pairs = [{"attribute": word, "difference": d} for word, d in ((None, 1.0), (None, 2.0), ("kind", 4.0))]
    found = TriSentBias().compute(observed(pairs), TriSentBiasOptions(over="attribute", resamples=99))
    (mean,) = (e for e in found if e.metric == "log_odds_difference")
    assert (mean.clusters, mean.n) == (2, 3)


def test_contrasts_need_both_contexts(observed):
    cells = [("a", "men", "positive"), ("a", "men", "negative"), ("a", "women", "positive"), ("a", "women", "neutral")]
    found = computed(observed, [dict(zip(CELL, cell, strict=True)) for cell in cells])
    assert [e.group for e in found if e.metric == "favouritism_log_odds"] == [{"axis": "a", "gender": "men"}]
