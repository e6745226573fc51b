"""Names of runs, and what a store of somebody else's can make the commands write."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prejudge.core.store.names import MOST_BYTES, run_name

from ...command import Done, call
from ...forging import reseal

HOSTILE = {
    "../X": "+2E.+2FX",
    "..": "+2E+2E",
    "/abs/olute": "+2Fabs+2Folute",
    "C:\\X": "C+3A+5CX",
    ".ssh": "+2Essh",
    "-rf": "+2Drf",
    "a\x1b]0;x\x07\n": "a+1B+5D0+3Bx+07+0A",
    "a\u202eb\u2066\x9b": "a+202Eb+2066+9B",
    "": "+",
    "NUL": "+NUL",
    "com1.txt": "+com1.txt",
    "x; rm -rf ~ #`$(y)'": "x+3B rm -rf +7E +23+60+24+28y+29+27",
    "end. ": "end.+20",
    "a" * 300: "a" * 180 + "+",
}


@pytest.mark.parametrize(("text", "name"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_name_that_is_no_folder_is_written_so_that_it_is_one(text, name):
    assert run_name(text).startswith(name) and len(run_name(text)) < 300


@pytest.mark.parametrize("name", ["20261101-120000-subtle-sai-gpt-4o-ab12", "my run_2+b", "Ärger", "연구", "a..b"])
def test_usual_name_stays(name):
    assert run_name(name) == name


@given(st.text(max_size=300) | st.lists(st.sampled_from([*HOSTILE, "/", ".", " ", "con"]), max_size=5).map("".join))
def test_name_is_one_plain_part_of_a_path_on_every_system(text):
    name = run_name(text)
    assert run_name(name) == name and 0 < len(name.encode()) <= MOST_BYTES
    assert re.fullmatch(r"[\w.+ -]+", name) and name[0] not in ".- " and name[-1] not in ". "
    assert name.partition(".")[0].rstrip().upper() not in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9"}


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """Return a folder with a store of two runs."""
    folder = tmp_path_factory.mktemp("template")
    for model in ("simulated-biased", "simulated-fair"):
        words = ["run", "subtle-sai", "--model", model, "--set", "per_cell=1", "--set", "subtle.resamples=99", "-q"]
        done = call(folder, *words)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def clone(template, tmp_path) -> Path:
    """Return a folder of somebody else's, with room around it to see what is written there."""
    place = tmp_path / "around" / "clone"
    shutil.copytree(template, place)
    shutil.rmtree(place / "runs")
    return place


def rename(folder: Path, name: str) -> None:
    with sqlite3.connect(folder / "prejudge.db") as store:
        (latest,) = store.execute("SELECT max(id) FROM run").fetchone()
        store.execute("UPDATE run SET name = ? WHERE id = ?", (name, latest))
        store.execute("UPDATE run SET manifest = json_set(manifest, '$.run', ?) WHERE id = ?", (name, latest))
    store.close()
    reseal(folder / "prejudge.db")


def around(folder: Path) -> set[Path]:
    outside = folder.parents[1]
    return {path for path in outside.rglob("*") if not path.is_relative_to(folder)}


def calls(folder: Path) -> list[Done]:
    every = ["score", "export", "export --what observations", "export --what card"]
    every += ["cache export", "list runs", "cache verify"]
    return [call(folder, *words.split()) for words in every]


@pytest.mark.parametrize("name", ["../X", "ABSOLUTE", "..", "a/../../../X", "\x1b[31m\x9b\u202e/X"])
def test_hostile_name_writes_nothing_outside(clone, tmp_path, name):
    name = str(tmp_path / "X") if name == "ABSOLUTE" else name
    rename(clone, name)
    before = around(clone)
    for done in calls(clone):
        assert done.returncode == 0, done.stderr
        assert not set("\x1b\x9b\u202e\x07") & set(done.stdout + done.stderr)
    assert around(clone) == before and not Path("/X").exists()
    safe = run_name(name)
    assert (clone / "runs" / safe / "estimates.csv").is_file() and (clone / f"{safe}.db.gz").is_file()
    assert (clone / f"{safe}-estimates.csv").is_file() or (clone / f"{safe}-estimates.parquet").is_file()


