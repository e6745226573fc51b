"""Published scores are of a model, are observations like others, and are compared with those of another model."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, statistics
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


def test_scores_of_two_models_are_compared_from_the_store_alone(tmp_path):
    scored(tmp_path, "alpha", 0)
    scored(tmp_path, "beta", 3)
    runs = sorted(manifests(tmp_path), key=lambda name: "beta" in name)
    # Neither the reports nor the files are needed any more.
    shutil.rmtree(tmp_path / "runs")
    for path in tmp_path.glob("*.csv"):
        path.unlink()
    result = call(tmp_path, "compare", *runs)
    assert result.returncode == 0, result.stderr
    assert "beta" in result.stdout and "alpha" in result.stdout and "Resume" not in result.stdout


def test_published_scores_of_a_whole_study_have_a_verdict_and_are_replicated_from_the_store(tmp_path, shared_data):
    """Rows of a table have no prompts: they counted as one, so that 1,508 pairs were too few to show a number."""
    path = shared_data / "crows_pairs" / "bert_crows_score.csv"
    shown = call(tmp_path, "score", "crows-pairs", "--scores", str(path), "--model", "bert-base-uncased")
    assert shown.returncode == 0 and "distinct prompt" not in shown.stdout and "n = 1,508" in shown.stdout
    (run,) = (tmp_path / "runs").iterdir()
    (answer,) = json.loads((run / "answers.json").read_text("utf-8"))["answers"]
    assert answer["state"] == "yes"
    compared = call(tmp_path, "study", "replicate", "crows-pairs", "--run", run.name)
    assert compared.returncode == 0 and "3 of 3 reproduced" in compared.stdout


def test_stored_scores_are_the_rows_of_the_file(tmp_path):
    scored(tmp_path, "alpha", 0)
    (run,) = manifests(tmp_path)
    with Store(str(tmp_path / "prejudge.db"), writable=False) as store:
        scores = score(Catalogue.load(None), store, run)
    rows = [line.split(",") for line in lines(0)]
    by_side = {(pair, side): value for pair, side, value in scores.last["pair", "side", "log_probability"].iter_rows()}
    assert by_side == {
        (str(index), side): float(row[4 + column])
        for index, row in enumerate(rows)
        for column, side in enumerate(("more", "less"))
    }
    published = CrowsPairs().import_scores(str(tmp_path / "alpha.csv"), CrowsOptions()).observations
    assert scores.last.equals(published) and scores.last.schema == published.schema
    assert scores.manifest.head and not scores.manifest.identities


def test_the_same_scores_are_stored_once_and_those_of_another_model_beside_them(tmp_path):
    def exchanges():
        with Store(str(tmp_path / "prejudge.db"), writable=False) as store:
            return statistics(store)["Exchange"]

    scored(tmp_path, "alpha", 0)
    first = exchanges()
    scored(tmp_path, "alpha", 0)
    assert exchanges() == first == 64
    scored(tmp_path, "beta", 0)
    assert exchanges() == 128


def test_a_changed_score_is_found_and_is_not_scored(tmp_path):
    scored(tmp_path, "alpha", 0)
    (run,) = manifests(tmp_path)
    with sqlite3.connect(tmp_path / "prejudge.db") as database:
        database.execute("UPDATE exchange SET response = replace(response, '-21.5', '-11.5')")
    database.close()
    result = call(tmp_path, "score", run)
    assert result.returncode not in (0, 1) and "damaged" in result.stderr or "not as it was stored" in result.stderr
    assert call(tmp_path, "cache", "verify").returncode != 0


def test_scores_travel_in_a_bundle(tmp_path):
    scored(tmp_path, "alpha", 0)
    (run,) = manifests(tmp_path)
    assert call(tmp_path, "cache", "verify").returncode == 0
    exported = call(tmp_path, "cache", "export", run, "--out", "alpha.prejudge")
    assert exported.returncode == 0 and "not finished" not in exported.stdout, exported.stderr
    result = call(tmp_path, "score", run, "--bundle", "alpha.prejudge")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("verb", "says"), [("resume", "cannot be resumed"), ("lab recheck", "cannot be rechecked")])
def test_nothing_can_be_asked_of_published_scores(tmp_path, verb, says):
    scored(tmp_path, "alpha", 0)
    (run,) = manifests(tmp_path)
    result = call(tmp_path, *verb.split(), run)
    assert result.returncode == 2 and says in result.stderr, result.stderr


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
