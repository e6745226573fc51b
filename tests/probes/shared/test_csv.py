"""What a bad file is told."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.shared.csv import read_rows


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "file.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def test_rows_keep_cells_and_lines(write):
    rows = read_rows(write('a,b\n" x ","one\ntwo"\n\nlast,\n'), ["a"])
    assert [(row.line, row.cells) for row in rows] == [(2, {"a": " x ", "b": "one\ntwo"}), (5, {"a": "last", "b": ""})]


def test_byte_order_mark_is_accepted(write):
    assert read_rows(write(b"\xef\xbb\xbfa\nx\n"), ["a"])[0].cells == {"a": "x"}


def test_odd_unicode_is_kept(write):
    text = "e\u0301 \u200d \U0001f469\u200d \ufffd"
    assert read_rows(write(f"a\n{text}\n"), ["a"])[0].cells["a"] == text


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_not_utf8_names_byte_and_line(write, mark):
    path = write(mark + b"a\nx\ncaf\xe9\n")
    with pytest.raises(DataError, match=rf"line 3: byte {len(mark) + 7} \(0xe9\) is not UTF-8"):
        read_rows(path, ["a"])


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"no such file: .*absent\.csv"):
        read_rows(str(tmp_path / "absent.csv"), ["a"])


def test_folder_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        read_rows(str(tmp_path), ["a"])


def test_missing_column_names_the_nearest(write):
    with pytest.raises(
        DataError, match=r"no column 'desirable' \(is 'Desireable' meant\?\), 'axis'\. It has: 'Desireable'"
    ):
        read_rows(write("Desireable\nx\n"), ["desirable", "axis"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "'a' stands in the header twice"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but the header names 2"),
        ('a,b\n1,2\n"x"y,2\n', "line 3: no well-formed CSV"),
        ('a,b\n1,"open\n', "line 2: no well-formed CSV"),
    ],
)
def test_malformed_file_is_refused(write, content, problem):
    with pytest.raises(DataError, match=problem):
        read_rows(write(content), ["a"])


@pytest.mark.parametrize("cell", ["", "  ", "\u00a0"])
def test_blank_cell_is_not_filled(write, cell):
    (row,) = read_rows(write(f"a,b\n{cell},1\n"), ["a"])
    with pytest.raises(DataError, match="line 2: column 'a' is empty"):
        row.filled("a")


def test_choice_offers_the_nearest(write):
    (row,) = read_rows(write("a\nPositiv\n"), ["a"])
    with pytest.raises(DataError, match="unknown a 'Positiv'. Did you mean 'positive'?"):
        row.choice("a", ["positive", "negative"])


@pytest.mark.parametrize("cell", ["high", "nan", "-inf"])
def test_number_must_be_finite(write, cell):
    (row,) = read_rows(write(f"a\n{cell}\n"), ["a"])
    with pytest.raises(DataError, match=f"line 2: a '{cell}' is"):
        row.number("a")
