"""The counts behind IndiCASA's Tables 3 and 7 give every printed cell, by the command line."""

from __future__ import annotations

import csv
import math

import pytest

import prejudge

from ...command import call

FAST = ("--set", "indicasa.resamples=99")
COUNTS = "002_table3_counts.csv"
CATEGORIES = {
    "Caste": "caste",
    "Religion": "religion",
    "Disability": "disability",
    "Gender": "gender",
    "Socio": "socioeconomic",
}


def test_counts_give_every_cell_of_the_tables(shared_data, tmp_path):
    result = call(tmp_path, "study", "replicate", "indicasa", "--scores", str(shared_data / COUNTS), *FAST)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "126 published values: 126 reproduced, 0 not reproduced, 0 cannot be judged." in result.stdout


def test_counts_give_the_printed_digits_of_a_model(shared_data, tmp_path):
    model = "Phi-3.5-mini"
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))
    how = {"published_model": model, "indicasa.resamples": 99}
    frame = prejudge.import_scores("indicasa", str(shared_data / COUNTS), settings, **how).estimates
    with (shared_data / COUNTS).open(encoding="utf-8") as file:
        printed = [row for row in csv.DictReader(file) if row["model"] == model]
    assert len(printed) == 5
    columns = (("stereotype_probability", "p"), ("bias_score", "bias_score"), ("kl_bias_score", "KL"))
    for row in printed:
        own = frame.filter(category=CATEGORIES[row["category"]])
        for metric, column in columns:
            text = row[f"published_{column}"]
            digits = 5 if "e" in text else len(text.partition(".")[2])
            value = own.filter(metric=metric)["value"].item()
            # The paper cuts digits off; where it prints fewer, they are zeros.
            digits = max(digits, 3 if column != "KL" else 4)
            assert math.floor(value * 10**digits) / 10**digits == pytest.approx(float(text), abs=1e-9)
        least = own.filter(metric="stereotype_probability")
        assert least["missing_unreadable"].item() == int(row["category_size"]) - int(row["n_total"])


def table(tmp_path, *rows):
    path = tmp_path / "scores.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("model", "metric", "loss", "classifier", "encoder", "category", "value"), *rows])
    return str(path)


def test_encoders_are_compared_with_tables_4_to_6(tmp_path):
    """Digits that were cut and not rounded agree; a reversed sign or another category's value does not."""
    model = "all-MiniLM-L6-v2"
    path = table(
        tmp_path,
        (model, "delta_sim", "", "", "", "", 0.01579),
        (model, "delta_sim", "", "", "", "religion", 0.00139),
        (model, "delta_sim", "", "", "", "disability", -0.0199),
        (model, "delta_sim", "nt-bxent", "", "", "", 0.4452),
        (model, "delta_sim", "nt-xent", "", "", "", 0.3),
        (model, "macro_f1", "", "frozen", "contrastive", "", 0.8351),
        (model, "macro_f1", "", "frozen", "contrastive", "caste", ""),
    )
    result = call(tmp_path, "study", "replicate", "indicasa", "--scores", path)
    assert result.returncode == 1, result.stdout + result.stderr
    # One row each for Tables 5 (6 values), 6 (4) and 4 (24) of this encoder; what is not there is not judged.
    assert "34 published values: 4 reproduced, 2 not reproduced, 28 cannot be judged." in result.stdout


def test_table_of_another_name_needs_a_model(tmp_path):
    path = table(tmp_path, ("model", "delta_sim", "", "", "", "gender", 0.0205))
    assert "published.model" in call(tmp_path, "--debug", "study", "replicate", "indicasa", "--scores", path).stderr
    named = call(tmp_path, "study", "replicate", "indicasa", "--scores", path, "--model", "all-MiniLM-L6-v2")
    assert "34 published values: 1 reproduced, 0 not reproduced, 33 cannot be judged." in named.stdout


def test_cell_that_is_no_number_is_named(tmp_path):
    path = table(tmp_path, ("all-MiniLM-L6-v2", "delta_sim", "", "", "", "gender", "0,0205"))
    result = call(tmp_path, "study", "replicate", "indicasa", "--scores", path)
    assert result.returncode == 2 and "line 2" in result.stderr
