"""The pigeonhole bootstrap, against a loop that draws rows and columns by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from prejudge.core.statistics.crossed import _totals, crossed_bootstrap
from prejudge.core.statistics.intervals import ratio
from prejudge.core.statistics.resampling import Resampling, bootstrap

PLAN = Resampling(resamples=1999)


def mean(totals):
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


def gap(totals):
    means = ratio(totals[..., 1], totals[..., 0])
    return (means[..., 0] - means[..., 1])[..., None]


def cells_of(values):
    """Return cells of one unit and one side; NaN is no answer."""
    there = ~np.isnan(values)
    return np.stack([there, np.where(there, values, 0.0)], axis=-1)[:, :, None, None].astype(float)


@pytest.fixture
def values():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(12, 1)) + rng.normal(0, 0.5, size=(1, 40)) + rng.normal(size=(12, 40))
    values[rng.random(values.shape) < 0.1] = np.nan
    return values


def test_totals_count_a_cell_as_often_as_row_times_column(values):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(3, size=(5, 12)) * 1.0, rng.integers(3, size=(5, 40)) * 1.0
    expected = np.einsum("bi,bj,ij->b", rows, columns, np.nan_to_num(values))
    for cells, *ways in ((cells_of(values), rows, columns), (cells_of(values.T), columns, rows)):
        assert _totals(cells, *ways)[:, 0, 0, 1] == pytest.approx(expected)


def test_interval_agrees_with_drawing_by_hand(values):
    low, high = crossed_bootstrap(cells_of(values), mean, PLAN)
    rng = np.random.default_rng(9)
    drawn = (values[rng.integers(12, size=12)][:, rng.integers(40, size=40)] for _ in range(1999))
    replicates = [np.nanmean(draw) for draw in drawn]
    middle, ends = np.nanmean(values), np.quantile(replicates, [0.025, 0.975])
    below, above = middle - ends[0], ends[1] - middle
    # The shape is that of the draws, the width that of the jackknife.
    assert (middle - low[0, 0]) / (high[0, 0] - middle) == pytest.approx(below / above, abs=0.1)
    narrow, wide = crossed_bootstrap(cells_of(values), mean, msgspec.structs.replace(PLAN, method="jackknife"))
    assert high[0, 0] - low[0, 0] == pytest.approx(wide[0, 0] - narrow[0, 0], rel=0.05)


def test_crossed_interval_is_wider_than_either_way_alone(values):
    cells = cells_of(values)
    low, high = crossed_bootstrap(cells, mean, PLAN)
    for way in (0, 1):
        one_low, one_high = bootstrap(cells.sum(axis=1 - way), mean, PLAN)
        assert high[0, 0] - low[0, 0] > one_high[0, 0] - one_low[0, 0]


def test_columns_of_two_groups_are_drawn_apart():
    rng = np.random.default_rng(0)
    cells = np.zeros((8, 30, 1, 2, 2))
    for side, own in ((0, slice(0, 10)), (1, slice(10, 30))):
        cells[:, own, 0, side] = np.stack(
            [np.ones((8, cells[:, own].shape[1])), rng.normal(side, 1, (8, cells[:, own].shape[1]))], axis=-1
        )
    low, high = crossed_bootstrap(cells, gap, PLAN)
    assert low[0, 0] < -1 < high[0, 0] < 0


@pytest.mark.parametrize("shape", [(1, 20), (20, 1)])
def test_one_row_or_column_has_no_interval(shape):
    values = np.random.default_rng(0).normal(size=shape)
    assert np.isnan(crossed_bootstrap(cells_of(values), mean, PLAN)).all()


def test_crossed_bootstrap_repeats_with_its_seed(values):
    one, other = (crossed_bootstrap(cells_of(values), mean, PLAN) for _ in range(2))
    assert np.array_equal(one, other)


def test_jackknife_of_rows_that_matter_alone_is_that_of_rows():
    rng = np.random.default_rng(4)
    cells = cells_of(rng.normal(size=(10, 1)) + 0.001 * rng.normal(size=(10, 200)))
    jackknife = Resampling(method="jackknife")
    both, rows = crossed_bootstrap(cells, mean, jackknife), bootstrap(cells.sum(axis=1), mean, jackknife)
    assert np.ravel(both) == pytest.approx(np.ravel(rows), rel=0.01)


def test_jackknife_without_effects_is_that_of_single_answers():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(60, 70))
    low, high = crossed_bootstrap(cells_of(values), mean, Resampling(method="jackknife"))
    assert high[0, 0] - low[0, 0] == pytest.approx(2 * 1.96 * values.std() / np.sqrt(values.size), rel=0.25)
