"""Means and differences of means in standard deviations, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.core.statistics.effects import cell_statistics, contrast_statistics


def test_mean_and_its_size_by_hand():
    mean, effect = cell_statistics(np.array([[[4.0, 6.0, 14.0]]]))[0]
    assert mean == 1.5 and effect == pytest.approx(1.5 / np.sqrt((14 - 4 * 1.5**2) / 3))


def test_nothing_has_no_mean():
    assert np.isnan(cell_statistics(np.zeros((1, 1, 3)))).all()


def test_effect_without_spread_is_nan():
    values = np.full(3, 0.1)
    assert np.isnan(cell_statistics(np.array([[[3.0, values.sum(), (values**2).sum()]]]))[0, 1])


def test_difference_and_cohens_d_by_hand():
    sides = np.array([[[10.0, 10.0, 20.0], [20.0, -10.0, 20.0]]])
    gap, effect = contrast_statistics(sides)[0]
    assert gap == pytest.approx(1.5) and effect == pytest.approx(1.5 / np.sqrt((10 + 15) / 28))
