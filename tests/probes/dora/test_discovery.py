"""Associations planted among noise are discovered, and where nothing is planted hardly anything is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from prejudge.probes.dora.salience import METHODS


@pytest.fixture(scope="module")
def discovered():
    """Return the function of the benchmark that asks one model, and says what is planted in it."""
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "calibrate_dora.py"
    spec = importlib.util.spec_from_file_location("calibrate_dora", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibrate_dora"] = module
    spec.loader.exec_module(module)
    yield module.discovered
    del sys.modules["calibrate_dora"]


@pytest.fixture(scope="module")
def strong(discovered):
    """Return what six models with strong associations say, and what is planted in each."""
    return [discovered(3.0, seed) for seed in range(6)]


@pytest.fixture(scope="module")
def silent(discovered):
    """Return what forty models say in which nothing is planted."""
    return [discovered(0.0, seed)[0] for seed in range(40)]


def kept(pairs, method):
    return set(pairs.filter(f"salient_{METHODS[method]}").select("descriptor", "word").rows())


@pytest.mark.parametrize("method", ["exact", "fisher", "log-odds"])
def test_planted_associations_are_discovered(strong, method):
    found = [(kept(pairs, method), truth) for pairs, truth in strong]
    hits, said, planted = (sum(n) for n in zip(*((len(f & t), len(f), len(t)) for f, t in found), strict=True))
    assert planted > 40 and hits / planted > (0.8 if method == "fisher" else 0.7)
    # Log-odds take the noise of a prompt for the group's: 80 of the 89 that they find are planted.
    assert hits / said > (0.85 if method == "log-odds" else 0.9)


def test_discovery_grows_with_what_is_planted(discovered):
    found = []
    for strength in (0.5, 2.5, 5.0):
        pairs, truth = discovered(strength, 1)
        found.append(len(kept(pairs, "exact") & truth))
    assert found[0] < found[1] < found[2]


def test_without_planted_associations_hardly_any_is_discovered_for_other_wordings(silent):
    # Every discovery is false here, so the false-discovery rate is the share of models with any: nominal 5 %. Of 40
    # models at most 5 have one with a chance of 97 % if the rate is that high. Each prompt has noise of its own, which
    # the methods that count answers take for the group.
    found = {method: sum(bool(kept(pairs, method)) for pairs in silent) for method in ("exact", "fisher", "log-odds")}
    assert found["exact"] <= 5 < found["fisher"]
