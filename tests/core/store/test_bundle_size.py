"""A small bundle never takes much memory: what its tables hold is known before it is decompressed or decoded."""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import polars as pl
import pyarrow.parquet
import pytest
from fakes import FakeModel
from hypothesis import given
from hypothesis import strategies as st

from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import Generation
from prejudge.core.store import Store, get_run, statistics
from prejudge.core.store import bundle as bundles
from prejudge.core.store.bundle import SCHEMAS, export_run, row_bytes, slices
from prejudge.core.store.parquet_sizes import expanded_bytes
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .test_bundle import edited, export, members, take, write

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
except DataError as error:
    print(error.code)
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


@pytest.fixture
def bundle(run_study, store, tmp_path):
    name, _ = run_study(n=12, name="r")
    return export(store, name, tmp_path / "r.zip")


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


def many(frame, rows):
    """Return so many exchanges, each with its own key."""
    return frame[:1].drop("key").join(pl.DataFrame({"key": [os.urandom(32) for _ in range(rows)]}), how="cross")


def long(rows, ending):
    """Return a change of exchanges after which there are so many, each with an answer of a megabyte."""
    response = pl.lit("x" * 1_000_000) + (pl.int_range(pl.len()).cast(pl.String) if ending else pl.lit(""))
    return lambda frame: many(frame, rows).with_columns(response=response).select(SCHEMAS["exchanges"].keys())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("ending", [False, True], ids=["dictionary", "compression"])
def test_small_bundle_of_gigabytes_is_refused_in_little_memory(bundle, tmp_path, ending):
    rows = 350 if ending else 800
    path = write(tmp_path / "t.zip", edited(bundle, "exchanges/00000.parquet", long(rows, ending)))
    assert path.stat().st_size < 200_000
    command = [sys.executable, "-c", IMPORT, str(tmp_path / "e.db"), str(path)]
    code, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert code == "bundle.size" and int(peak) < MEMORY_MIB


@pytest.mark.parametrize("kind", ["trials", "attempts"])
def test_other_tables_are_measured_too(bundle, store, elsewhere, tmp_path, kind):
    long = {"trials": "trial", "attempts": "message"}[kind]
    columns = [
        (pl.lit("x" * 1_000_000) if name == long else pl.lit(b"k" if dtype == pl.Binary else 0)).cast(dtype).alias(name)
        for name, dtype in SCHEMAS[kind].items()
    ]
    frame = pl.DataFrame({"row": range(400)}).select("row", *columns).drop("row")
    buffer = BytesIO()
    frame.write_parquet(buffer)
    content = members(bundle) | {f"{kind}/00000.parquet": buffer.getvalue()}
    with raises_code(DataError, "bundle.size"):
        take(elsewhere, write(tmp_path / "t.zip", content))
    assert not any(statistics(elsewhere).values())


def test_row_that_is_too_large_is_neither_written_nor_read(run_study, store, elsewhere, tmp_path, monkeypatch):
    FakeModel.script = lambda request, seen: Generation(text="x" * 5_000)
    name, _ = run_study(n=3)
    path = export(store, name, tmp_path / "r.zip")
    monkeypatch.setattr(bundles, "ROW_BYTES", 4_000)
    monkeypatch.setattr("prejudge.core.store.unbundle.ROW_BYTES", 4_000)
    with raises_code(DataError, "bundle.size"):
        export_run(store, get_run(store, name), tmp_path / "again.zip")
    with raises_code(DataError, "bundle.size"), Bundle(path) as opened:
        import_bundle(elsewhere, opened)


def test_answers_to_one_key_are_counted_together(bundle, elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr("prejudge.core.store.unbundle.MEMBER_BYTES", 20_000)

    def one_key(frame):
        times = pl.int_range(pl.len()).cast(pl.Float64)
        return pl.concat([frame[:1]] * 60).with_columns(created=times).select(frame.columns)

    parts = edited(bundle, "exchanges/00000.parquet", one_key)
    more = {f"exchanges/{i:05}.parquet": parts["exchanges/00000.parquet"] for i in range(3)}
    with raises_code(DataError, "bundle.size", "one key"):
        take(elsewhere, write(tmp_path / "t.zip", parts | more))


def test_large_run_is_written_in_files_that_can_be_read(run_study, store, tmp_path, monkeypatch):
    FakeModel.script = lambda request, seen: Generation(text="x" * 5_000)
    name, _ = run_study(n=20)
    whole = export(store, name, tmp_path / "whole.zip")
    for module in ("bundle", "unbundle"):
        monkeypatch.setattr(f"prejudge.core.store.{module}.MEMBER_BYTES", 30_000)
    monkeypatch.setattr(bundles, "SLICE_BYTES", 10_000)
    parts = export(store, name, tmp_path / "parts.zip")
    names = [member for member in members(parts) if member.startswith("exchanges/")]
    assert len(names) > 3 and len([member for member in members(whole) if member.startswith("exchanges/")]) == 1
    with Store(tmp_path / "e.db") as other:
        assert take(other, parts).exchanges == 20
        assert members(export(other, name, tmp_path / "back.zip")) == members(parts)


@given(lengths=st.lists(st.integers(0, 50), max_size=30))
def test_slices_are_all_rows_in_order_and_small(lengths):
    frame = pl.DataFrame({"text": ["é" * length for length in lengths], "number": range(len(lengths))})
    frame = frame.cast({"text": pl.String, "number": pl.Int64})
    before, bundles.SLICE_BYTES = bundles.SLICE_BYTES, 40
    try:
        parts = list(slices(frame))
    finally:
        bundles.SLICE_BYTES = before
    assert [row for part in parts for row in part.rows()] == frame.rows()
    assert all(row_bytes(part).sum() <= 40 + row_bytes(part).max() for part in parts)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
@pytest.mark.parametrize("ending", ["", "different"])
def test_expanded_size_is_that_of_the_pages(compression, ending):
    frame = pl.DataFrame({"text": ["x" * 1_000 + (f"{i}" if ending else "") for i in range(3_000)]})
    buffer = BytesIO()
    frame.write_parquet(buffer, compression=compression, row_group_size=1_000)
    metadata = pyarrow.parquet.read_metadata(BytesIO(buffer.getvalue()))
    groups = [metadata.row_group(i).column(0) for i in range(metadata.num_row_groups)]
    # The file's own sums have the headers of the pages, too.
    written = sum(group.total_uncompressed_size for group in groups)
    assert written * 0.9 - 1_000 < expanded_bytes(buffer.getvalue()) <= written
    assert not ending or expanded_bytes(buffer.getvalue()) > 3_000_000


@given(st.data())
def test_damaged_headers_are_refused_or_measured(data):
    buffer = BytesIO()
    pl.DataFrame({"text": ["a", "b"], "number": [1, 2]}).write_parquet(buffer)
    raw = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert expanded_bytes(bytes(raw)) >= 0
    except ValueError as error:
        assert str(error)
