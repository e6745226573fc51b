import numpy as np
import polars as pl
import pytest
from krippendorff import alpha as reference

from prejudge.core.contracts.errors import DataError
from prejudge.core.statistics.ranks import agreement, rating_table
from prejudge.core.statistics.resampling import Resampling
from prejudge.testing import raises_code

QUICK = Resampling(resamples=400)
_ = np.nan
# Krippendorff (2011), part C: four observers, twelve units, with missing ratings.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T


@pytest.mark.parametrize(("scale", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_published_one(scale, expected):
    found = agreement(PUBLISHED, scale, QUICK)
    assert found.alpha == pytest.approx(expected, abs=5e-4)
    assert found.low < found.alpha < found.high


def test_alpha_of_two_observers_and_two_values_is_the_published_one():
    # Krippendorff (2011), part A: ten units, alpha 0.095.
    ratings = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]).T
    assert agreement(ratings, "nominal", QUICK).alpha == pytest.approx(0.095, abs=5e-4)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_equals_the_reference_package(scale):
    rng = np.random.default_rng(3)
    ratings = rng.integers(1, 6, size=(40, 6)) + rng.integers(0, 4, size=(40, 1)).astype(float)
    ratings[rng.random(ratings.shape) < 0.4] = np.nan
    expected = reference(reliability_data=ratings.T, level_of_measurement=scale)
    assert agreement(ratings, scale, QUICK).alpha == pytest.approx(expected, abs=1e-12)


def test_interval_scale_keeps_digits_far_from_zero():
    shifted = agreement(PUBLISHED + 1e9, "interval", QUICK).alpha
    assert shifted == pytest.approx(agreement(PUBLISHED, "interval", QUICK).alpha, abs=1e-9)


def test_units_with_one_rating_are_counted_and_left_out():
    found = agreement(PUBLISHED, "nominal", QUICK)
    assert (found.units, found.ratings, found.raters, found.single, found.unrated) == (11, 40, 4, 1, 0)


@pytest.mark.parametrize("ratings", [[[1, 1], [1, 1]], [[1, _], [_, 2]], [[_, _]]])
def test_undefined_alpha_is_missing(ratings):
    found = agreement(np.array(ratings, dtype=float), "ordinal", QUICK)
    assert (found.alpha, found.low, found.high) == (None, None, None)


def test_interval_holds_its_level():
    rng, hits = np.random.default_rng(5), 0
    # Two raters who agree by chance alone: alpha is 0.
    for seed in range(60):
        ratings = rng.integers(0, 3, size=(60, 2)).astype(float)
        found = agreement(ratings, "nominal", Resampling(resamples=300, seed=seed))
        hits += found.low <= 0 <= found.high
    assert 53 <= hits < 60


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(7)
    own = np.repeat(rng.integers(0, 2, size=(12, 3)).astype(float), 5, axis=0)
    alone = agreement(own, "nominal", QUICK)
    together = agreement(own, "nominal", QUICK, clusters=[unit // 5 for unit in range(60)])
    assert together.alpha == alone.alpha
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_long_rows_become_a_table_in_the_given_order():
    rows = pl.DataFrame({"u": ["a", "a", "b"], "r": ["x", "y", "y"], "v": ["high", "low", None]})
    table = rating_table(rows, ("u", "r", "v"), order=["low", "high"])
    np.testing.assert_array_equal(table, [[1, 0], [_, _]])


def test_a_unit_that_nobody_rated_stays_a_row():
    rows = pl.DataFrame({"u": ["b", "a", "a"], "r": [None, "x", "y"], "v": [None, 1, 2]})
    np.testing.assert_array_equal(rating_table(rows, ("u", "r", "v")), [[1, 2], [_, _]])


def test_a_unit_rated_twice_by_one_rater_is_refused():
    rows = pl.DataFrame({"u": ["a", "a"], "r": ["x", "x"], "v": [1, 2]})
    with raises_code(DataError, "data.duplicate", "'a'"):
        rating_table(rows, ("u", "r", "v"))


def test_an_unknown_rating_is_refused():
    rows = pl.DataFrame({"u": ["a"], "r": ["x"], "v": ["hihg"]})
    with raises_code(DataError, "data.unknown-value", "'hihg'"):
        rating_table(rows, ("u", "r", "v"), order=["low", "high"])
