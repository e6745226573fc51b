"""Kinds of unreadable answers."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.core.statistics.observations import unreadable_kinds, unreadable_kinds_by

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
    found = unreadable_kinds_by(FRAME, "model", 0.95)
    rows = [(e.group["kind"], e.group["model"], e.n) for e in found]
    assert rows == [("no label", "x", 2), ("no label", "y", 3), ("no reason", "y", 3)]
    assert [e.value for e in found] == pytest.approx([50.0, 100 / 3, 100 / 3])


def test_frame_without_reasons_has_no_kinds():
    assert unreadable_kinds(FRAME.drop("reason"), 0.95) == []
