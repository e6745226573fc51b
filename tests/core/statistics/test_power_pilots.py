"""What a pilot says of a crossed design: against the analysis of variance, and where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.core.statistics.power import crossed_pilot, variance_components


def grid(rows, columns, shares, seed=0, sides=1):
    """Return values, rows, columns and sides; variances of rows by side, of columns and of cells are `shares`."""
    rng = np.random.default_rng(seed)
    row = np.sqrt(shares[0]) * rng.normal(size=(rows, 1, sides))
    column = np.sqrt(shares[1]) * rng.normal(size=(1, columns, sides))
    values = row + column + np.sqrt(shares[2]) * rng.normal(size=(rows, columns, sides))
    place = np.indices(values.shape).reshape(3, -1)
    return values.ravel(), place[0], place[1] * sides + place[2], place[2]


def test_components_of_a_full_table_are_those_of_the_analysis_of_variance():
    api = pytest.importorskip("statsmodels.formula.api")
    anova = pytest.importorskip("statsmodels.stats.anova")
    pandas = pytest.importorskip("pandas")
    y, row, column, _ = grid(7, 9, (0.3, 0.2, 0.5))
    fitted = api.ols("y ~ C(row) + C(column)", pandas.DataFrame({"y": y, "row": row, "column": column})).fit()
    table = anova.anova_lm(fitted)
    squares = table["sum_sq"] / table["df"]
    rest = squares["Residual"]
    expected = [(squares["C(row)"] - rest) / 9, (squares["C(column)"] - rest) / 7, rest]
    assert variance_components(y, [row, column]) == pytest.approx(expected)


def test_components_are_unbiased_whatever_cells_are_missing():
    found = []
    for seed in range(400):
        y, row, column, _ = grid(8, 12, (0.3, 0.2, 0.5), seed)
        # Whole corners are absent, so rows and columns are of very different size.
        keep = (row + column < 12) | (np.random.default_rng(seed).random(len(y)) < 0.2)
        found.append(variance_components(y[keep], [row[keep], column[keep]]))
    assert np.mean(found, axis=0) == pytest.approx([0.3, 0.2, 0.5], abs=0.03)


def test_pilot_of_a_large_study_finds_spread_and_shares():
    y, row, column, side = grid(300, 400, (0.2, 0.1, 0.7))
    y[::7] = np.nan
    found = crossed_pilot(2 * y + 5, [row, column], side)
    assert found.spread == pytest.approx(2, rel=0.05)
    assert found.shares == pytest.approx((0.2, 0.1), abs=0.03)


def test_what_a_row_adds_to_both_sides_cancels():
    y, row, column, side = grid(200, 100, (0.1, 0.2, 0.7), sides=2)
    shared = 3 * np.random.default_rng(5).normal(size=200)
    plain, moved = (crossed_pilot(values, [row, column], side) for values in (y, y + shared[row]))
    assert moved.shares[0] == pytest.approx(plain.shares[0], abs=0.05)
    assert moved.spread == pytest.approx(1, abs=0.05)


def test_sides_of_different_mean_have_no_spread_of_that():
    y, row, column, side = grid(40, 60, (0.1, 0.2, 0.7), sides=2)
    plain, apart = (crossed_pilot(values, [row, column], side) for values in (y, y + 50 * side))
    assert apart.spread == pytest.approx(plain.spread)


def test_share_below_zero_is_zero():
    y, row, column, side = grid(6, 6, (0.0, 0.0, 1.0), seed=3)
    found = crossed_pilot(y - np.bincount(row, y)[row] / 6, [row, column], side)
    assert found.shares[0] == 0


def test_several_answers_of_a_cell_count_as_their_mean():
    y, row, column, side = grid(10, 10, (0.2, 0.2, 0.6))
    noise = np.random.default_rng(0).normal(size=len(y))
    once = crossed_pilot(y, [row, column], side)
    facets, sides = [np.tile(row, 2), np.tile(column, 2)], np.tile(side, 2)
    twice = crossed_pilot(np.tile(y, 2), facets, sides)
    assert twice == once
    noisy = crossed_pilot(np.concatenate([y + noise, y - noise]), facets, sides)
    assert noisy.spread == pytest.approx(once.spread)


def test_a_single_column_tells_the_spread_alone():
    found = crossed_pilot(np.array([1.0, 2.0, 4.0]), [np.arange(3), np.zeros(3, int)], np.zeros(3, int))
    assert found.spread == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert found.shares is None


def test_columns_within_rows_are_not_told_from_rows():
    """Each column has one row only: nothing says what is the row's and what the column's."""
    found = crossed_pilot(np.arange(6.0), [np.arange(6) // 2, np.arange(6)], np.zeros(6, int))
    assert found.shares is None


@pytest.mark.parametrize("values", [[np.nan, np.nan], [1.0, np.nan], [2.0, 2.0]])
def test_no_answers_or_no_spread_is_undefined(values):
    zeros = np.zeros(2, int)
    assert crossed_pilot(np.array(values), [np.arange(2), zeros], zeros).spread is None


def test_components_of_three_facets_are_unbiased_whatever_cells_are_missing():
    found, truth = [], (0.3, 0.2, 0.1, 0.5)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        facets = list(np.indices((8, 6, 5)).reshape(3, -1))
        added = [np.sqrt(share) * rng.normal(size=8)[own] for share, own in zip(truth, facets, strict=False)]
        y = sum(added) + np.sqrt(truth[3]) * rng.normal(size=240)
        keep = (facets[0] + facets[1] < 8) | (rng.random(240) < 0.2)
        found.append(variance_components(y[keep], [own[keep] for own in facets]))
    assert np.mean(found, axis=0) == pytest.approx(truth, abs=0.03)
