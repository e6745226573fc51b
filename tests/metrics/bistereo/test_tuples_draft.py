"""Counts of drafts."""

from __future__ import annotations

import json

import polars as pl
import pytest

from prejudge.metrics.bistereo.tuples_draft import BIStereoTuplesDraft, TuplesDraftMetricOptions


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
