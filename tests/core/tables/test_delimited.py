"""What a bad file is told."""

from __future__ import annotations

import hashlib

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.core.tables import read_rows, read_table
from prejudge.testing import raises_code


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


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_separator_is_that_of_the_header(write, separator):
    text = f'a{separator}"b, c"\r\n"1{separator}5"{separator}2,5\r\n{separator}\r\n'
    assert [row.cells for row in read_rows(write(text), ["a"])] == [{"a": f"1{separator}5", "b, c": "2,5"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encoding_is_found(write, encoding):
    assert read_rows(write("a,b\nö,“x”\n".encode(encoding)), ["a"])[0].cells == {"a": "ö", "b": "“x”"}


def test_empty_cells_beyond_the_header_are_left_out(write):
    assert [row.cells for row in read_rows(write("a,b,,\n1,2,,\n,,,\n3,4,,\n"), ["a"])] == [
        {"a": "1", "b": "2"},
        {"a": "3", "b": "4"},
    ]


def test_odd_unicode_is_kept(write):
    text = "e\u0301 \u200d \U0001f469\u200d \ufffd"
    assert read_rows(write(f"a\n{text}\n"), ["a"])[0].cells["a"] == text


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_not_utf8_names_byte_and_line(write, mark):
    path = write(mark + b"a\nx\ncaf\xe9\n")
    with raises_code(DataError, "file.encoding", len(mark) + 7):
        read_rows(path, ["a"])


def test_missing_file_is_named(tmp_path):
    with raises_code(DataError, "file.missing", "absent.csv"):
        read_rows(str(tmp_path / "absent.csv"), ["a"])


def test_folder_cannot_be_read(tmp_path):
    with raises_code(DataError, "file.unreadable"):
        read_rows(str(tmp_path), ["a"])


def test_missing_column_names_the_nearest(write):
    with raises_code(DataError, "data.column-missing", "'desirable'", "'Desireable'", "'axis'"):
        read_rows(write("Desireable\nx\n"), ["desirable", "axis"])


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("", "data.no-rows", ""),
        ("a,b\n", "data.no-rows", ""),
        ("a,a\n1,2\n", "data.column-twice", "'a'"),
        ("a,b\n1,2\n1,2,3\n", "data.row-length", "line 3"),
        ('a,b\n1,2\n"x"y,2\n', "data.syntax", "line 3"),
        ('a,b\n1,"open\n', "data.syntax", "line 2"),
        (b"PK\x03\x04rest", "file.format", "Excel"),
        (b"PAR1rest", "file.format", "Parquet"),
        (b"\x1f\x8brest", "file.format", "gzip"),
    ],
)
def test_malformed_file_is_refused(write, content, code, named):
    with raises_code(DataError, code, named):
        read_rows(write(content), ["a"])


@pytest.mark.parametrize("cell", ["", "  ", "\u00a0"])
def test_blank_cell_is_not_filled(write, cell):
    (row,) = read_rows(write(f"a,b\n{cell},1\n"), ["a"])
    with raises_code(DataError, "data.cell-empty", "'a'", "line 2"):
        row.filled("a")


def test_choice_offers_the_nearest(write):
    (row,) = read_rows(write("a\nPositiv\n"), ["a"])
    with raises_code(DataError, "data.unknown-value", "'Positiv'", "'positive'"):
        row.choice("a", ["positive", "negative"])


@pytest.mark.parametrize("cell", ["high", "nan", "-inf"])
def test_number_must_be_finite(write, cell):
    (row,) = read_rows(write(f"a\n{cell}\n"), ["a"])
    with raises_code(DataError, "data.number", cell):
        row.number("a")


def test_table_without_rows_has_columns_and_digest(write):
    table = read_table(write("a,b\n"))
    assert table.columns == ("a", "b") and table.rows == []
    assert table.sha256 == hashlib.sha256(b"a,b\n").hexdigest()


def test_first_column_of_several_names_is_taken(write):
    table = read_table(write("text,Sentense\nx,y\n"))
    assert table.column("sentence", "text") == "text"
    with raises_code(DataError, "data.column-missing", "'sentence' (is 'Sentense' meant?) or 'phrase'"):
        table.column("sentence", "phrase")
