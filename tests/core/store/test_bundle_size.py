"""A small bundle never takes much memory: how far it expands, and what its rows hold, is limited."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import FakeModel

from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import Generate, Generation, Message, Text
from prejudge.core.store import Store, get_run, statistics
from prejudge.core.store.bundle import export_run
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .bundles import edit, expanded

MEMORY_MIB = 400
IMPORT = """
import sys
from pathlib import Path
from prejudge.core.contracts.errors import DataError
from prejudge.core.store import Store
from prejudge.core.store.unbundle import Bundle, import_bundle
try:
    with Store(sys.argv[1]) as store, Bundle(sys.argv[2]) as opened:
        import_bundle(store, opened)
    print("imported")
except DataError as error:
    print(error.code)
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")


def export(store, name, path):
    return export_run(store, get_run(store, name), path).path


@pytest.fixture
def bundle(run_study, store, tmp_path):
    name, _ = run_study(n=12, name="r")
    return export(store, name, tmp_path / "r.db.gz")


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


def imported_apart(path, folder):
    """Return what an import in another process ends with, and its peak of memory in MiB."""
    command = [sys.executable, "-c", IMPORT, str(folder / "e.db"), str(path)]
    code, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return code, int(peak)


@needs_proc
def test_small_bundle_of_gigabytes_is_refused_in_little_memory(bundle, tmp_path):
    with gzip.open(bundle, "wb", 9) as packed:
        for _ in range(150):
            packed.write(bytes(1 << 20))
    assert bundle.stat().st_size < 200_000
    code, peak = imported_apart(bundle, tmp_path)
    assert code == "bundle.size" and peak < MEMORY_MIB


@needs_proc
def test_long_text_that_many_requests_share_takes_little_memory(run_study, store, tmp_path, monkeypatch):
    """It is stored once; as objects each request has its own."""
    long = Message("user", (Text("x" * 1_000_000),))
    monkeypatch.setattr("fakes.ask", lambda text: Generate(messages=(long, Message("user", (Text(text),)))))
    name, _ = run_study(n=300)
    with store.engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM part").scalar_one() == 1
    code, peak = imported_apart(export(store, name, tmp_path / "r.db.gz"), tmp_path)
    assert code == "imported" and peak < MEMORY_MIB


@pytest.mark.parametrize("change", ["run_trial SET trial", "attempt SET message", "run SET manifest"])
def test_rows_of_every_table_are_measured(run_study, store, elsewhere, tmp_path, monkeypatch, change):
    FakeModel.script = lambda request, seen: ValueError("no")
    path = export(store, run_study(n=3)[0], tmp_path / "r.db.gz")
    monkeypatch.setattr("prejudge.core.store.unbundle.CELL_BYTES", 100_000)
    edit(path, f"UPDATE {change} = '{'x' * 200_000}'", digests=False)
    with raises_code(DataError, "bundle.size"), Bundle(path) as opened:
        import_bundle(elsewhere, opened)
    assert not any(statistics(elsewhere).values())


def test_row_that_is_too_large_is_neither_written_nor_read(run_study, store, elsewhere, tmp_path, monkeypatch):
    FakeModel.script = lambda request, seen: Generation(text="x" * 50_000)
    name, _ = run_study(n=3)
    path = export(store, name, tmp_path / "r.db.gz")
    monkeypatch.setattr("prejudge.core.store.bundle.KEY_BYTES", 40_000)
    with raises_code(DataError, "bundle.size"):
        export(store, name, tmp_path / "again.db.gz")
    assert not (tmp_path / "again.db.gz").exists()
    with raises_code(DataError, "bundle.size"), Bundle(path) as opened:
        import_bundle(elsewhere, opened)
    assert not any(statistics(elsewhere).values())


def test_answers_to_one_key_are_counted_together(run_study, store, elsewhere, tmp_path, monkeypatch):
    FakeModel.script = lambda request, seen: Generation(text="x" * 5_000)
    name, _ = run_study(n=3)
    path = export(store, name, tmp_path / "r.db.gz")
    more = ", ".join(f"({number})" for number in range(1, 5))
    columns = "model_id, operation, request, response, status, input_tokens, output_tokens, latency, created"
    edit(
        path,
        f"WITH more(n) AS (VALUES {more}) INSERT INTO exchange (key, generation, {columns}) "
        f"SELECT key, n, {columns} FROM exchange, more WHERE id = 1",
        "UPDATE run_trial SET exchange_id = (SELECT max(id) FROM exchange) WHERE ordinal = 0",
    )
    monkeypatch.setattr("prejudge.core.store.bundle.KEY_BYTES", 4_000)
    with raises_code(DataError, "bundle.size"), Bundle(path) as opened:
        import_bundle(elsewhere, opened)


def test_run_that_looks_like_a_bomb_is_written_so_that_it_can_be_read(
    run_study, store, elsewhere, tmp_path, monkeypatch
):
    FakeModel.script = lambda request, seen: Generation(text="x" * 100_000)
    for module in ("bundle", "unbundle"):
        monkeypatch.setattr(f"prejudge.core.store.{module}.SMALL", 100_000)
    name, _ = run_study(n=60)
    path = export(store, name, tmp_path / "r.db.gz")
    with expanded(path) as file:
        assert len(gzip.compress(file.read_bytes())) * 100 < file.stat().st_size < path.stat().st_size * 2
    path = export(store, name, path)
    with Bundle(path) as opened:
        assert import_bundle(elsewhere, opened).exchanges == 60


def test_bundle_is_small(run_study, store, tmp_path):
    """Keys and digests, 96 bytes of each answer, cannot be compressed."""
    name, _ = run_study(n=3_000)
    size = os.path.getsize(export(store, name, tmp_path / "r.db.gz"))
    assert size < 300 * 3_000
