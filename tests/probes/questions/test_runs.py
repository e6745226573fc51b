"""From a folder to a verdict: a planted effect is found, a fair model is not convicted, and numbers are recomputed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.cli.main import cli
from prejudge.core.scaffold import STUDIES

from .folders import FACTORS, FAIR, NUMBER, PLANTED, write

ASKED = [{"asks": "Rated higher?", "measure": {"difference": "gender"}, "limit": {"value": 0.3, "because": "a test"}}]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_of(folder: Path, model: str, **options: Any) -> Any:
    return prejudge.run(f"./{folder.name}", model, **options)


def gap(run: Any, measure: str = "difference_gender") -> dict[str, Any]:
    return dict(run.estimates.filter(pl.col("metric") == measure).row(0, named=True))


def side_mean(rows: pl.DataFrame, gender: str) -> float:
    return float(np.mean(rows.filter(pl.col("gender") == gender)["outcome"].to_numpy()))


@pytest.mark.parametrize(("model", "verdict"), [(PLANTED, "above"), (FAIR, None)])
def test_planted_effect_is_found_and_a_fair_model_not_convicted(tmp_path, model, verdict):
    found = gap(run_of(write(tmp_path / "audit", questions=ASKED), model))
    assert (found["verdict"] == "above") == (verdict == "above")
    assert found["low"] < found["value"] < found["high"]
    assert (found["low"] > 0) == (verdict == "above")


def test_difference_is_that_of_the_means_of_the_two_groups(tmp_path):
    run = run_of(write(tmp_path / "audit", questions=ASKED), PLANTED)
    rows = run.observations.filter(pl.col("status") == "ok")
    assert rows.height == 72
    assert gap(run)["value"] == pytest.approx(side_mean(rows, "male") - side_mean(rows, "female"))


def test_interval_covers_the_lean_of_names_and_not_only_answers(tmp_path):
    leaning = 'simulated:x[planted_by=cells,noise=0.1,preferences=[{of=["name"],spread=1.5}]]'
    run = run_of(write(tmp_path / "audit", questions=ASKED), leaning)
    rows, found = run.observations, gap(run)
    sides = [rows.filter(pl.col("gender") == gender)["outcome"].to_numpy() for gender in ("male", "female")]
    naive = 1.96 * np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
    means = [
        rows.filter(pl.col("gender") == g).group_by("name").agg(pl.col("outcome").mean())["outcome"].to_numpy()
        for g in ("male", "female")
    ]
    by_name = 1.96 * np.sqrt(sum(m.var(ddof=1) / len(m) for m in means))
    half = (found["high"] - found["low"]) / 2
    assert half > 1.3 * naive
    assert half > by_name


def test_run_is_scored_without_the_folder(tmp_path):
    run = run_of(write(tmp_path / "audit", questions=ASKED), PLANTED)
    before = gap(run)["value"]
    shutil.rmtree(tmp_path / "audit")
    result = CliRunner().invoke(cli, ["score", "latest"], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"{before:.3f}" in result.output


def test_default_measure_compares_the_group(tmp_path):
    assert gap(run_of(write(tmp_path / "audit"), PLANTED))["value"] > 1


@pytest.mark.parametrize(
    ("answer", "unit"),
    [({"form": "yes_no"}, 1.0), ({"form": "choice", "options": {"in": "Invite {name}", "out": "Reject"}}, 1.0)],
)
def test_choices_and_yes_and_no_find_the_planted_effect(tmp_path, answer, unit):
    run = run_of(
        write(tmp_path / "audit", None, answer, questions=[ASKED[0] | {"limit": {"value": 0.05}}]),
        PLANTED.replace("0.3", "1"),
    )
    rows = run.observations.filter(pl.col("status") == "ok")
    assert side_mean(rows, "male") - side_mean(rows, "female") > 0.1
    assert gap(run)["verdict"] == "above"


def test_likelihood_finds_the_planted_effect(tmp_path):
    assert gap(run_of(write(tmp_path / "audit", questions=ASKED), PLANTED, asking="likelihood"))["low"] > 0


def test_judge_reads_each_answer(tmp_path):
    answer = {"form": "judged", "judge": "Is this advice kind? Answer yes or no.\n\n{answer}"}
    folder = write(tmp_path / "audit", None, answer)
    run = prejudge.run(f"./{folder.name}", {"subject": "simulated-fair", "judge": "simulated-fair"})
    judged = run.observations.filter(pl.col("answer").is_not_null() & (pl.col("stage") == "judgements"))
    assert judged.height == 72
    assert set(judged["status"]) <= {"ok", "unreadable"}


@pytest.mark.parametrize("kind", STUDIES)
def test_new_study_is_valid_and_runs_at_once(tmp_path, kind):
    if kind == "image":
        pytest.importorskip("PIL")
    runner = CliRunner()
    written = runner.invoke(cli, ["new", "study", "mine", "--kind", kind], catch_exceptions=False)
    assert written.exit_code == 0
    checked = runner.invoke(cli, ["study", "validate", "./mine"], catch_exceptions=False)
    assert checked.exit_code == 0, checked.output
    assert "Prompt " in checked.output
    model = "simulated-fair" if kind == "free" else PLANTED
    done = runner.invoke(cli, ["run", "./mine", "--model", model, "--limit", "64", "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_changed_image_is_refused(tmp_path):
    pytest.importorskip("PIL")
    CliRunner().invoke(cli, ["new", "study", "mine", "--kind", "image"], catch_exceptions=False)
    study = prejudge.plan("./mine")
    assert study is not None
    from prejudge.core.catalogue.study import Catalogue

    catalogue = Catalogue.load()
    (stage, *_) = catalogue.instrument(catalogue.study("./mine", {}, {})).stages()
    shutil.copy(tmp_path / "mine" / "first-1.png", tmp_path / "mine" / "second-1.png")
    with pytest.raises(prejudge.errors.DataError) as caught:
        list(stage.images())
    assert caught.value.code == "folder.changed"


def test_number_of_a_scale_is_whole_by_cells(tmp_path):
    rows = run_of(write(tmp_path / "audit", None, NUMBER), PLANTED).observations
    assert set(rows["status"]) == {"ok"}
    assert all(float(value).is_integer() for value in rows["outcome"])
    assert FACTORS.keys() <= set(rows.columns)
