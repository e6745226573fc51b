"""What is no file, too wide, too deep or too long is refused: one line, a code, little time and memory."""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading
import time

import pytest

from prejudge.core.catalogue.registry import parse_toml
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import read_candidate
from prejudge.core.contracts import inputs
from prejudge.core.contracts.errors import DataError, PrejudgeError, StoreError, UsageError
from prejudge.core.contracts.inputs import MOST_DEPTH, file_bytes, load_toml
from prejudge.core.contracts.options import parse_assignments
from prejudge.core.engine.manifest import read_manifest
from prejudge.core.gate.policy import read_policy
from prejudge.core.store import Store
from prejudge.core.store.unbundle import Bundle
from prejudge.core.tables import read_rows, read_table
from prejudge.core.tables.delimited import MOST_CELL, MOST_COLUMNS
from prejudge.core.tables.reading import read_records
from prejudge.testing import raises_code

from ...command import call

SECONDS = 2.0
"""Processor time that a refusal may take."""
READERS = {
    "table": lambda path: read_table(path),
    "answers": lambda path: read_records(path, ()),
    "policy": read_policy,
    "registry": lambda path: read_candidate(path),
    "study": lambda path: Catalogue.load().study(str(path), {}, {}),
    "bundle": Bundle,
    "store": Store,
}


@pytest.fixture(autouse=True)
def soon():
    """Fail a test that takes longer than a user waits for one line."""
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS + 3.0  # the catalogue is loaded for some


