"""Worst cases, against every answer the missing units might have given."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from prejudge.core.statistics.intervals import difference_bounds, mean_bounds, paired_bounds

NAN = float("nan")


def test_mean_bounds_cover_every_answer():
    means = [np.mean([4.0, 2.0, *rest]) for rest in product((1.0, 5.0), repeat=3)]
    assert mean_bounds(6.0, 2, 3, (1.0, 5.0)) == pytest.approx((min(means), max(means)))


def test_mean_without_missing_needs_no_limits():
    assert mean_bounds(6.0, 2, 0, None) == (3.0, 3.0)
    assert mean_bounds(6.0, 2, 1, None) == (None, None)


def test_difference_takes_the_ends_crosswise():
    assert difference_bounds((0.2, 0.6), (0.1, 0.3)) == pytest.approx((-0.1, 0.5))
    assert difference_bounds((None, None), (0.1, 0.3)) == (None, None)


def test_paired_bounds_cover_every_answer():
    first, second = [1.0, NAN, 0.0, NAN], [0.0, 1.0, NAN, NAN]
    found = []
    for a, b, c, d in product((0.0, 1.0), repeat=4):
        found.append(np.mean([1.0 - 0.0, a - 1.0, 0.0 - b, c - d]))
    assert paired_bounds(first, second, (0.0, 1.0)) == pytest.approx((min(found), max(found)))


def test_nothing_has_no_bounds():
    assert mean_bounds(0.0, 0, 0, (0.0, 1.0)) == (None, None)
    assert paired_bounds([], [], (0.0, 1.0)) == (None, None)
