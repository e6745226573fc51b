"""Calibration end to end: what is planted is found at its size, and where nothing is planted nothing is found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import polars as pl
import pytest

import prejudge
from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts import Estimate, Trial
from prejudge.core.contracts.records import TokenScores
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs

REGISTRY = """
[adapters.simulated]
target = "prejudge.adapters.simulated.adapter:Simulated"

[models.planted]
adapter = "simulated"
settings = { strength = 1.0, seed = 4 }
"""
MEASURE = TriSentBiasOptions(resamples=499, thresholds=(0.02,))


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    (stage,) = BIStereoPairs().stages(BIStereoOptions(per_cell=40, sentiments=("positive", "negative")))
    return list(stage.trials({}))


async def observe(trials: list[Trial], options: SimulatedOptions) -> pl.DataFrame:
    answers = await Simulated(options).answer([trial.request for trial in trials])
    rows = []
    for trial, answer in zip(trials, answers, strict=True):
        assert isinstance(answer, TokenScores)
        rows.append({**trial.factors, "status": "ok", "log_probability": answer.log_probability})
    return pl.DataFrame(rows)


def favouritism(trials: list[Trial], **settings: float | int) -> list[Estimate]:
    """Return favouritism per axis and gender, in shares and in nats."""
    frame = asyncio.run(observe(trials, SimulatedOptions(**settings)))  # type: ignore[arg-type]
    estimates = TriSentBias().compute(frame, MEASURE)
    return [e for e in estimates if e.metric in ("favouritism", "favouritism_log_odds")]


def shown(estimates: list[Estimate]) -> int:
    tested = [e for e in estimates if e.metric == "favouritism" and e.p_adjusted is not None and e.value is not None]
    assert len(tested) == 6
    return sum(e.p_adjusted <= 0.05 and e.value > 0 for e in tested)


def test_nothing_planted_is_found_no_oftener_than_the_tests_allow(trials):
    # Two-sided tests at 0.05, of which one direction counts: 0.5 of 20 runs; 3 or more have a chance of 1.3 %.
    assert sum(shown(favouritism(trials, seed=seed)) > 0 for seed in range(20)) <= 2


@pytest.mark.parametrize("strength", [1.0, -1.0, 2.0])
def test_planted_strength_is_measured_at_its_size(trials, strength):
    found = favouritism(trials, strength=strength, seed=11)
    gaps = [e.value for e in found if e.metric == "favouritism_log_odds"]
    # Noise of a difference of two means of 40 pairs: sqrt(2 / 40) for each of six groups.
    assert sum(gaps) / 6 == pytest.approx(2 * strength, abs=3 * (2 / 40 / 6) ** 0.5)
    assert shown(found) == (6 if strength > 0 else 0)


@pytest.mark.usefixtures("no_figures")
def test_planted_bias_is_found_by_a_run(tmp_path: Path):
    registry = tmp_path / "registry.toml"
    registry.write_text(REGISTRY, "utf-8")
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry))
    run = prejudge.run("bistereo-pairs", "planted", settings, per_cell=40, **{"trisentbias.resamples": 499})
    gaps = run.estimates.filter(pl.col("metric") == "favouritism_log_odds")["value"]
    assert gaps.mean() == pytest.approx(2.0, abs=0.3)
    assert "for 6 of 6 groups" in run.conclusions["trisentbias"]


def test_planted_bias_is_the_same_in_tokens(trials):
    (stage,) = BIStereoPairs().stages(BIStereoOptions(per_cell=40, sentiments=("positive", "negative"), unit="token"))
    by_token = favouritism(list(stage.trials({})), strength=1.0)
    by_word = favouritism(trials, strength=1.0)
    assert [e.value for e in by_token] == pytest.approx([e.value for e in by_word])
