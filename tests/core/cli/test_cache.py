"""`prejudge cache` from the command line: check, carry, merge, remove."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from functools import partial

import polars as pl
import pytest

from ...command import call


@pytest.fixture
def prejudge(tmp_path):
    """Return a function that runs the command line in an empty folder."""

    return partial(call, tmp_path)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Return a folder with a store of one run."""
    folder = tmp_path_factory.mktemp("template")
    done = call(folder, "run", "bistereo-pairs", "--model", "reference-masked-fair", "--set", "per_cell=1")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def ran(template, tmp_path):
    """Return the name of a run in the store of the folder."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    (folder,) = (tmp_path / "runs").iterdir()
    return folder.name


def test_run_is_exported_imported_and_scored(prejudge, ran, tmp_path):
    pytest.importorskip("torch", reason="needs the extra hf")
    exported = prejudge("cache", "export", ran, "--out", "r.db.gz")
    assert hashlib.sha256((tmp_path / "r.db.gz").read_bytes()).hexdigest() in exported.stdout
    imported = prejudge("cache", "import", "r.db.gz", "--store", "new.db")
    assert f"prejudge score {ran} --store new.db" in imported.stdout
    scored = [prejudge("score", ran, "--store", name, "--runs", name[:3]) for name in ("prejudge.db", "new.db")]
    tables = [(tmp_path / name / ran / "estimates.csv").read_bytes() for name in ("pre", "new")]
    assert [done.returncode for done in scored] == [0, 0] and tables[0] == tables[1]
    assert "already has this run" in prejudge("cache", "import", "r.db.gz", "--store", "new.db").stdout


def test_bundle_is_scored_without_a_store(prejudge, ran, tmp_path):
    prejudge("cache", "export", ran, "--out", "r.db.gz")
    (tmp_path / "prejudge.db").unlink()
    done = prejudge("score", "--bundle", "r.db.gz", "--runs", "again")
    assert done.returncode == 0 and not (tmp_path / "prejudge.db").exists()
    assert (tmp_path / "again" / ran / "estimates.csv").read_bytes() == (
        tmp_path / "runs" / ran / "estimates.csv"
    ).read_bytes()


def test_bundle_of_another_run_gives_no_numbers(prejudge, ran, tmp_path):
    """The name that was typed is that of the run whose numbers are shown."""
    prejudge("cache", "export", ran, "--out", "r.db.gz")
    done = prejudge("score", "another", "--bundle", "r.db.gz")
    assert done.returncode == 2 and done.stdout == "" and "another" in done.stderr and ran in done.stderr
    assert prejudge("score", ran[:12], "--bundle", "r.db.gz").returncode == 0
    for words in (("--against", "paper"), ("--scores", "s.csv")):
        done = prejudge("--debug", "score", "--bundle", "r.db.gz", *words)
        assert done.returncode == 2 and "options.conflict" in done.stderr, words
    done = prejudge("--debug", "score", ran, "--model", "m")
    assert done.returncode == 2 and "options.conflict" in done.stderr


def head_in(shown):
    (line,) = (line for line in shown.splitlines() if line.startswith("Head:"))
    return line.split()[1]


def edit(folder, statement):
    with sqlite3.connect(folder / "prejudge.db") as store:
        store.execute(statement)
    store.close()


def test_head_is_told_wherever_the_run_goes(prejudge, ran, tmp_path):
    head = head_in(prejudge("score").stdout)
    assert head_in(prejudge("cache", "export", ran, "--out", "r.db.gz").stdout) == head
    assert prejudge("export", "--what", "card").returncode == 0
    for file in ("report.html", "manifest.json", "model-card.md"):
        assert head in (tmp_path / "runs" / ran / file).read_text("utf-8"), file
    prejudge("cache", "import", "r.db.gz", "--store", "new.db", "--as", "other")
    verified = prejudge("cache", "verify", "--store", "new.db", "--head", head)
    assert verified.returncode == 0 and "run other" in verified.stdout
    none = prejudge("cache", "verify", "--head", "0" * 64)
    assert none.returncode == 1 and "no sound run" in none.stdout
    assert prejudge("cache", "verify", "--head", "latest").returncode == 2


def test_damaged_store_is_repaired_from_a_bundle(prejudge, ran, tmp_path):
    prejudge("cache", "export", ran, "--out", "r.db.gz")
    edit(tmp_path, "UPDATE exchange SET response = replace(response, '-', '') WHERE id < 4")
    found = prejudge("cache", "verify")
    assert found.returncode == 1 and found.stdout.count("[exchange.response; key ") == 3
    assert prejudge("cache", "export", ran, "--out", "again.db.gz").returncode == 2
    done = prejudge("cache", "repair", "--from", "r.db.gz")
    assert done.returncode == 0 and "3 problems found, 0 remain" in done.stdout, done.stderr
    assert prejudge("cache", "verify").returncode == 0


def test_what_stays_damaged_is_told_with_the_numbers(prejudge, ran, tmp_path):
    edit(tmp_path, "UPDATE exchange SET latency = latency + 1 WHERE id = 3")
    assert prejudge("cache", "repair").returncode == 1
    for words in (["score"], ["resume", ran], ["export", "--what", "card"]):
        done = prejudge(*words)
        assert done.returncode == 2 and "exchange 3" in done.stderr, words
    told = "1 of its answers"
    for words in (["score", "--unproved"], ["export", "--what", "card", "--unproved"]):
        done = prejudge(*words)
        assert done.returncode == 0, done.stderr
    assert told in " ".join(prejudge("score", "--unproved").stdout.split())
    for file in ("report.html", "model-card.md"):
        assert told in (tmp_path / "runs" / ran / file).read_text("utf-8"), file


@pytest.mark.parametrize("text", ["{", "", "[]", '{"run":1}'])
def test_damaged_manifest_ends_every_command_in_a_line(prejudge, ran, tmp_path, text):
    edit(tmp_path, f"UPDATE run SET manifest = '{text}'")
    for line in ("cache verify", "score", f"resume {ran}", "export --what card", f"cache export {ran} --out x.db.gz", "list runs"):
        done = prejudge(*line.split())
        assert done.returncode in (0, 1, 2) and "Traceback" not in done.stdout + done.stderr, line
    assert prejudge("cache", "verify").returncode == 1


def test_reference_model_has_not_drifted(prejudge, ran):
    done = prejudge("lab", "recheck", ran, "--sample", "20", "--exact")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "Asked again: 20. Without an answer: 0. Same answer: 100.0 %" in done.stdout
    assert ran in prejudge("score").stdout, "latest is still the run"


def test_published_numbers_are_imported_and_scored(prejudge, tmp_path):
    pairs = ["sent_more,sent_less,stereo_antistereo,bias_type"]
    pairs += [f"women saw a {word},men saw a {word},stereo,gender" for word in ("cat", "dog", "cow")]
    (tmp_path / "pairs.csv").write_text("\n".join(pairs) + "\n")
    (tmp_path / "theirs.csv").write_text("pair,side,logp\n0,more,-1\n0,less,-2\n1,more,-3\n1,less,-2\n2,more,-1\n")
    words = ["import", "crows-pairs", "--data", "pairs.csv", "--model", "theirs", "--columns", "log_probability=logp"]
    done = prejudge(*words, "--responses", "theirs.csv")
    assert done.returncode == 0, done.stderr
    assert "1 of 6 trials of stage 'pairs' were not answered" in " ".join(done.stdout.split())
    (estimates,) = (tmp_path / "runs").glob("*/estimates.parquet")
    total = next(pl.read_parquet(estimates).filter(metric="metric_score").iter_rows(named=True))
    assert (total["value"], total["n"]) == (50.0, 2)
    assert prejudge("cache", "verify").stdout.startswith("5 exchanges checked, 0 problems")
    assert "code: run.not-resumable" in prejudge("--debug", "resume").stderr
    assert "code: run.no-model" in prejudge("--debug", "lab", "recheck").stderr
    left = prejudge(*words, "--responses", "pairs.csv")
    assert left.returncode == 2 and "'logp'" in left.stderr


def test_tampered_bundle_makes_no_store(prejudge, ran, tmp_path):
    prejudge("cache", "export", ran, "--out", "r.db.gz")
    data = bytearray((tmp_path / "r.db.gz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "r.db.gz").write_bytes(data)
    done = prejudge("cache", "import", "r.db.gz", "--store", "new.db")
    assert done.returncode == 2 and "'r.db.gz'" in done.stderr and not (tmp_path / "new.db").exists()


def test_stores_are_merged(prejudge, ran, tmp_path):
    words = ["cache", "merge", "prejudge.db", "--store", "new.db"]
    assert "36 exchanges, 0 images and 1 runs" in prejudge(*words).stdout
    again = prejudge(*words).stdout.splitlines()
    assert "0 exchanges, 0 images and 0 runs" in again[0] and again[1].startswith("1 runs")
    assert "code: store.missing" in prejudge("--debug", "cache", "merge", "none.db").stderr


def test_export_writes_over_nothing_unless_told(prejudge, ran, tmp_path):
    (tmp_path / "r.db.gz").write_text("mine")
    done = prejudge("cache", "export", ran, "--out", "r.db.gz")
    assert done.returncode == 2 and "'r.db.gz'" in done.stderr
    assert (tmp_path / "r.db.gz").read_text() == "mine"
    assert prejudge("cache", "export", ran, "--out", "r.db.gz", "--force").returncode == 0


def test_prune_asks_first(prejudge, ran):
    asked = prejudge("cache", "prune", "--run", ran, input="n\n")
    assert asked.returncode == 2 and f"remove the run {ran} with 36 trials, 36 exchanges" in asked.stdout
    assert "36 exchanges checked, 0 problems" in prejudge("cache", "verify").stdout
    removed = prejudge("cache", "prune", "--run", ran, "--yes", "--vacuum").stdout
    assert f"Removing the run {ran} with 36 trials" in removed and "Removed." in removed
    assert "\n0 exchanges checked" in "\n" + prejudge("cache", "verify").stdout
