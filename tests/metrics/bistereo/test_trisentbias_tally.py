"""What is counted in a pair, and the statistics of the sums."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from prejudge.core.statistics.effects import cell_statistics, contrast_statistics
from prejudge.core.statistics.observations import pair_up
from prejudge.metrics.bistereo.trisentbias_tally import CELL, npll_difference, signed, tally

SIDES = ("desirable", "undesirable")


def tallied(observed, pairs, cluster="template", thresholds=(0.02,)):
    found = tally(pair_up(observed(pairs), SIDES, [*CELL, *({cluster} - set(CELL))]), [cluster], thresholds)
    assert found.sums.shape[1] == 1
    return msgspec.structs.replace(found, sums=found.sums[:, 0])


def naive(desirable, undesirable):
    return (np.exp(desirable) - np.exp(undesirable)) / (np.exp(desirable) + np.exp(undesirable))


@pytest.mark.parametrize(("desirable", "undesirable"), [(-3.0, -3.5), (-20.0, -19.0), (-1.0, -1.0), (-5.0, -30.0)])
def test_npll_is_the_papers_formula(desirable, undesirable):
    assert npll_difference(np.array(desirable - undesirable)) == pytest.approx(naive(desirable, undesirable))


def test_npll_holds_where_the_formula_underflows():
    with np.errstate(invalid="ignore"):
        assert np.isnan(naive(np.float64(-2000.0), np.float64(-2001.0)))
    assert npll_difference(np.array(-2000.0 - -2001.0)) == pytest.approx(naive(0.0, -1.0))


def test_threshold_itself_is_within(observed):
    at = 2 * np.arctanh(0.5)
    found = tallied(observed, [{"difference": d} for d in (0.99 * at, 1.01 * at, -1.01 * at, -5.0)], thresholds=(0.5,))
    assert found.sums[0, 0, [0, 3, 4]].tolist() == [4, 1, 2]


def test_zero_threshold_keeps_ties_within(observed):
    found = tallied(observed, [{"difference": d} for d in (0.0, 1.0, -1.0)], thresholds=(0.0,))
    assert found.sums[0, 0, 3:].tolist() == [1, 1]


def test_cells_keep_the_order_of_the_study(observed):
    cells = [("b", "men", "neutral"), ("b", "women", "negative"), ("a", "men", "positive"), ("b", "men", "positive")]
    found = tallied(observed, [dict(zip(CELL, cell, strict=True)) for cell in cells])
    assert [tuple(cell.values()) for cell in found.cells] == [cells[3], cells[0], cells[1], cells[2]]


def test_missing_pairs_are_counted_and_not_summed(observed):
    found = tallied(observed, [{"difference": 1.0}, {"status": "refused"}, {"status": "failed"}])
    assert found.missing == ({"failed": 1, "refused": 1},)
    assert found.sums[:, 0, 0].tolist() == [1]


def test_cell_without_readable_pairs_stays(observed):
    found = tallied(observed, [{"status": "refused"}])
    assert (len(found.cells), found.sums.shape) == (1, (0, 1, 5))


def test_pairs_without_cluster_form_one(observed):
    found = tallied(observed, [{"attribute": None}, {"attribute": None}, {"attribute": "kind"}], cluster="attribute")
    assert sorted(found.sums[:, 0, 0]) == [1, 2]


def test_contrasts_need_both_contexts(observed):
    cells = [("a", "men", "positive"), ("a", "men", "negative"), ("a", "women", "positive"), ("a", "women", "neutral")]
    found = tallied(observed, [dict(zip(CELL, cell, strict=True)) for cell in cells])
    assert found.contrasts() == [({"axis": "a", "gender": "men"}, 0, 1)]


def test_cell_statistics_by_hand():
    mean, effect, z1, z2, z3, net = cell_statistics(np.array([[[4.0, 6.0, 14.0, 2.0, 1.0]]]))[0]
    assert (mean, z1, z2, z3, net) == (1.5, 0.25, 0.5, 0.25, 0.25)
    assert effect == pytest.approx(1.5 / np.sqrt((14 - 4 * 1.5**2) / 3))


def test_cell_statistics_of_nothing_are_nan():
    assert np.isnan(cell_statistics(np.zeros((1, 1, 5)))).all()


def test_effect_without_spread_is_nan():
    values = np.full(3, 0.1)
    totals = np.array([[[3.0, values.sum(), (values**2).sum(), 3.0, 0.0]]])
    assert np.isnan(cell_statistics(totals)[0, 1])


def test_contrast_statistics_by_hand():
    sides = np.array([[[10.0, 10.0, 20.0, 8.0, 1.0], [20.0, -10.0, 20.0, 4.0, 12.0]]])
    gap, effect, favouritism, discrimination, angle, _ = contrast_statistics(sides)[0]
    assert (gap, favouritism, discrimination) == pytest.approx((1.5, 0.6, 0.5))
    assert effect == pytest.approx(1.5 / np.sqrt((10 + 15) / 28))
    assert angle == pytest.approx(2 * np.arcsin(np.sqrt(0.8)) - 2 * np.arcsin(np.sqrt(0.2)))


def test_signed_columns_are_count_sum_and_nets():
    assert signed(np.array([9.0, 2.0, 5.0, 4.0, 1.0, 3.0, 0.0])).tolist() == [9, 2, 3, 3]
