"""A store on read-only media is read as it is, its log included, or refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from prejudge.core.contracts.errors import StoreError
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, list_runs, read_trials
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.crew import crew
from prejudge.core.store.schema import SCHEMA
from prejudge.testing import raises_code

from ...media import Media

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders are made read-only with the means of POSIX")
KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def media(tmp_path):
    made = Media(tmp_path)
    yield made
    made.close()


@pytest.fixture
def disc(run_study, store, tmp_path):
    """Return a folder with a copy of a store of one run."""
    run_study(n=12, name="r")
    store.close()
    folder = tmp_path / "disc"
    folder.mkdir()
    shutil.copyfile(str(store.url.database), folder / "s.db")
    return folder


def kill(path, *statements):
    """Run statements in a process that is killed, so that its log is left."""
    subprocess.run([sys.executable, "-c", KILLED, str(path), *statements], check=False)


def with_log(disc, *, index):
    """Let the last state of a run be in the log only."""
    kill(
        disc / "s.db", "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "UPDATE run SET state = 'interrupted'"
    )
    assert (disc / "s.db-wal").stat().st_size > 0
    if not index:
        (disc / "s.db-shm").unlink()


def test_everything_is_read_as_from_a_store_that_can_be_written(disc, store, media, catalogue, tmp_path):
    place = media.of(disc) / "s.db"
    before = sorted(path.name for path in disc.iterdir())
    with Store(place, writable=False) as opened:
        assert [run.name for run in list_runs(opened)] == ["r"]
        assert read_trials(opened, 1, "count").equals(read_trials(store, 1, "count"))
        assert list(Checks(opened).problems()) == []
        assert score(catalogue, opened, "r").estimates == score(catalogue, store, "r").estimates
        exported = export_run(opened, get_run(opened, "r"), tmp_path / "a.db.gz")
        assert exported.head == export_run(store, get_run(store, "r"), tmp_path / "b.db.gz").head
    assert sorted(path.name for path in disc.iterdir()) == before


def test_it_is_not_written(disc, media):
    place = media.of(disc) / "s.db"
    with raises_code(StoreError, "store.read-only", "s.db"):
        Store(place)
    with Store(place, writable=False) as opened, raises_code(StoreError, "store.read-only"):
        opened.keep(b"x", "image/png")


@pytest.mark.parametrize("index", [True, False], ids=["with index", "without index"])
def test_log_is_never_read_past(disc, media, index, tmp_path, monkeypatch):
    with_log(disc, index=index)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    place = media.of(disc) / "s.db"
    past = sqlite3.connect(f"{place.as_uri()}?immutable=1", uri=True)
    assert past.execute("SELECT state FROM run").fetchone() == ("finished",), "the log has to matter"
    past.close()
    with Store(place, writable=False) as opened:
        assert [run.state for run in list_runs(opened)] == ["interrupted"]
        assert len(list((tmp_path / "temporary").iterdir())) == (0 if index else 1)
        monkeypatch.setattr("prejudge.core.store.crew.EACH", 1)
        with crew(opened, 2) as readers:
            assert len(readers._helpers) == 1
            assert len(list((tmp_path / "temporary").iterdir())) == (0 if index else 1)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_empty_log_needs_no_copy(disc, media, monkeypatch, caplog):
    (disc / "s.db-wal").touch()
    with Store(media.of(disc) / "s.db", writable=False) as opened:
        assert [run.state for run in list_runs(opened)] == ["finished"]
    assert not caplog.records


def test_change_that_was_cut_off_is_taken_back(disc, media):
    """A journal holds what a transaction that did not end has overwritten."""
    ended = ("PRAGMA journal_mode=DELETE", "PRAGMA cache_size=2", "PRAGMA cache_spill=1", "BEGIN")
    kill(disc / "s.db", *ended, "UPDATE run SET state = 'failed'", "UPDATE exchange SET response = zeroblob(9999)")
    assert (disc / "s.db-journal").stat().st_size > 0
    with Store(media.of(disc) / "s.db", writable=False) as opened:
        assert [run.state for run in list_runs(opened)] == ["finished"]
        assert list(Checks(opened).problems()) == []


def test_copy_without_room_is_refused(disc, media, monkeypatch):
    with_log(disc, index=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(10))
    with raises_code(StoreError, "store.read-only-log", "s.db-wal", "TMPDIR"):
        Store(media.of(disc) / "s.db", writable=False)


def test_store_of_another_schema_is_refused(disc, media):
    with sqlite3.connect(disc / "s.db") as connection:
        connection.execute("UPDATE migration SET number = ?", (SCHEMA + 1,))
    connection.close()
    with raises_code(StoreError, "store.schema"):
        Store(media.of(disc) / "s.db", writable=False)


@pytest.mark.parametrize("change", ["log", "file"])
def test_change_by_another_user_meanwhile_is_not_missed(disc, media, change):
    place = media.of(disc) / "s.db"
    with Store(place, writable=False) as opened:
        assert len(list_runs(opened)) == 1
        for path in (disc, disc / "s.db"):
            path.chmod(0o755)
        if change == "log":
            (disc / "s.db-wal").write_bytes(b"x" * 100)
        else:
            os.utime(disc / "s.db", ns=(1, 1))
        with raises_code(StoreError, "store.changed"):
            list_runs(opened)


def test_path_may_have_any_characters(disc, media):
    odd = Path(shutil.copytree(disc, disc.parent / "a ?b#c%20d&e=é"))
    with Store(media.of(odd) / "s.db", writable=False) as opened:
        assert len(list_runs(opened)) == 1
