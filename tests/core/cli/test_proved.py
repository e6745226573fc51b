"""The ten ways to change a store behind its back: no command prints a number that the head does not follow from."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError
from prejudge.core.store import Store, get_run
from prejudge.core.view.numbers import numbers_of
from prejudge.core.view.room import Room
from prejudge.testing import raises_code

from ...command import call

SMALL = ("--set", "per_cell=2", "--set", "domains=beauty profession")
STUDY = ("run", "subtle-sai", "--model", "simulated-fair", *SMALL, "--quiet")
DORA = ("run", "dora-t2t", "--model", "simulated-biased", "--model", "sentiment=simulated-biased", "--quiet")
DORA += ("--limit", "6", "--set", "letters=ab", "--set", "samples=2", "--set", "dimensions=age")
POLICY = 'study = "subtle-sai"\n[[rules]]\nname = "small"\nmeasure = "delta_PL"\nmax = 100\non = "value"\n'
VERBS = {
    "score": ("score", "first"),
    "gate": ("gate", "first", "--policy", "policy.toml", "--junit", "gate.xml"),
    "compare": ("compare", "second", "first", "--allow-different"),
    "card": ("export", "first", "--what", "card", "--out", "cards"),
    "export": ("export", "first", "--out", "estimates.csv"),
}
OBSERVING = {
    "observations": ("export", "first", "--what", "observations", "--out", "rows.csv"),
    "recheck": ("lab", "recheck", "first", "--sample", "5"),
    "associations": ("study", "associations", "first"),
    "levels": ("study", "levels", "sheet", "first"),
    "tuples": ("study", "tuples", "sheet", "first"),
    "bundle": ("cache", "export", "first", "--out", "b.db.gz"),
}
"""Commands that read trials and score nothing."""
ANALYSES = {
    "variance": ("lab", "variance", "first"),
    "plan": ("plan", "subtle-sai", *SMALL, "--pilot", "first"),
    "replicate": ("study", "replicate", "subtle-sai", "--run", "first", "--model", "GPT-3.5"),
    "multiverse": ("lab", "multiverse", "subtle-sai", "--model", "simulated-fair", *SMALL),
    "converge": ("lab", "converge", "beauty-and-competence", "--from-run", "first"),
    "baseline": ("gate", "third", "--policy", "baseline.toml"),
    "other run": ("compare", "first", "second", "--allow-different"),
}
"""Commands that score runs that are not the only one they name."""
DOOR = {
    "score": lambda: prejudge.score("first"),
    "load": lambda: prejudge.load("first"),
    "observe": lambda: prejudge.observe("first"),
    "compare": lambda: prejudge.compare("second", "first", allow_different=True),
    "variance": lambda: prejudge.variance("first"),
    "multiverse": lambda: prejudge.multiverse(
        "subtle-sai", "simulated-fair", per_cell=2, domains=["beauty profession"]
    ),
    "converge": lambda: prejudge.converge("beauty-and-competence", runs=["first"]),
    "smallest_effects": lambda: prejudge.smallest_effects("subtle-sai", per_cell=2, pilot="first"),
    "draw_sample": lambda: prejudge.draw_sample("first", "chosen", ["positive", "negative", "neutral"], n=20),
    "numbers of the view": lambda: viewed("first"),
}
BASELINE = """
[[rules]]
name = "no worse"
measure = "delta_PL"
baseline = "first"
max_increase = 500
"""
FIRST = "run_id = (SELECT id FROM run WHERE name = 'first')"
ATTACKS = {
    "answers": """UPDATE exchange SET response =
        replace(replace(response, 'Option 1', 'Option 3'), '"text":"', '"text":" ')""",
    "labels": "UPDATE run_trial SET factors = (SELECT b.factors FROM run_trial b WHERE b.run_id = run_trial.run_id AND "
    f"b.stage = run_trial.stage AND b.ordinal = 1 - run_trial.ordinal) WHERE ordinal < 2 AND {FIRST}",
    "status": "UPDATE exchange SET status = 'refused' WHERE id = (SELECT exchange_id FROM run_trial WHERE ordinal = 1 "
    f"AND {FIRST})",
    "factors": f"UPDATE run_trial SET factors = replace(factors, '\":\"', '\":\"not ') WHERE {FIRST}",
    "removed": f"DELETE FROM run_trial WHERE ordinal > 4 AND {FIRST}",
    "added": "INSERT INTO run_trial SELECT run_id, stage, ordinal + 1000, trial || 'x', factors, key, exchange_id, "
    f"digest FROM run_trial WHERE {FIRST}",
    "manifest": """UPDATE run SET manifest = replace(manifest, '"python":"', '"python":"0')""",
    "identity": "UPDATE model SET identity = replace(identity, 'simulated', 'stimulated')",
    "repointed": f"UPDATE run_trial SET exchange_id = exchange_id - 1 WHERE ordinal = 4 AND {FIRST}",
    "requests": "UPDATE exchange SET request = (SELECT b.request FROM exchange b WHERE b.id = 3 - exchange.id) "
    "WHERE id < 3",
}


def run(folder, name, *words):
    done = call(folder, *words)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(folder / "prejudge.db") as plain:
        plain.execute("UPDATE run SET name = ? WHERE id = (SELECT max(id) FROM run)", (name,))
    plain.close()


def viewed(name):
    with Store("prejudge.db", writable=False) as opened:
        return numbers_of(Room(opened, Catalogue.load(None), Path("runs")), get_run(opened, name))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a folder with a store of runs named first, second (of another seed) and third (of another model)."""
    folder = tmp_path_factory.mktemp("sound")
    run(folder, "first", *STUDY)
    run(folder, "second", *STUDY, "--set", "seed=1")
    run(folder, "third", *(word.replace("fair", "biased") for word in STUDY))
    (folder / "policy.toml").write_text(POLICY)
    (folder / "baseline.toml").write_text(BASELINE)
    shutil.rmtree(folder / "runs")
    return folder


