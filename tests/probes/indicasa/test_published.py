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
    result = call(tmp_path, "replicate", "indicasa", "--scores", str(shared_data / COUNTS), *FAST)
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
