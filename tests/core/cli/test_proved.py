"""The ten ways to change a store behind its back: no command prints a number that the head does not follow from."""

from __future__ import annotations

import shutil
import sqlite3
from xml.etree import ElementTree

import polars as pl
import pytest

from ...command import call

STUDY = ("run", "subtle-sai", "--model", "simulated-fair", "--set", "per_cell=2", "--quiet")
POLICY = 'study = "subtle-sai"\n[[rules]]\nname = "small"\nmeasure = "delta_PL"\nmax = 100\non = "value"\n'
VERBS = {
    "score": ("score", "first"),
    "gate": ("gate", "first", "--policy", "policy.toml", "--junit", "gate.xml"),
    "compare": ("compare", "second", "first", "--allow-different"),
    "card": ("card", "first", "--out", "cards"),
    "export": ("export", "first", "--out", "estimates.csv"),
}
FIRST = "run_id = (SELECT id FROM run WHERE name = 'first')"
ATTACKS = {
    "answers": "UPDATE exchange SET response = replace(response, 'Option 1', 'Option 3')",
    "labels": "UPDATE run_trial SET factors = (SELECT b.factors FROM run_trial b WHERE b.run_id = run_trial.run_id AND "
    f"b.ordinal = 1 - run_trial.ordinal) WHERE ordinal < 2 AND {FIRST}",
    "status": "UPDATE exchange SET status = 'refused' WHERE id = (SELECT exchange_id FROM run_trial WHERE ordinal = 1)",
    "factors": f"UPDATE run_trial SET factors = replace(factors, 'positive', 'negative') WHERE {FIRST}",
    "removed": f"DELETE FROM run_trial WHERE ordinal > 20 AND {FIRST}",
    "added": "INSERT INTO run_trial SELECT run_id, stage, ordinal + 1000, trial || 'x', factors, key, exchange_id, "
    f"digest FROM run_trial WHERE {FIRST}",
    "manifest": """UPDATE run SET manifest = replace(manifest, '"python":"', '"python":"0')""",
    "identity": "UPDATE model SET identity = replace(identity, 'simulated', 'stimulated')",
    "repointed": f"UPDATE run_trial SET exchange_id = exchange_id + 1 WHERE ordinal = 5 AND {FIRST}",
    "requests": "UPDATE exchange SET request = (SELECT b.request FROM exchange b WHERE b.id = 3 - exchange.id) "
    "WHERE id < 3",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a folder with a store of two runs, named first and second."""
    folder = tmp_path_factory.mktemp("sound")
    for seed in ("0", "1"):
        done = call(folder, *STUDY, "--set", f"seed={seed}")
        assert done.returncode == 0, done.stderr
    with sqlite3.connect(folder / "prejudge.db") as plain:
        for name, (number,) in zip(("first", "second"), plain.execute("SELECT id FROM run").fetchall(), strict=True):
            plain.execute("UPDATE run SET name = ? WHERE id = ?", (name, number))
    plain.close()
    (folder / "policy.toml").write_text(POLICY)
    shutil.rmtree(folder / "runs")
    return folder


@pytest.fixture
def changed(sound, tmp_path):
    """Return a function that makes a copy of the folder with an attack on its store."""

    def change(name):
        folder = shutil.copytree(sound, tmp_path / name)
        with sqlite3.connect(folder / "prejudge.db") as plain:
            assert plain.execute(ATTACKS[name]).rowcount
        plain.close()
        return folder

    return change


@pytest.mark.parametrize("verb", VERBS)
def test_sound_store_gives_numbers(sound, tmp_path, verb):
    folder = shutil.copytree(sound, tmp_path / "copy")
    assert call(folder, *VERBS[verb]).returncode == 0


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_ends_every_command_with_2(changed, name):
    folder = changed(name)
    for verb, words in VERBS.items():
        done = call(folder, *words)
        assert (done.returncode, done.stdout) == (2, ""), verb
        assert "the store is damaged: " in done.stderr, verb
    assert not list(folder.glob("runs/*")) + list(folder.glob("*.csv")) + list(folder.glob("cards"))


@pytest.mark.parametrize("name", ["answers", "status", "manifest", "identity", "requests"])
def test_attack_ends_resume_with_2(changed, name):
    done = call(changed(name), "resume", "first", "--quiet")
    assert done.returncode == 2 and "the store is damaged: " in done.stderr
    assert "Head:" not in done.stdout


@pytest.mark.parametrize("name", ["labels", "factors", "removed", "added", "repointed"])
def test_resume_records_trials_anew(sound, changed, name):
    """Its trials are those of the plan again, so that the head is what it was."""
    with sqlite3.connect(sound / "prejudge.db") as plain:
        (head,) = plain.execute("SELECT head FROM run WHERE name = 'first'").fetchone()
    done = call(changed(name), "resume", "first", "--quiet")
    assert done.returncode == 0 and head.hex() in done.stdout


def test_unproved_marks_what_every_command_prints(changed):
    folder = changed("answers")
    for verb, words in VERBS.items():
        done = call(folder, *words, "--unproved")
        assert done.returncode in (0, 5), (verb, done.stderr)
        assert verb in ("card", "export") or "UNPROVED" in done.stdout, verb
    rows = pl.read_csv(folder / "estimates.csv")
    assert all("unproved" in caveats for caveats in rows["caveats"])
    assert all("unproved" in c for c in pl.read_parquet(folder / "runs" / "first" / "estimates.parquet")["caveats"])
    cases = ElementTree.parse(folder / "gate.xml").iter("testcase")
    assert all(case.get("name").startswith("UNPROVED") for case in cases)
    assert "UNPROVED" in (folder / "runs" / "first" / "report.html").read_text("utf-8")
    card = (folder / "cards" / "model-card.md").read_text("utf-8")
    numbers = [line for line in card.splitlines() if "delta" in line and line.startswith("|")]
    assert numbers and all("UNPROVED" in line for line in numbers)
    (listed,) = folder.glob("runs/compare-*/differences.csv")
    assert all("unproved" in caveats for caveats in pl.read_csv(listed)["caveats"])
    assert '"head":""' in (folder / "runs" / "first" / "manifest.json").read_text("utf-8").replace(" ", "")
