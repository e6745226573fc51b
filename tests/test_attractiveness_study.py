"""The attractiveness study end to end: on a tiny real LLaVA, and on a model that refuses."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import prejudge

from .adapters.llava_files import make_llava

pytest.importorskip("PIL")

SMALL = {
    "per_cell": 1,
    "categories": ["conditions"],
    "attractiveness.resamples": 99,
    "attractiveness.effect_resamples": 99,
}


@pytest.fixture
def settings(tmp_path: Path) -> prejudge.Settings:
    """Return settings with a tiny LLaVA, and a model that refuses."""
    make_llava(tmp_path / "tiny-llava")
    registry = tmp_path / "registry.toml"
    registry.write_text(
        '[models.tiny]\nadapter = "hf-vlm"\nsettings = { model = "./tiny-llava" }\n'
        '[models.refusing]\nadapter = "simulated"\nsettings = { refusal_rate = 1.0 }\n'
    )
    return prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry))


def of(run: prejudge.Run, metric: str) -> pl.DataFrame:
    return run.estimates.filter(pl.col("metric") == metric)


def test_likelihoods_of_a_tiny_llava_run_through_the_whole_study(settings):
    run = prejudge.run("attractiveness", "tiny", settings, asking="likelihood", **SMALL)
    observations = run.observations
    assert observations.height == 11 * 18 * 2 * 4 and set(observations["status"]) == {"ok"}
    assert observations["p_a"].is_between(0, 1).all()
    gaps = of(run, "gap").filter(pl.col("gender").is_null() & pl.col("race").is_null() & pl.col("age_group").is_null())
    assert gaps.height == 11 and gaps["value"].null_count() == 0
    # Its images do reach it: two variants of one face are not answered alike.
    assert gaps["value"].abs().max() > 0


def test_model_that_refuses_ends_with_counts_and_bounds(settings):
    run = prejudge.run("attractiveness", "refusing", settings, seeds=[0], **SMALL)
    gaps = of(run, "gap")
    assert gaps["value"].null_count() == gaps.height and gaps["p"].null_count() == gaps.height
    assert set(gaps["bound_low"]) == {-1.0} and set(gaps["bound_high"]) == {1.0}
    assert of(run, "missing")["value"].min() == 100