def test_run_with_a_hostile_name_is_known_by_its_safe_one(clone, tmp_path):
    rename(clone, "../X")
    safe = run_name("../X")
    assert safe in call(clone, "list", "runs").stdout
    assert call(clone, "score", safe).returncode == 0
    resumed = call(clone, "resume", safe, "-q")
    assert resumed.returncode == 0, resumed.stderr
    with sqlite3.connect(clone / "prejudge.db") as store:
        assert store.execute("SELECT count(*) FROM run").fetchone() == (2,)
    store.close()
    # Into a store of one's own it comes by that name.
    own = tmp_path / "own"
    own.mkdir()
    assert call(own, "cache", "merge", str(clone / "prejudge.db")).returncode == 0
    with sqlite3.connect(own / "prejudge.db") as store:
        assert (safe,) in store.execute("SELECT name FROM run").fetchall()
    store.close()
    assert call(clone, "cache", "export", safe, "--out", "b.db.gz").returncode == 0
    assert call(own, "cache", "import", str(clone / "b.db.gz"), "--as", "../Y").returncode == 2
    assert call(own, "cache", "import", str(clone / "b.db.gz"), "--as", "y").returncode == 0


def test_hostile_study_names_no_folder_of_a_comparison(clone):
    with sqlite3.connect(clone / "prejudge.db") as store:
        store.execute("UPDATE run SET study = '../../Y', manifest = json_set(manifest, '$.study.name', '../../Y')")
        names = [name for (name,) in store.execute("SELECT name FROM run ORDER BY id")]
    store.close()
    before = around(clone)
    done = call(clone, "compare", *names)
    assert done.returncode in (0, 2) and around(clone) == before, done.stderr
    assert {path.parent for path in (clone / "runs").glob("*")} <= {clone / "runs"}


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("inner", ["", "estimates.csv", "report.html", "figures", "figures/x.svg"])
def test_link_among_the_output_is_not_followed(clone, tmp_path, inner):
    name = latest(clone)
    victim = tmp_path / "victim"
    folder = inner in ("", "figures")
    victim.mkdir() if folder else victim.write_text("mine")
    link(clone / "runs" / name / inner if inner else clone / "runs" / name, victim)
    done = call(clone, "score")
    assert done.returncode == 2 and "is a link to" in done.stderr and "Traceback" not in done.stderr
    if not inner:
        assert call(clone, "export", "--what", "card").returncode == 2
    assert list(victim.iterdir()) == [] if folder else victim.read_text() == "mine"


def test_link_with_the_name_of_an_export_is_not_followed(clone, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    name = latest(clone)
    words = ["export", "--format", "csv"]
    link(clone / f"{name}-estimates.csv", victim)
    done = call(clone, *words)
    assert done.returncode == 2 and "is a link to" in done.stderr
    for out in (f"{name}.db.gz",):
        link(clone / out, victim)
        assert call(clone, "cache", "export", "--force").returncode == 0
    assert victim.read_text() == "mine"
    # What a person names is what a person gets.
    assert call(clone, *words, "--out", f"{name}-estimates.csv").returncode == 0
    assert victim.read_text() != "mine"


def test_links_within_the_output_and_of_the_whole_folder_stay_possible(clone, tmp_path):
    (tmp_path / "large").mkdir()
    (clone / "runs").symlink_to(tmp_path / "large")
    assert call(clone, "score").returncode == 0
    place = tmp_path / "large" / latest(clone)
    (place / "copy.csv").symlink_to("estimates.csv")
    done: Any = call(clone, "score")
    assert done.returncode == 0, done.stderr


def latest(folder: Path) -> str:
    with sqlite3.connect(folder / "prejudge.db") as store:
        (name,) = store.execute("SELECT name FROM run ORDER BY id DESC").fetchone()
    store.close()
    return str(name)