def refused(read, path):
    """Return the code of the refusal of a reader, which must be one line."""
    with pytest.raises(PrejudgeError) as caught:
        read(path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 2000
    return caught.value.code


@pytest.fixture(params=["pipe", "device", "socket", "folder", "missing", "nul"])
def odd(request, tmp_path):
    """Return a path that is no file, with the ending of a study."""
    path = tmp_path / "odd.toml"
    if request.param == "pipe":
        os.mkfifo(path)
    if request.param == "device":
        path.symlink_to("/dev/zero")
    if request.param == "folder":
        path.mkdir()
    if request.param == "nul":
        path = tmp_path / "od\0d.toml"
    if request.param == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            os.chdir(tmp_path)
            bound.bind("odd.toml")
    return request.param, path


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused(odd, reader, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    kind, path = odd
    if reader == "store" and kind in ("missing", "nul"):
        pytest.skip("a new store is made")
    codes = []
    thread = threading.Thread(target=lambda: codes.append(refused(READERS[reader], path)), daemon=True)
    thread.start()
    thread.join(60)
    assert codes and codes[0].startswith(("file.", "bundle.", "store."))


def test_device_that_says_it_is_empty_is_read_to_its_bound(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" * 1000)
    assert file_bytes(path, 1000) == path.read_bytes()
    with pytest.raises(OSError, match="1,000 bytes"):
        file_bytes(path, 999)
    monkeypatch.setattr(inputs, "ensure_file", lambda *_: None)  # as if it grew after the look at it
    with pytest.raises(OSError, match="more than 999"):
        file_bytes(path, 999)


def test_million_columns_are_refused_soon_and_in_little_memory(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"column{n}" for n in range(1_000_000)) + "\n" + "1," * 999_999 + "1\n")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for read in (read_table, lambda path: read_rows(path, ["text"])):
        with raises_code(DataError, "data.columns", "1,000,000", f"{MOST_COLUMNS:,}"):
            read(str(path))
    assert time.process_time() - began < 2 * SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


def test_missing_column_among_many_lists_some(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text(",".join(f"c{n}" for n in range(MOST_COLUMNS)) + "\n")
    with raises_code(DataError, "data.column-missing", "9,960 more") as caught:
        read_table(str(path), ["text"])
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("read", [read_table, lambda path: read_records(path, ())])
def test_long_cell_is_told(tmp_path, read):
    path = tmp_path / "long.csv"
    path.write_text("a,b\n1,2\n3," + "x" * (MOST_CELL + 1) + "\n")
    with raises_code(DataError, "data.cell-length", "line 3", "131,072"):
        read(str(path))
    path.write_text("a,b\n1," + "x" * MOST_CELL + "\n")
    read(str(path))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "data.no-rows"),
        (b"\n\n\n", "data.no-rows"),
        (b"a,b\n1,\x00\n", "file.encoding"),
        (b"a,b\n1,\xff\n", "file.encoding"),
        ("a,b\n1,ä\n".encode("latin-1"), "file.encoding"),
        (b"\x00" * 1000, "file.encoding"),
        (b'a,b\n1,"2\n', "data.syntax"),
        (b"PK\x03\x04rest", "file.format"),
    ],
)
def test_untidy_table_is_one_line(tmp_path, content, code):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert refused(lambda path: read_rows(path, ["a"]), str(path)) == code


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "NaN"])
def test_deep_answers_are_one_line(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert refused(lambda path: read_records(path, ()), str(path)) == "data.syntax"


@pytest.mark.parametrize(
    "value",
    [
        "[" * 60 + "]" * 60,
        "[" * 5000 + "]" * 5000,
        "{a=" * 60 + "1" + "}" * 60,
        "{" + "a." * 60_000 + "a=1}",
        "{" + "a . " * 60 + "a=1}",
    ],
)
def test_deep_value_of_an_option_is_one_line(value):
    with raises_code(UsageError, "options.nested", "per_cell") as caught:
        parse_assignments([f"per_cell={value}"])
    assert len(str(caught.value)) < 200


def test_deep_toml_is_one_line(tmp_path):
    for text in ("a = " + "[" * 10_000, "[" + "a." * 10_000 + "a]\n", "a" + ".a" * MOST_DEPTH + " = 1\n"):
        with raises_code(DataError, "data.syntax", "my.toml"):
            load_toml(text, "my.toml")
        with raises_code(DataError, "data.syntax", "my.toml"):
            parse_toml(text, "my.toml")
    path = tmp_path / "policy.toml"
    path.write_text("rules = " + "[" * 10_000)
    assert refused(read_policy, path) == "data.syntax"


def test_long_words_and_numbers_take_no_time():
    assert load_toml(f"a = '{'x' * 1_000_000}'", "x")["a"][:2] == "xx"
    assert load_toml(f"a = '{'1.2.' * 10}'", "x")
    with raises_code(DataError, "data.syntax", "x"):
        load_toml(f"a = {'1' * 5000}", "x")


def test_depth_that_people_write_is_kept():
    value = 1
    for _ in range(MOST_DEPTH - 2):
        value = [value]
    assert parse_assignments([f"a={value}"]) == {"a": value}


def test_long_value_is_shown_in_part():
    with pytest.raises(UsageError) as caught:
        study = Catalogue.load()
        study.instrument(study.study("crows-pairs", {}, parse_assignments(["limit=" + "[1]," * 5000])))
    assert len(str(caught.value)) < 1000


def test_folder_of_a_run_with_a_pipe_or_deep_manifest(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    assert refused(read_manifest, tmp_path) == "run.folder"
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").write_text('{"run":' * 100_000)
    assert refused(read_manifest, tmp_path) == "run.folder"


def test_store_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "s.db")
    with raises_code(StoreError, "store.foreign", "s.db"):
        Store(tmp_path / "s.db")
    assert sys.getrecursionlimit() > 100


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "crows-pairs", "--data", "pipe"],
        ["plan", "./pipe.toml", "--model", "simulated-fair"],
        ["plan", "crows-pairs", "--registry", "pipe"],
        ["plan", "crows-pairs", "--store", "pipe", "--model", "simulated-fair"],
        ["plan", "crows-pairs", "--set", f"limit={'[' * 400}{']' * 400}"],
        ["import", "bistereo-pairs", "--responses", "pipe", "--model", "x"],
        ["study", "validate", "pipe.toml"],
        ["cache", "import", "pipe"],
        ["score", "--bundle", "pipe"],
        ["trust", "pipe"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_command_says_one_line(tmp_path, words):
    for name in ("pipe", "pipe.toml"):
        os.mkfifo(tmp_path / name)
    ended = call(tmp_path, *words)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended.stderr
    assert "pipe" in ended.stderr or "nested" in ended.stderr
