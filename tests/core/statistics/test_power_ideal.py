"""The script of docs/calibration-power.md: the ideal test, and effects that are found, each computed another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ...benchmark_scripts import benchmark_script

POWER = benchmark_script("power")


def group(rng, pairs):
    codes = np.stack([rng.integers(0, levels, pairs) for levels in (4, 6, 5)], axis=-1)
    return POWER.Group(codes, np.arange(pairs) % 2)


@pytest.mark.parametrize("spread", [0.1, 0.7])
def test_ideal_error_is_that_of_generalised_least_squares(spread):
    own = group(np.random.default_rng(1), 40)
    covariance = POWER.NOISE**2 * np.eye(40)
    for column in own.codes.T:
        alike = (column[:, None] == column) & (own.sides[:, None] == own.sides)
        covariance += spread**2 * alike
    design = np.stack([own.sides == 0, own.sides == 1], axis=-1).astype(float)
    inverse = np.linalg.inv(design.T @ np.linalg.inv(covariance) @ design)
    contrast = np.array([1.0, -1.0])
    assert own.ideal(spread) == pytest.approx(np.sqrt(contrast @ inverse @ contrast), rel=1e-10)


def test_smallest_effect_is_that_of_the_noncentral_t_distribution():
    rng = np.random.default_rng(2)
    freedom = np.full((200_000, 1), 9.0)
    value = rng.normal(0, 2.0, freedom.shape)
    drawn = POWER.Drawn(value, 4.0 * rng.chisquare(9, freedom.shape) / 9, freedom)
    effect = POWER.smallest(drawn)
    reach = stats.t.isf(0.025, 9)
    power = stats.nct.sf(reach, 9, effect / 2) + stats.nct.cdf(-reach, 9, effect / 2)
    assert power == pytest.approx(0.8, abs=0.005)


def test_fair_models_share_preferences_only_where_they_should():
    groups = [group(np.random.default_rng(3), 400)] * 2
    for shared in (False, True):
        value = POWER.draw(groups, (0.8, 0.8, 0.8), 150, shared=shared).value
        assert (abs(np.corrcoef(value.T)[0, 1]) > 0.8) == shared
