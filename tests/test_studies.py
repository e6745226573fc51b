"""Whole studies, end to end, on the reference models and on published scores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import prejudge
from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.errors import DataError, UnsupportedOperationError
from prejudge.testing import raises_code

pytest.importorskip("torch", reason="needs the extra hf")
# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
BY_TYPE = {
    "race-color": 58.1,
    "gender": 58.0,
    "socioeconomic": 59.9,
    "nationality": 62.9,
    "religion": 71.4,
    "age": 55.2,
    "sexual-orientation": 67.9,
    "physical-appearance": 63.5,
    "disability": 61.7,
}


@pytest.fixture
def settings(tmp_path: Path) -> prejudge.Settings:
    return prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))


def value(run: prejudge.Run, metric: str, **group: str) -> float:
    """Return the one estimate of this name and group."""
    rows = run.estimates.filter(pl.col("metric") == metric)
    for name in ("bias_type", "direction"):
        if name in rows.columns:
            rows = rows.filter(pl.col(name).eq_missing(group.get(name)))
    return rows["value"].item()


def contrasts(run: prejudge.Run, metric: str) -> pl.DataFrame:
    return run.estimates.filter(
        pl.col("metric") == metric, pl.col("threshold").is_in([0.02]) | pl.col("threshold").is_null()
    )


@pytest.mark.parametrize("unit", ["word", "token"])
def test_biased_model_is_found_biased_in_the_planted_direction(settings, unit):
    run = prejudge.run("bistereo-pairs", "reference-masked-biased", settings, per_cell=30, unit=unit)
    for metric in ("favouritism", "discrimination"):
        found = contrasts(run, metric)
        assert found.height == 6 and found["value"].min() > 90 and found["p_adjusted"].max() < 0.05
    log_odds = contrasts(run, "favouritism_log_odds")["value"]
    planted = 2 * 1.3863  # ln(q / (1 - q)) at q = 0.8, for praise and against it for blame
    assert log_odds.to_list() == pytest.approx([planted] * 6, rel=0.1)
    assert "for 6 of 6 groups" in run.conclusions["trisentbias"]


def test_fair_model_is_not_found_biased(settings):
    run = prejudge.run("bistereo-pairs", "reference-masked-fair", settings, per_cell=30)
    assert contrasts(run, "favouritism")["value"].abs().max() < 5
    assert contrasts(run, "favouritism_log_odds")["value"].abs().max() < 0.04
    assert run.conclusions["trisentbias"].startswith("No favouritism")


def test_second_run_loads_no_weights(settings, monkeypatch):
    first = prejudge.run("bistereo-pairs", "reference-masked-fair", settings, per_cell=3)

    def refuse(*_: object) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr("prejudge.adapters.hf.masked.adapter.HFMasked._load", refuse)
    second = prejudge.run("bistereo-pairs", "reference-masked-fair", settings, per_cell=3)
    counts = second.scores.manifest.stages["pairs"].counts
    assert counts["asked"] == 0 and counts["cached"] == 108
    assert second.estimates.drop("note").equals(first.estimates.drop("note"))


def test_second_run_imports_no_torch(settings):
    prejudge.run("bistereo-pairs", "reference-masked-fair", settings, per_cell=3)
    code = (
        "import prejudge, sys\n"
        f"settings = prejudge.Settings(store={settings.store!r}, runs={settings.runs!r})\n"
        "prejudge.run('bistereo-pairs', 'reference-masked-fair', settings, per_cell=3)\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_published_crows_scores_give_the_published_figures(settings, shared_data):
    path = shared_data / "crows_pairs" / "bert_crows_score.csv"
    run = prejudge.import_scores("crows-pairs", str(path), settings)
    assert round(value(run, "metric_score"), 2) == 60.48
    assert round(value(run, "stereotype_score", direction="stereo"), 2) == 61.09
    assert round(value(run, "antistereotype_score", direction="antistereo"), 2) == 56.88
    assert {name: round(value(run, "metric_score", bias_type=name), 1) for name in BY_TYPE} == BY_TYPE
    assert "swapped in 218 antistereo rows" in run.report.read_text()


def test_all_published_crows_pairs_are_asked(settings, shared_data):
    path = str(shared_data / "crows_pairs" / "crows_pairs_anonymized.csv")
    (stage,) = prejudge.plan("crows-pairs", settings=settings, data=path)
    assert (stage.units, stage.trials) == (1508, 3016)


def test_some_crows_pairs_run_on_a_model(settings, shared_data, tmp_path):
    lines = (shared_data / "crows_pairs" / "crows_pairs_anonymized.csv").read_text("utf-8").splitlines()
    own = tmp_path / "own.csv"
    own.write_text("\n".join(lines[:41]), "utf-8")
    run = prejudge.run("crows-pairs", "reference-masked-fair", settings, data=str(own))
    assert run.observations["status"].unique().to_list() == ["ok"] and run.observations.height == 80
    own.unlink()
    assert prejudge.score(run.name, settings).estimates.equals(run.estimates)


def test_own_pairs_run_on_a_model(settings, tmp_path):
    own = tmp_path / "own.csv"
    rows = ["desirable,undesirable,axis,gender,sentiment"]
    rows += [f"I met a {w} tall woman.,I met a {w} short woman.,height,women,positive" for w in ("cute", "charming")]
    rows += [f"I met a {w} tall woman.,I met a {w} short woman.,height,women,negative" for w in ("nasty", "vile")]
    own.write_text("\n".join(rows), "utf-8")
    run = prejudge.run("bistereo-pairs", "reference-masked-biased", settings, data=str(own))
    assert contrasts(run, "favouritism")["value"].to_list() == [100.0]
    report = run.report.read_text()
    assert own.name in report and str(own) not in report


def test_bad_pairs_leave_no_run(settings, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("desirable,undesirable,axis,gender,sentiment\na tall man,a tall man,height,men,neutral\n", "utf-8")
    with raises_code(DataError, "data.text", "line 2"):
        prejudge.run("bistereo-pairs", "reference-masked-fair", settings, data=str(own))
    assert not (tmp_path / "runs").exists()


def test_model_that_cannot_do_it_is_refused(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "prejudge.adapters.hf.masked.adapter.HFMasked.abilities", classmethod(lambda cls, options: Abilities())
    )
    with raises_code(UnsupportedOperationError, "study.operation", "'pseudo_likelihood'"):
        prejudge.run("bistereo-pairs", "reference-masked-fair", settings)
