"""The studies that are calibrated under leans: every one is drawn and measured, as `simulated` would answer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def calibrate():
    sys.path.insert(0, str(FOLDER))
    try:
        import calibrate_leans

        yield calibrate_leans
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("calibrate_leans", "leaning"):
            sys.modules.pop(name, None)


def test_every_study_is_drawn_and_its_judged_measures_have_intervals(calibrate):
    for study in calibrate.all_studies():
        found = calibrate.found(study, calibrate.World(0.3, "unequal"), 1)
        assert all(found[name][0].p <= 1 and np.isfinite(found[name][0].low) for name in study.judged), study.name


@pytest.mark.parametrize("name", ["bistereo-tuples", "attractiveness"])
def test_simulated_models_vary_as_drawn_ones_do(calibrate, name):
    study = next(one for one in calibrate.all_studies() if one.name == name)
    models = 40 if name == "bistereo-tuples" else 5
    asked = calibrate.simulated(study, calibrate.World(0.5), models)
    drawn = calibrate.found(study, calibrate.World(0.5), 100)
    for measure, own in asked.items():
        ratio = np.std([one.value for one in own], ddof=1) / np.std([one.value for one in drawn[measure]], ddof=1)
        # 99.9 % of ratios of 40 to 100 models lie between these; of 5 to 100 between 0.15 and 2.3.
        assert (0.66 < ratio < 1.45) if models == 40 else (0.15 < ratio < 2.3), measure


def test_rates_tell_what_is_covered_and_how_wide_intervals_are(calibrate):
    rng = np.random.default_rng(0)
    value = rng.normal(0, 1, 4000)
    kept = [calibrate.Found(v, v - 1.96, v + 1.96, 0.01 if abs(v) > 1.96 else 0.5) for v in value]
    told = calibrate.rates(kept, 0.0)
    assert told["covered"] == pytest.approx(0.95, abs=0.012) and told["significant"] == pytest.approx(0.05, abs=0.012)
    assert told["width"] == pytest.approx(1.0, abs=0.05)
    most, least = calibrate.limits(100)
    assert (most, least) == (0.11, 0.89)
