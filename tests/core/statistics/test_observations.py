"""Pairs: two sides in one row, and why one is missing."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.core.statistics.observations import missing_by_status
from prejudge.core.statistics.pivot import pair_up
from prejudge.testing import raises_code

SIDES = ("desirable", "undesirable")


def test_difference_is_first_minus_second(observed):
    pairs = pair_up(observed([{"difference": 1.5}]), SIDES, ["axis"])
    assert pairs.row(0, named=True) == {
        "pair": "p0",
        "axis": "height",
        "first": -28.5,
        "second": -30.0,
        "status": "ok",
        "difference": 1.5,
    }


@pytest.mark.parametrize("status", ["refused", "filtered", "unreadable", "failed"])
def test_one_missing_side_is_a_missing_pair(observed, status):
    pairs = pair_up(observed([{"difference": 1.5, "status": status}, {}]), SIDES, [])
    assert pairs["difference"].to_list() == [None, 0.0]
    assert missing_by_status(pairs) == {status: 1}


def test_absent_row_is_a_missing_pair(observed):
    pairs = pair_up(observed([{}]).head(1), SIDES, [])
    assert missing_by_status(pairs) == {"absent": 1}


@pytest.mark.parametrize("score", [None, float("nan"), float("-inf")])
def test_score_without_value_is_unreadable(observed, score):
    frame = observed([{}]).with_columns(log_probability=pl.lit(score, dtype=pl.Float64))
    assert missing_by_status(pair_up(frame, SIDES, [])) == {"unreadable": 1}


def test_rows_in_any_order_give_the_same_pairs(observed):
    frame = observed([{"difference": d} for d in (0.5, -1.0, 2.0)])
    turned = pair_up(frame.reverse(), SIDES, []).sort("pair")
    assert turned.equals(pair_up(frame, SIDES, []).sort("pair"))


def test_doubled_side_is_refused(observed):
    frame = observed([{}])
    with raises_code(DataError, "data.duplicate", "'p0'", "'desirable'"):
        pair_up(pl.concat([frame, frame.head(1)]), SIDES, [])


def test_unknown_side_is_refused(observed):
    with raises_code(DataError, "data.unknown-value", "'desirable'", "'more'"):
        pair_up(observed([{}]), ("more", "less"), [])


def test_absent_column_is_named(observed):
    with raises_code(DataError, "data.column-missing", "'face'", "pair, side"):
        pair_up(observed([{}]), SIDES, ["face"])
