"""Models that cannot do what is asked by default are asked what they can do, on the command line."""

from __future__ import annotations

import json

import polars as pl
import pytest

from ...adapters.checkpoints import write_causal, write_classifier, write_masked
from ...command import call

LABELS = ("entailment", "contradiction", "neutral")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "causal": f"hf-causal:{write_causal(folder / 'base', template=None)}",
        "chat": f"hf-causal:{write_causal(folder / 'chat')}",
        "masked": f"hf-masked:{write_masked(folder / 'masked')}",
        "classifier": f"hf-classifier:{write_classifier(folder / 'nli', labels=LABELS)}",
    }


def finished(place, *words):
    """Run a study; return its manifest, its observations and what the terminal said."""
    done = call(place, "run", *words, "--quiet")
    (folder,) = (place / "runs").iterdir()
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    return done, manifest, pl.read_parquet(folder / "observations.parquet"), (folder / "report.html").read_text("utf-8")


SMALL = ("--set", "per_cell=1", "--set", "axes=height", "--set", "trisentbias.resamples=99")


@pytest.mark.parametrize(
    ("kind", "given", "scoring"),
    [
        ("causal", (), "joint-minus-marginal"),
        ("causal", ("--set", "scoring=left-to-right"), "left-to-right"),
        ("masked", (), None),
    ],
)
def test_pairs_are_scored_by_what_the_model_can_do(kind, given, scoring, models, tmp_path):
    done, manifest, seen, report = finished(tmp_path, "bistereo-pairs", "--model", models[kind], *SMALL, *given)
    assert done.returncode == 0, done.stderr
    assert manifest["study"]["options"].get("scoring") == scoring
    assert manifest["options"]["probe"]["scoring"] == (scoring or "pll")
    assert ("log_sentence" in seen.columns) is (kind == "causal")
    told = f"scoring = {scoring}, because"
    follows = kind == "causal" and not given
    assert (told in " ".join(done.stdout.split())) is (told in report) is follows
    assert bool(manifest["study"].get("followed")) is follows


@pytest.mark.parametrize(
    ("kind", "given", "asking"),
    [("chat", (), "generate"), ("chat", ("--set", "asking=likelihood"), "likelihood"), ("classifier", (), None)],
)
def test_inferences_are_asked_by_what_the_model_can_do(kind, given, asking, models, tmp_path):
    small = ("--set", "per_cell=1", "--set", "genders=women", "--set", "bistereo-nli.resamples=99")
    done, manifest, seen, _ = finished(tmp_path, "bistereo-nli", "--model", models[kind], *small, *given)
    # By likelihood a stage of questions without content is asked beside the study.
    asked = seen.filter(pl.col("stage") == "pairs") if "stage" in seen.columns else seen
    assert done.returncode in (0, 1) and asked.height == 8, done.stderr
    assert manifest["options"]["probe"]["asking"] == (asking or "classify")
    assert (f"asking = {asking}, because" in " ".join(done.stdout.split())) is (kind == "chat" and not given)


def test_followed_option_is_resumed_and_scored_as_it_was(models, tmp_path):
    words = ("bistereo-pairs", "--model", models["causal"], *SMALL)
    spent = call(tmp_path, "run", *words, "--max-requests", "3", "--quiet")
    assert spent.returncode == 3
    assert call(tmp_path, "resume", "--quiet").returncode == 0
    again = call(tmp_path, "score")
    assert again.returncode == 0 and "scoring = joint-minus-marginal, because" in " ".join(again.stdout.split())
