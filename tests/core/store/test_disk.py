"""A disk that fills up, and a store that is taken away, in the middle of a run."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from fakes import FakeModel, text_of

from prejudge.core.contracts.errors import StoreError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, statistics
from prejudge.core.store.checks import Checks
from prejudge.testing import raises_code

TRIALS = 400


@pytest.fixture
def run(catalogue):
    """Return a function that runs a study of long answers on a store, and gives what was asked."""
    FakeModel.script = lambda request, seen: Generation(text=f"{text_of(request)} " * 2_000)

    def call(store, name="run"):
        study = catalogue.study("count", {"subject": "fake"}, {"n": TRIALS})
        asyncio.run(execute(catalogue, study, store, RunOptions(name=name)))
        return len(FakeModel.made[-1].asked)

    return call


def is_sound(path):
    connection = sqlite3.connect(path)
    problems = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    with Store(path, writable=False) as store:
        return problems == [("ok",)] and list(Checks(store).problems()) == []


def kept(path):
    with Store(path, writable=False) as store:
        return statistics(store)["Exchange"]


def test_full_store_stops_the_run_and_can_be_resumed(tmp_path, run, catalogue):
    path = tmp_path / "store.db"
    with Store(path) as store:
        sa.event.listen(store.engine, "begin", lambda c: c.exec_driver_sql("PRAGMA max_page_count=500"), insert=True)
        with raises_code(StoreError, "store.full"):
            run(store)
    assert is_sound(path) and 0 < (before := kept(path)) < TRIALS
    with Store(path) as store:
        assert run(store) == TRIALS - before
        assert score(catalogue, store, "run").last["status"].to_list() == ["ok"] * TRIALS


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a file system of its own, of 3 MB, or skip."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "prejudge-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_stops_the_run_and_can_be_resumed(small_disk, run, catalogue):
    path, ballast = small_disk / "store.db", small_disk / "ballast"
    ballast.write_bytes(bytes(1_200_000))
    with raises_code(StoreError, "store.full"), Store(path) as store:
        run(store)
    ballast.unlink()
    assert is_sound(path) and 0 < (before := kept(path)) < TRIALS
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with Store(path) as store:
        assert run(store) == TRIALS - before
        assert score(catalogue, store, "run").last["status"].to_list() == ["ok"] * TRIALS


def in_mid_run(act):
    """Have the model do something once, as it gives its hundredth answer."""
    done = []

    def script(request, seen):
        if len(FakeModel.made[-1].asked) >= 100 and not done:
            done.append(act())

    FakeModel.script = script


def remove(path, parts):
    for part in parts:
        Path(f"{path}{part}").unlink()


@pytest.mark.parametrize("parts", [["", "-wal", "-shm"], [""], ["-wal"], ["-shm"]])
def test_removed_store_stops_the_run(tmp_path, run, parts):
    path = tmp_path / "store.db"
    in_mid_run(lambda: remove(path, parts))
    with raises_code(StoreError, "store.gone"), Store(path) as store:
        run(store)
    assert 100 <= len(FakeModel.made[-1].asked) < 120, "asked on although nothing could be kept"
    assert path.exists() == ("" not in parts), "a new store was made where the old one was"


@pytest.mark.parametrize("part", ["-wal", "-shm"])
def test_store_whose_log_was_removed_is_sound(tmp_path, run, part):
    path = tmp_path / "store.db"
    in_mid_run(lambda: remove(path, [part]))
    with raises_code(StoreError, "store.gone"), Store(path) as store:
        run(store)
    assert is_sound(path)
    before = kept(path)
    FakeModel.script = None
    with Store(path) as store:
        assert run(store) == TRIALS - before and get_run(store, "run").state == "finished"


def test_replaced_store_is_not_written_to(tmp_path, run):
    path, other = tmp_path / "store.db", tmp_path / "other.db"
    Store(other).close()
    in_mid_run(lambda: (remove(path, ["-wal", "-shm"]), os.replace(other, path)))
    with raises_code(StoreError, "store.gone"), Store(path) as store:
        run(store)
    assert is_sound(path) and kept(path) == 0


def test_image_of_a_removed_store_makes_no_new_one(tmp_path):
    path = tmp_path / "store.db"
    with Store(path) as store:
        name = store.keep(b"image", "image/png")
        path.unlink()
        store.engine.dispose()
        with raises_code(StoreError, "store.gone"):
            store.blob(name)
    assert not path.exists()


def test_log_of_a_removed_store_does_not_get_into_a_new_one(tmp_path, run):
    path = tmp_path / "store.db"
    in_mid_run(lambda: remove(path, [""]))
    with raises_code(StoreError, "store.gone"), Store(path) as store:
        run(store)
        assert Path(f"{path}-wal").exists()
    Store(path).close()
    assert is_sound(path) and kept(path) == 0
