"""Every form that the documentation names gives the same table, and the documentation names every form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prejudge.core.contracts.errors import DataError, MissingExtraError
from prejudge.core.tables import Form, TableOptions, columnar, parse_file, read_table
from prejudge.core.tables.reading import read_records
from prejudge.probes.crows_pairs.probe import HUGGING_FACE, read_pairs
from prejudge.testing import raises_code
from tests.core.table_forms import FORMS, ROWS, delimited, workbook

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "own-data.md"
PAIRS = [({"direction": row[2], "bias_type": row[3]}, set(row[:2])) for row in ROWS]


@pytest.fixture
def write(tmp_path):
    def write(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def pairs(path, **options):
    return [(pair.factors, set(pair.texts)) for pair in read_pairs(path, TableOptions(**options)).values]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pairs(write, form):
    if form.startswith("xlsx"):
        pytest.importorskip("fastexcel")
    # No ending tells the format: the content does.
    assert pairs(write(FORMS[form]())) == PAIRS


def test_the_page_lists_every_form():
    listed = re.findall(r"^\| (.+?) \|", PAGE.read_text(encoding="utf-8").partition("## Forms")[2], re.MULTILINE)
    assert listed[2:] == list(FORMS)


@pytest.mark.parametrize("encoding", ["cp1252", "mac_roman", "cp850", "utf-32"])
def test_a_stated_encoding_is_read(write, encoding):
    assert pairs(write(delimited().encode(encoding)), encoding=encoding) == PAIRS


def test_codes_of_a_published_copy_are_read_only_where_every_column_has_them(write):
    names = HUGGING_FACE.values["bias_type"]
    coded = [(*row[:2], str(row[2] == "antistereo" and 1 or 0), str(names.index(row[3]))) for row in ROWS]
    assert pairs(path := write(delimited(rows=coded))) == PAIRS
    assert "Hugging Face" in read_pairs(path).remarks[0]
    half = [(*row[:3], names[int(row[3])]) for row in coded]
    with raises_code(DataError, "data.unknown-value", "values=stereo_antistereo.0=stereo"):
        read_pairs(path := write(delimited(rows=half)))
    swapped = pairs(path, values=("stereo_antistereo.1=stereo", "stereo_antistereo.0=antistereo"))
    assert [factors["direction"] for factors, _ in swapped] == ["antistereo", "stereo", "antistereo"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["-35,2", "-48,1"], [-35.2, -48.1]),
        (["1,5", "2"], [1.5, 2.0]),
        (["-35.2", "-48"], [-35.2, -48.0]),
        (["0,125", "1,250"], [0.125, 1.25]),
    ],
)
def test_decimal_commas_are_read_where_they_are_beyond_doubt(write, cells, values):
    path = write("n;x\n" + "".join(f"{cell};y\n" for cell in cells))
    assert parse_file(path, Form(["n"], numbers=["n"]), lambda row: row.number("n")).values == values


@pytest.mark.parametrize("cells", [["1,234", "5,678"], ["1,5", "2.5"], ["1,5", "1,234.5"]])
def test_doubtful_commas_are_refused_with_what_would_be_accepted(write, cells):
    path = write("n;x\n" + "".join(f"{cell};y\n" for cell in cells))
    with raises_code(DataError, "data.number", "decimal comma"):
        parse_file(path, Form(["n"], numbers=["n"]), lambda row: row.number("n"))


@pytest.mark.parametrize(
    ("column", "value"), [("resps.0.0", "x"), ("Resps.0.1", "z"), ("meta.a.b", "7"), ("text.0.0", "q")]
)
def test_a_path_reaches_within_cells(write, column, value):
    path = write('{"resps": [["x", "z"]], "meta": {"a": {"b": 7}}, "text": "[[\\"q\\"]]"}\n')
    assert read_table(path, ["t"], options=TableOptions(columns=(f"t={column}",))).rows[0].cells["t"] == value


@pytest.mark.parametrize("column", ["resps.0.5", "resps.x", "none.0"])
def test_a_path_to_nothing_is_empty_or_refused(write, column):
    path = write('{"resps": [["x"]]}\n')
    options = TableOptions(columns=(f"t={column}",))
    if column.startswith("none"):
        with raises_code(DataError, "data.column-missing", column):
            read_table(path, ["t"], options=options)
    else:
        assert read_table(path, ["t"], options=options).rows[0].cells["t"] == ""


def test_numbers_of_a_workbook_are_whole_where_they_are(write):
    pytest.importorskip("fastexcel")
    table = read_table(write(workbook(["a", "b"], [[4, 2.5], ["x", ""]])))
    assert [row.cells for row in table.rows] == [{"a": "4", "b": "2.5"}, {"a": "x", "b": ""}]
    assert [(row.unit, row.line) for row in table.rows] == [("row", 2), ("row", 3)]


def test_a_workbook_without_its_reader_names_the_extra(write, monkeypatch):
    monkeypatch.setattr(columnar, "find_spec", lambda _: None)
    with raises_code(MissingExtraError, MissingExtraError.code, "[tables]", "CSV"):
        read_table(write(workbook()))


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ('{"a": 1}\n{"a": \n', "data.syntax", "JSON"),
        ('[{"a": 1', "data.syntax", "JSON"),
        (b"PAR1rubbish", "file.format", "Parquet"),
        (b"PK\x03\x04 xl/ rubbish", "file.format", "workbook"),
    ],
)
def test_what_is_broken_is_called_by_its_format(write, content, code, named):
    if named == "workbook":
        pytest.importorskip("fastexcel")
    with raises_code(DataError, code, named) as caught:
        read_table(write(content), ["a"])
    assert "quotes" not in str(caught.value)


def test_two_columns_of_one_name_but_for_case_stay_apart(write):
    loaded = read_records(write("Response,response\nx,y\n"), ["response"])
    assert loaded.records == [(2, {"Response": "x", "response": "y"})]