@pytest.fixture(scope="module")
def discovered(tmp_path_factory):
    """Return a folder with a store of a run named first, which found associations."""
    folder = tmp_path_factory.mktemp("discovered")
    run(folder, "first", *DORA)
    shutil.rmtree(folder / "runs")
    return folder


@pytest.fixture
def changed(sound, tmp_path):
    """Return a function that makes a copy of a folder with an attack on its store."""

    def change(name, folder=sound):
        folder = shutil.copytree(folder, tmp_path / name)
        with sqlite3.connect(folder / "prejudge.db") as plain:
            assert plain.execute(ATTACKS[name]).rowcount
        plain.close()
        return folder

    return change


SOME = {"answers", "removed", "manifest"}
"""Attacks on answers, on trials that are no more, and on no row of trials: others for analyses are tried in soak."""
EVERY = [name if name in SOME else pytest.param(name, marks=pytest.mark.soak) for name in ATTACKS]


@pytest.mark.parametrize("verb", [*VERBS, *ANALYSES, "recheck"])
def test_sound_store_gives_numbers(sound, tmp_path, verb):
    folder = shutil.copytree(sound, tmp_path / "copy")
    assert call(folder, *(VERBS | ANALYSES | OBSERVING)[verb]).returncode == 0


def test_sound_store_gives_associations(discovered, tmp_path):
    folder = shutil.copytree(discovered, tmp_path / "copy")
    assert call(folder, *OBSERVING["associations"]).returncode == 0


def ensure_refused(folder, commands):
    """Fail if a command prints or writes something, or does not say that the store is damaged."""
    for verb, words in commands.items():
        done = call(folder, *words)
        assert (done.returncode, done.stdout) == (2, ""), verb
        assert "the store is damaged: " in done.stderr or "does not match its identity" in done.stderr, verb
    written = ("runs/*", "*.csv", "*.gz", "cards")
    assert not [path for pattern in written for path in folder.glob(pattern)]


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_ends_every_command_with_2(changed, name):
    ensure_refused(changed(name), VERBS)


@pytest.mark.parametrize("name", EVERY)
def test_attack_ends_analyses_with_2(changed, name):
    ensure_refused(changed(name), ANALYSES)


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_ends_what_scores_nothing_with_2(changed, discovered, name):
    ensure_refused(changed(name, discovered), OBSERVING)


@pytest.mark.parametrize("name", EVERY)
def test_attack_is_an_error_at_the_door(changed, monkeypatch, name):
    monkeypatch.chdir(changed(name))
    for verb in DOOR.values():
        with raises_code(DataError, "store.row-damaged"):
            verb()
    assert not list(Path().glob("runs/*")) + list(Path().glob("samples/*"))


@pytest.mark.parametrize("name", ["answers", "status", "requests"])
def test_forged_answers_are_not_taken_from_the_cache(changed, name):
    """A run of the same questions would give them a head of its own."""
    folder = changed(name)
    for more in ((), ("--mode", "replay")):
        done = call(folder, *STUDY, *more)
        assert done.returncode == 2 and "the store is damaged: " in done.stderr, more
        assert "Head:" not in done.stdout
    assert not list(folder.glob("runs/*"))


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
