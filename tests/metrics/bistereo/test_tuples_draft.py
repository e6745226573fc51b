"""Counts of drafts, and the agreement of annotators on tuples."""

from __future__ import annotations

import json

import polars as pl
import pytest

from prejudge.core.statistics.cluster import Resampling
from prejudge.metrics.bistereo.tuples_agreement import tuple_agreement
from prejudge.metrics.bistereo.tuples_draft import BIStereoTuplesDraft, TuplesDraftMetricOptions

QUICK = Resampling(resamples=199)


def _row(term, sentiment, tuples, dropped=0, status="ok"):
    ok = status == "ok"
    return {
        "dimension": "height",
        "term": term,
        "gender": "women" if term == "girl" else "men",
        "sentiment": sentiment,
        "tuples": json.dumps(tuples) if ok else None,
        "drafted": len(tuples) if ok else None,
        "dropped": dropped if ok else None,
        "status": status,
        "reason": None if ok else "no tuple in the answer",
    }


@pytest.fixture
def drafts():
    return pl.DataFrame(
        [
            _row("girl", "positive", [("tall", "elegant")]),
            _row("girl", "negative", [("short", "weak"), ("tall", "odd")], dropped=1),
            _row("girl", "negative", [("short", "weak")]),
            _row("boy", "negative", [], status="unreadable"),
        ]
    )


def _computed(drafts):
    return BIStereoTuplesDraft().compute(drafts, TuplesDraftMetricOptions())


def test_a_tuple_counts_once(drafts):
    found = {tuple(e.group.values()): e for e in _computed(drafts) if e.metric == "drafted_tuples"}
    assert found["height", "women", "negative"].value == 2 and found[()].value == 3
    assert found[()].missing.counts == {"unreadable": 1}


def test_a_cell_without_an_answer_has_no_count(drafts):
    found = {tuple(e.group.values()): e for e in _computed(drafts) if e.metric == "drafted_tuples"}
    assert found["height", "men", "negative"].value is None


def test_lines_that_are_no_tuple_are_a_share(drafts):
    (found,) = (e for e in _computed(drafts) if e.metric == "dropped_lines")
    assert found.value == pytest.approx(20) and found.n == 5 and found.low < 20 < found.high


def test_conclusion_counts_the_tuples(drafts):
    assert BIStereoTuplesDraft().conclude(_computed(drafts)).startswith("3 distinct tuples")


def _ratings(*rows):
    return pl.DataFrame(rows, schema=["tuple", "annotator", "stereotype"], orient="row")


def test_agreement_counts_annotators_and_thresholds():
    rows = [(f"t{n}", who, int(n < most)) for n in range(8) for who, most in (("ana", 4), ("bo", 5), ("cy", 2))]
    found = tuple_agreement(_ratings(*rows), QUICK)
    assert found.yes == {"ana": (4, 8), "bo": (5, 8), "cy": (2, 8)} and found.thresholds == {1: 5, 2: 4, 3: 2}
    said = "\n".join(found.lines())
    assert f"{found.alpha.alpha:.3f} (nominal, 95% interval" in said and "at least 2: 4 tuples" in said


def test_undefined_agreement_is_said():
    found = tuple_agreement(_ratings(("t", "ana", 1), ("t", "bo", 1), ("u", None, None)), QUICK)
    assert found.alpha.alpha is None and "undefined" in next(found.lines()) and found.alpha.unrated == 1
