"""Simulated studies with a known truth: nominal coverage, nominal false positives, power that grows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "calibrate.py"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("calibrate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibrate"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["calibrate"]


@pytest.fixture(scope="module")
def rates(calibration):
    """Return rates by clusters and effect; each within 0.025 of the truth at three standard errors."""

    def of(**design):
        return calibration.calibrate(calibration.Design(**design), studies=700, resamples=399)

    return of


@pytest.mark.parametrize("clusters", [7, 30])
def test_intervals_cover_at_their_level(rates, clusters):
    found = rates(clusters=clusters)
    for coverage in (found.cover_log_odds, found.cover_favouritism_log_odds, found.cover_favouritism):
        assert 0.92 < coverage < 0.98


@pytest.mark.parametrize("clusters", [7, 30])
def test_cluster_tests_keep_their_level(rates, clusters):
    found = rates(clusters=clusters)
    assert found.flip < 0.075
    assert found.swap < 0.075


def test_pair_binomial_cries_wolf_on_clusters(rates):
    assert rates(spread=1.0).binomial > 0.2
    assert rates(spread=0.0).binomial < 0.075


def test_power_rises_with_the_effect(rates):
    powers = [rates(clusters=30, effect=effect).swap for effect in (0.0, 0.1, 0.2, 0.4)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.95


def test_planted_effect_is_covered(rates):
    assert 0.92 < rates(clusters=30, effect=0.4).cover_favouritism_log_odds < 0.98
