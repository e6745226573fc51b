"""From imported drafts to a file of tuples, on the command line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code

STUDY = "bistereo-tuples-draft"
ANSWERS = {
    ("girl", "positive"): "(tall, girl, attractive)\n(tall, girl, elegant)",
    ("girl", "negative"): "(short, girl, unattractive)\n(short, girl, weak)",
    ("boy", "positive"): "I would rather not.",
}


@pytest.fixture
def prejudge(tmp_path, monkeypatch):
    """Return a function that runs the command line in an empty folder with answers to import."""
    monkeypatch.chdir(tmp_path)
    with open("answers.csv", "w", encoding="utf-8", newline="") as file:
        rows = [["dimension", "term", "sentiment", "response"], *(["height", *k, v] for k, v in ANSWERS.items())]
        csv.writer(file).writerows(rows)

    def call(*words):
        done = CliRunner().invoke(cli, list(words), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return call


@pytest.fixture
def drafted(prejudge):
    prejudge("import", STUDY, "--responses", "answers.csv", "--model", "written by hand", "--set", "dimensions=height",
             "--set", "bistereo-tuples-draft.resamples=99")  # fmt: skip
    return prejudge


def annotate(name, answers):
    """Write a copy of the sheet as one annotator would fill it in."""
    with open("sheet.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["stereotype"] = answers[row["attribute"]]
        row["opposite"] = row["opposite"] or ("strong" if row["attribute"] == "weak" else "")
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_drafts_become_tuples_of_the_study(drafted):
    assert "4 tuples" in drafted("study", "tuples", "sheet")
    annotate("ana.csv", {"attractive": 1, "elegant": 1, "unattractive": 1, "weak": 1})
    annotate("bo.csv", {"attractive": 1, "elegant": 0, "unattractive": 1, "weak": 0})
    said = drafted("study", "tuples", "agree", "ana.csv", "bo.csv")
    assert "Krippendorff's alpha: \N{MINUS SIGN}0.167" in said and "at least 2: 2 tuples" in said
    assert "2 of 4 tuples are kept" in said and "make 1 analogy tests" in said
    assert "validated" in drafted("plan", "bistereo-tuples", "--data", "tuples.csv")


def test_no_file_is_written_over(drafted):
    drafted("study", "tuples", "sheet")
    with raises_code(UsageError, "file.exists"):
        drafted("study", "tuples", "sheet")


def test_a_run_of_another_study_has_no_drafts(prejudge):
    prejudge("run", "bistereo-tuples", "--model", "simulated-fair", "-q", "--set", "bistereo-tuples.resamples=99")
    with raises_code(UsageError, "run.other-study"):
        prejudge("study", "tuples", "sheet")


def test_another_models_values_are_never_reproduced(prejudge):
    prejudge("run", "bistereo-tuples", "--model", "simulated-fair", "-q", "--set", "bistereo-tuples.resamples=99")
    said = prejudge("study", "replicate", "bistereo-tuples", "--model", "llama-3-8b", "--all")
    assert "2 published values: 0 reproduced, 0 not reproduced, 2 cannot be judged." in said
    assert "the values are those of llama-3-8b, the run is of 'simulated-fair'" in said and "52.2" in said


@pytest.mark.parametrize(("model", "verdict"), [("simulated-copying", "open"), ("simulated-analogies", "above")])
def test_a_model_that_copies_is_biased_only_where_a_bias_is_planted(prejudge, model, verdict):
    prejudge("run", "bistereo-tuples", "--model", model, "-q", "--set", "bistereo-tuples.resamples=99")
    (path,) = Path("runs").glob("*/estimates.csv")
    with path.open(encoding="utf-8") as file:
        found = {(row["metric"], row["gender"]): row for row in csv.DictReader(file) if not row["dimension"]}
    assert found["biased_preference_swapped", "women"]["verdict"] == verdict
    assert found["biased_preference_normalised", "women"]["verdict"] == ""
    assert float(found["biased_preference_normalised", "women"]["value"]) > 90
