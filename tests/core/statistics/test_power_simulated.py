"""Simulated studies of known power: the smallest detectable effect is found as often as it is said to be."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "simulations_power.py"


@pytest.fixture(scope="module")
def simulations():
    spec = importlib.util.spec_from_file_location("simulations_power", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulations_power"] = module
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
    yield module
    del sys.modules["simulations_power"]


@pytest.mark.parametrize(
    ("sizes", "more"),
    [
        ((10, 20, 0.2, 0.1), {}),
        pytest.param((20, 40, 0.1, 0.3), {"missing": 0.3}, marks=pytest.mark.soak),
        pytest.param((10, 20, 0.1, 0.2), {"groups": 2}, marks=pytest.mark.soak),
    ],
)
def test_crossed_designs_find_what_they_are_said_to_find(simulations, sizes, more):
    found = simulations.crossed_power(simulations.Crossing(*sizes, **more), 600)
    assert found["crossed jackknife"] == pytest.approx(0.8, abs=0.05)
    assert found["effect by pilots, median"] == pytest.approx(found["effect"], rel=0.08)


@pytest.mark.parametrize(
    "world", [{"clusters": 12, "size": 6, "icc": 0.2}, pytest.param({"clusters": 15}, marks=pytest.mark.soak)]
)
def test_rank_tests_of_clusters_find_what_they_are_said_to_find(simulations, world):
    found = simulations.rank_power(simulations.Ranking(**world), 150, resamples=199)
    rates = [found[name] for name in ("Wilcoxon", "Mann-Whitney", "Kruskal-Wallis")]
    assert rates == pytest.approx([0.8] * 3, abs=0.1)  # three standard errors of 150 studies


def test_an_effect_that_no_test_finds_has_no_power(simulations):
    found = simulations.rank_power(simulations.Ranking(4), 3)
    assert (found["rank-biserial"], found["Wilcoxon"]) == (None, None)
    assert np.isfinite(found["Cohen's f"])
