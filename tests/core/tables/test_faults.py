"""All rows that cannot be used are one error, or are left out and counted by reason."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.core.tables import Form, TableOptions, parse_file, read_rows
from prejudge.core.tables.faults import MOST_SHOWN
from prejudge.testing import raises_code

LINES = ("a,b", "1,x", "two,x", "3,", "4,x,y", "5,x", "six,x")
SKIP = TableOptions(bad_rows="skip")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("\n".join(LINES) + "\n")
    return str(file)


def convert(row):
    row.filled("b")
    return row.number("a")


def test_all_rows_are_named_at_once_with_line_and_reason(path):
    with raises_code(DataError, "data.rows", "'two'", "'six'", "--bad-rows skip") as caught:
        parse_file(path, Form(["a", "b"]), convert, TableOptions())
    fields = caught.value.fields
    assert fields["lines"] == [3, 4, 5, 7] and fields["line"] == 3 and fields["rows"] == 4
    assert sorted(fields["reasons"].values()) == [1, 1, 2]
    assert [line.strip().partition(":")[0] for line in caught.value.listed[1:-1]] == [
        "line 3",
        "line 4",
        "line 5",
        "line 7",
    ]


def test_rows_are_left_out_and_counted(path):
    parsed = parse_file(path, Form(["a", "b"]), convert, SKIP)
    assert parsed.values == [1.0, 5.0]
    assert (parsed.left_out.rows, parsed.left_out.count) == (6, 4)
    assert "4 of 6 rows" in parsed.notes()[0]


def test_a_reader_that_leaves_nothing_out_does_not_offer_it(path):
    with pytest.raises(DataError) as caught:
        parse_file(path, Form(["a", "b"]), convert)
    assert "--bad-rows" not in str(caught.value)
    with raises_code(DataError, "data.row-length"):
        read_rows(path, ["a"])


def test_equal_problems_keep_their_code(tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("a,b\nx,1\ny,1\n")
    with raises_code(DataError, "data.number"):
        parse_file(str(file), Form(["a", "b"]), convert, TableOptions())


def test_a_file_without_a_usable_row_is_refused_also_if_rows_may_be_left_out(tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("a,b\nx,1\n")
    with raises_code(DataError, "data.number", "line 2"):
        parse_file(str(file), Form(["a", "b"]), convert, SKIP)


def test_thousands_of_rows_are_a_message_that_can_be_read(tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("a,b\n" + f"{'x' * 5000},1\n" * 3000)
    with raises_code(DataError, "data.number", "3,000 of 3,000", f"And {3000 - MOST_SHOWN:,} more") as caught:
        parse_file(str(file), Form(["a", "b"]), convert, TableOptions())
    assert len(str(caught.value)) < 8000 and max(map(len, caught.value.listed)) < 400


def test_names_of_rows_do_not_move_when_others_are_left_out(path):
    parsed = parse_file(path, Form(["a", "b"]), lambda row: (row.number("a"), row.index)[1], SKIP)
    assert parsed.values == [0, 2, 3]
