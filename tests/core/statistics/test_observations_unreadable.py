"""Kinds of unreadable answers."""

from __future__ import annotations

import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.estimates import Caveat
from prejudge.core.statistics.observations import unreadable_by, unreadable_kinds

FRAME = pl.DataFrame(
    {
        "status": ["ok", "unreadable", "unreadable", "unreadable", "refused"],
        "reason": [None, "no label", "no label", None, "declined"],
        "model": ["x", "x", "y", "y", "y"],
    }
)


def test_kinds_are_shares_of_all_answers_the_most_frequent_first():
    found = unreadable_kinds(FRAME, 0.95)
    assert [(e.group["kind"], e.value, e.n) for e in found] == [("no label", 40.0, 5), ("no reason", 20.0, 5)]


def test_kinds_by_a_factor_are_shares_of_its_answers():
    found = [e for e in unreadable_by(FRAME, "model", 0.95) if "kind" in e.group]
    rows = [(e.group["kind"], e.group["model"], e.n) for e in found]
    assert rows == [("no label", "x", 2), ("no label", "y", 3), ("no reason", "y", 3)]
    assert [e.value for e in found] == pytest.approx([50.0, 100 / 3, 100 / 3])


def test_frame_without_reasons_has_no_kinds():
    assert unreadable_kinds(FRAME.drop("reason"), 0.95) == []


def test_shares_by_a_factor_are_given_also_where_nothing_is_unreadable():
    found = unreadable_by(FRAME.with_columns(status=pl.lit("ok")), "model", 0.95)
    assert [(e.group, e.value, e.n) for e in found] == [
        ({}, 0.0, 5),
        ({"model": "x"}, 0.0, 2),
        ({"model": "y"}, 0.0, 3),
    ]
    assert found[0].p is None and not found[0].caveats


@pytest.mark.parametrize(("lost", "uneven"), [((10, 12), False), ((10, 40), True)])
def test_shares_that_differ_have_a_caveat(lost, uneven):
    frame = pl.DataFrame(
        {
            "status": [s for n in lost for s in ["unreadable"] * n + ["ok"] * (200 - n)],
            "skin": ["fair"] * 200 + ["dark"] * 200,
        }
    )
    whole, fair, dark = unreadable_by(frame, "skin", 0.95)
    expected = stats.chi2_contingency([[n, 200 - n] for n in lost], correction=False).pvalue
    assert whole.p == pytest.approx(expected, rel=1e-12)
    assert (Caveat.UNEVEN_MISSING in whole.caveats) is uneven
    assert [fair.value, dark.value] == [n / 2 for n in lost]
