"""Nothing that is handed on names a folder of the author's machine; the run itself still finds its files."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shutil
import sqlite3
import zipfile
from pathlib import Path

import polars as pl
import pytest

from prejudge.adapters import reference
from prejudge.core.store import Store, get_run

from ..command import call

TOKEN = "q7xz41kd9w"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Return the folder to work in, and a folder with a model and data that nobody else has."""
    home = tmp_path / f"home-{TOKEN}"
    secret, work = home / "projects", tmp_path / "work"
    secret.mkdir(parents=True), work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PREJUDGE_CONFIG", str(home / "config"))
    shutil.copyfile(Path(__file__).parents[1] / "contracts" / "data" / "pairs.csv", secret / "my pairs & more.csv")
    return work, secret


def leaves(name, data):
    """Yield every text within a file, also within archives and tables."""
    yield name, name.encode()
    yield name, data
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from leaves(f"{name}/{member}", archive.read(member))
    if data.startswith(b"\x1f\x8b"):
        yield from leaves(f"{name}/expanded", gzip.decompress(data))
    if data.startswith(b"SQLite format 3"):
        with contextlib.closing(sqlite3.connect(":memory:")) as store:
            store.deserialize(data[:18] + b"\1\1" + data[20:])  # without a log, which has no place in memory
            yield name, "\n".join(store.iterdump()).encode()
    if data.startswith(b"PAR1"):
        frame = pl.read_parquet(io.BytesIO(data))
        binary = [column for column, kind in frame.schema.items() if kind == pl.Binary]
        yield name, json.dumps(frame.drop(binary).to_dicts(), default=str).encode()


def ensure_clean(work, secret):
    """Check every byte of every file but the store."""
    found = []
    for path in work.rglob("*"):
        if path.is_file() and "prejudge.db" not in path.name:
            found += [
                place
                for place, data in leaves(str(path.relative_to(work)), path.read_bytes())
                if TOKEN.encode() in data
            ]
    assert not found
    assert any(work.rglob("report.html")) and str(secret).count(TOKEN)


def done(work, *words, code=0):
    ended = call(work, *words)
    assert ended.returncode == code, (words, ended.stderr)
    return ended


def run_all(work, secret, model="hf-masked:{place}", folder="my model"):
    """Run the study on a copy of a model and on data, both by absolute path."""
    source = Path(reference.__file__).parent / "masked_biased"
    shutil.copytree(source, secret / folder, dirs_exist_ok=True)
    data = secret / "my pairs & more.csv"
    store = secret.parent / "prejudge.db"
    words = ["--data", str(data), "--store", str(store), "-q"]
    done(work, "run", "crows-pairs", "--model", model.format(place=secret / folder), *words, code=0)
    return ["--store", str(store)]


def test_nothing_handed_on_names_a_folder_of_the_author(world):
    work, secret = world
    store = run_all(work, secret)
    run_all(work, secret, folder="other")
    runs = [path.name for path in (work / "runs").iterdir()]
    for kind in ("parquet", "csv", "json", "latex"):
        done(work, "export", "--format", kind, "--out", f"estimates.{kind}", *store)
    for kind in ("parquet", "csv", "json"):
        done(work, "export", "--what", "observations", "--format", kind, "--out", f"observations.{kind}", *store)
    done(work, "export", "--what", "card", "--out", "card", *store)
    done(work, "compare", *runs, *store)
    for name in runs:
        done(work, "cache", "export", name, "--out", f"{name}.db.gz", *store)
    ensure_clean(work, secret)
    manifest = json.loads((work / "runs" / runs[0] / "manifest.json").read_bytes())
    assert manifest["data"].keys() == {"my pairs & more.csv"} and manifest["study"]["roles"]["subject"].startswith(
        "hf-masked:"
    )


def test_run_finds_its_files_again(world):
    work, secret = world
    store = run_all(work, secret)
    with sqlite3.connect(store[1]) as connection:
        connection.execute("DELETE FROM exchange WHERE id NOT IN (SELECT exchange_id FROM run_trial WHERE ordinal > 0)")
    connection.close()
    done(work, "resume", *store, "-q")
    done(work, "score", *store)
    ensure_clean(work, secret)


def test_changed_data_is_still_noticed(world):
    work, secret = world
    store = run_all(work, secret)
    with (secret / "my pairs & more.csv").open("a") as file:
        file.write("\n")
    assert "has changed" in done(work, "resume", *store, "-q", code=2).stderr


def test_changed_paths_are_not_believed(world):
    work, secret = world
    store = run_all(work, secret)
    with sqlite3.connect(store[1]) as connection:
        # The digests do not cover this column: what it says besides the paths must be what they cover.
        connection.execute("UPDATE run SET local = replace(local, 'crows', 'ravens')")
        (own, named) = connection.execute("SELECT local, manifest FROM run").fetchone()
    connection.close()
    assert TOKEN in own and TOKEN not in named
    with Store(store[1], writable=False) as opened:
        assert get_run(opened, "latest").own == named
