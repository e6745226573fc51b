"""Published scores are of a model, are observations like others, and are compared with those of another model."""

from __future__ import annotations

import json

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.crows_pairs.probe import CrowsOptions, CrowsPairs
from prejudge.testing import raises_code
from tests.command import call

HEADER = "sent_more,sent_less,stereo_antistereo,bias_type,sent_more_score,sent_less_score,score"
WORDS = "baker miner nurse pilot cook clerk judge guard".split()


def lines(shift):
    """Return 32 scored pairs; the more `shift`, the less likely the less stereotyping sentence."""
    for number in range(32):
        side = "stereo" if number % 3 else "antistereo"
        more, less = -20.0 - number % 5, -21.5 + number % 4 - shift
        pair = f"The {WORDS[number % 8]} is poor {number}.,The {WORDS[(number + 1) % 8]} is poor {number}."
        yield f"{pair},{side},socioeconomic,{more},{less},{int(more > less)}"


def scored(tmp_path, name, shift, *more):
    path = tmp_path / f"{name}.csv"
    path.write_text("\n".join([HEADER, *lines(shift)]) + "\n")
    result = call(tmp_path, "score", "crows-pairs", "--scores", str(path), "--model", name, *more)
    assert result.returncode == 0, result.stderr
    return result


def manifests(tmp_path):
    return {path.parent.name: json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/manifest.json")}


def test_scores_are_of_a_model_and_nothing_is_said_of_asking(tmp_path):
    result = scored(tmp_path, "alpha", 0)
    (manifest,) = manifests(tmp_path).values()
    assert manifest["study"]["roles"] == {"subject": "alpha"}
    assert "drift" not in result.stdout and "Calibration" not in result.stdout


def test_scores_of_two_models_are_compared_without_a_store(tmp_path):
    scored(tmp_path, "alpha", 0)
    scored(tmp_path, "beta", 3)
    assert not (tmp_path / "prejudge.db").exists()
    result = call(tmp_path, "compare", *sorted(manifests(tmp_path), key=lambda name: "beta" in name))
    assert result.returncode == 0, result.stderr
    assert "beta" in result.stdout and "alpha" in result.stdout and "Resume" not in result.stdout


@pytest.mark.parametrize("column", ["more", "less"])
def test_scores_above_0_are_refused(tmp_path, column):
    cells = {"more": "-1.0", "less": "-2.0"} | {column: "3.5"}
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}\nHe is poor.,He is rich.,stereo,x,{cells['more']},{cells['less']},1\n")
    with raises_code(DataError, "data.number", "3.5", "above 0"):
        CrowsPairs().import_scores(str(path), CrowsOptions())


def test_all_contradictions_are_named_at_once_or_left_out(tmp_path):
    path = tmp_path / "a.csv"
    rows = list(lines(0))
    wrong = [row[:-1] + str(1 - int(row[-1])) if number in (1, 7) else row for number, row in enumerate(rows)]
    path.write_text("\n".join([HEADER, *wrong]) + "\n")
    with raises_code(DataError, "data.contradiction") as caught:
        CrowsPairs().import_scores(str(path), CrowsOptions())
    assert caught.value.fields["lines"] == [3, 9]
    imported = CrowsPairs().import_scores(str(path), CrowsOptions(bad_rows="skip"))
    assert imported.observations.height == 60 and "2 of 32 rows" in imported.notes[0]
