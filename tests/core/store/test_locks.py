"""No transaction of a merge, an import or of what follows a killed one grows with what is copied."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing

import pytest
import sqlalchemy as sa
from fakes import FakeModel
from provider import Provider

from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.batch.options import BatchOptions
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, chunks, get_run, statistics
from prejudge.core.store.bundle import export_run
from prejudge.core.store.chunks import Chunks
from prejudge.core.store.content import Picture
from prejudge.core.store.intake import Intake
from prejudge.core.store.merge import merge
from prejudge.core.store.prune import PruneOptions, prune, would_go
from prejudge.core.store.unbundle import Bundle, import_bundle

FEW, MANY = 10, 100


@pytest.fixture
def written():
    """Return how many rows each transaction of SQLite that was committed since then has changed."""
    counts, before = [], {}

    def begun(connection):
        driver = connection.connection.driver_connection
        before[driver] = driver.total_changes

    def committed(connection):
        driver = connection.connection.driver_connection
        counts.append(driver.total_changes - before[driver])

    listeners = {"begin": begun, "commit": committed}
    for name, listener in listeners.items():
        sa.event.listen(sa.Engine, name, listener)
    yield counts
    for name, listener in listeners.items():
        sa.event.remove(sa.Engine, name, listener)


@pytest.fixture
def slow(monkeypatch):
    """Let every piece take longer than the lock may be held, and a piece and a removal have few rows."""
    monkeypatch.setattr(chunks, "LOCKED_SECONDS", 0.0)
    for name in ("PIECE", "REMOVED"):
        monkeypatch.setattr(chunks, name, FEW)


@pytest.fixture
def other(tmp_path, catalogue, monkeypatch):
    """Return a store with a run of many trials, half of which failed, and one whose answers came in a batch."""
    monkeypatch.setattr(RetryPolicy, "wait", lambda *_: 0.0)

    def script(request, seen):
        odd = int(request.messages[0].parts[0].text.split()[-1]) % 2
        return PermanentError("too long") if odd else Generation(text="x")

    with Store(tmp_path / "other.db") as opened:
        study = catalogue.study("count", {"subject": "fake"}, {"n": 2 * MANY})
        FakeModel.script = script
        asyncio.run(execute(catalogue, study, opened, RunOptions(name="failing")))
        FakeModel.script = None
        monkeypatch.setattr(FakeModel, "batch_api", Provider(), raising=False)
        options = RunOptions(name="batched", batch=BatchOptions(poll_seconds=0.001, sentinel=0, only=True))
        asyncio.run(execute(catalogue, study, opened, options))
        yield opened


def test_slow_merge_writes_few_rows_at_a_time(store, other, slow, written):
    merge(store, other)
    counts = statistics(store)
    assert (counts["RunTrial"], counts["Attempt"], counts["Exchange"]) == (4 * MANY, MANY, 2 * MANY)
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM batch_item").scalar_one() == MANY
    # With the rows of a piece, a model, tallies, parts and the sign of life are written.
    assert max(written) <= FEW + 6 and len(written) > 8 * MANY / FEW


def test_slow_import_writes_few_rows_at_a_time(store, other, slow, written, tmp_path):
    path = export_run(other, get_run(other, "failing"), tmp_path / "failing.db.gz").path
    written.clear()
    with Bundle(path) as bundle:
        import_bundle(store, bundle)
    assert statistics(store)["Attempt"] == MANY and max(written) <= FEW + 6


def test_what_a_killed_merge_left_goes_few_rows_at_a_time(store, other, slow, written, monkeypatch):
    """Killed before the last chunk: trials, failures and items of a batch are those of a copy then."""
    commit = Chunks.commit

    def cut(self, write):
        if write.__name__ == "end":
            raise KeyboardInterrupt
        return commit(self, write)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Chunks, "commit", cut)
        patch.setattr(Chunks, "end_run", lambda *_: "x")
        merge(store, other)
    assert statistics(store)["RunTrial"] == 4 * MANY and statistics(store)["Attempt"] == MANY
    store.holds.forget()  # as if the process that works on it were killed
    number = store.begin_run("mine", "count", b"{}")
    store.end_run(number, "finished", b"{}")
    written.clear()
    given_up = []
    monkeypatch.setattr(
        "prejudge.core.store.prune.give_up", lambda store: (chunks.give_up(store), given_up.extend(written))
    )
    prune(store, get_run(store, "mine"), PruneOptions(killed=True))
    assert sum(given_up) >= 6 * MANY and max(given_up) <= FEW
    with store.engine.connect() as connection:
        left = [connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one() for name in ("run", "batch")]
    assert left == [0, 0] and statistics(store)["RunTrial"] == 0


def test_chunk_ends_when_the_disk_becomes_slow(store, monkeypatch):
    """Chunks double while they are quick; the first slow piece is the last one of its chunk."""
    monkeypatch.setattr(chunks, "LOCKED_SECONDS", 0.25)
    pieces, sizes, commit = [], [], Chunks.commit

    def take(self, rows):
        pieces.append(len(rows))
        if sum(sizes) + sum(pieces) >= 4 * chunks.FIRST:
            time.sleep(0.3)

    def counted(self, write):
        found = commit(self, write)
        sizes.append(sum(pieces))
        pieces.clear()
        return found

    monkeypatch.setattr(Intake, "pictures", take)
    with Chunks(store, "x", {}) as one:
        monkeypatch.setattr(Chunks, "commit", counted)
        one.pictures(Picture(str(number), "image/png", b"") for number in range(6 * chunks.FIRST))
    quick, slow = [size for size in sizes if size > chunks.PIECE], [size for size in sizes if 0 < size <= chunks.PIECE]
    assert quick[:2] == [chunks.FIRST, 2 * chunks.FIRST] and quick[2] == chunks.FIRST
    assert set(slow) == {chunks.PIECE} and sum(quick + slow) == 6 * chunks.FIRST


def test_long_texts_count_as_several_rows(store, monkeypatch):
    sizes = []
    monkeypatch.setattr(Intake, "pictures", lambda self, rows: sizes.append(len(rows)))
    with Chunks(store, "x", {}) as one:
        one.pictures(Picture(str(number), "image/png", bytes(50 * chunks.LONG)) for number in range(20))
    assert set(sizes) == {5} and sum(sizes) == 20


def test_what_prune_would_remove_is_told_while_somebody_writes(store, run_study):
    name, _ = run_study(n=5)
    with closing(sqlite3.connect(store.url.database, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert would_go(store, get_run(store, name), PruneOptions()).trials == 5
        assert time.monotonic() - began < 30  # a writer would wait for a minute, and then fail
        writer.execute("ROLLBACK")
