"""Sheets out, sheets in, and the file of tuples that comes of them."""

from __future__ import annotations

import csv
import io
import json

import pytest

from prejudge.core.contracts.errors import DataError
from prejudge.probes.bistereo.tuples import BIStereoTuples, BIStereoTuplesOptions
from prejudge.probes.bistereo.tuples_sheet import (
    SHEET,
    advice,
    draft_rows,
    long_ratings,
    read_sheets,
    sheet_text,
    tuples_text,
)
from prejudge.testing import raises_code

HEADER = "stereotype,dimension,descriptor,term,attribute,sentiment,opposite,standing"
TALL = "height,tall,girl,attractive,positive,,advantaged"
SHORT = "height,short,girl,weak,negative,strong,disadvantaged"
THIN = "body shape,thin,man,weak,negative,,"


@pytest.fixture
def sheet(tmp_path):
    def sheet(name, *rows, header=HEADER):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return str(path)

    return sheet


@pytest.fixture
def three(sheet):
    return [
        sheet("ana", f"1,{TALL}", f"1,{SHORT}", f"0,{THIN}"),
        sheet("bo", f"1,{TALL}", f"0,{SHORT}", f",{THIN}"),
        sheet("cy", f"1,{TALL}", f"1,{SHORT}", f"0,{THIN}"),
    ]


def drafts(*tuples, sentiment="negative"):
    return [{"dimension": "height", "term": "girl", "sentiment": sentiment, "tuples": json.dumps(tuples)}]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_sheet_has_each_tuple_once_and_says_how_often_it_was_drafted():
    rows = draft_rows([*drafts(("short", "weak"), ("tiny", "shy")), *drafts(("short", "weak"))])
    found = rows_of(sheet_text(rows, 0))
    assert {(row["descriptor"], row["times"]) for row in found} == {("short", "2"), ("tiny", "1")}
    assert tuple(found[0]) == SHEET and {row["stereotype"] for row in found} == {""}


def test_sheet_fills_in_what_the_printed_tuples_know():
    (row,) = draft_rows(drafts(("short", "unattractive")))
    assert (row["opposite"], row["standing"]) == ("attractive", "disadvantaged")


def test_order_of_a_sheet_is_that_of_its_seed():
    rows = draft_rows(drafts(*(("short", f"weak{'y' * n}") for n in range(9))))
    first, again, other = (sheet_text(rows, seed) for seed in (0, 0, 1))
    assert first == again == sheet_text(rows[::-1], 0) != other
    assert sorted(first.splitlines()) == sorted(other.splitlines())


def test_a_run_without_drafts_is_refused():
    with raises_code(DataError, "run.no-answers"):
        draft_rows([])


def test_ratings_of_all_sheets_are_joined(three):
    found = {one.cells["descriptor"]: one for one in read_sheets(three)}
    assert found["short"].ratings == {"ana": 1, "bo": 0, "cy": 1} and found["short"].score == 2
    assert found["thin"].ratings == {"ana": 0, "cy": 0}


def test_one_sheet_may_hold_all_annotators(sheet):
    path = sheet("all", f"1,{TALL},ana", f"0,{TALL},bo", header=f"{HEADER},annotator")
    (one,) = read_sheets([path])
    assert one.ratings == {"ana": 1, "bo": 0}


def test_a_tuple_that_nobody_rated_stays(sheet):
    annotated = read_sheets([sheet("ana", f",{TALL}", f"1,{SHORT}")])
    rows = long_ratings(annotated)
    assert rows.height == 2 and rows["annotator"].to_list().count(None) == 1


def test_threshold_decides_what_is_kept(three):
    annotated = read_sheets(three)
    kept = {least: len(rows_of(tuples_text(annotated, least))) for least in (0, 2, 3)}
    assert kept == {0: 3, 2: 2, 3: 1}
    with raises_code(DataError, "data.no-match"):
        tuples_text(annotated, 4)


def test_the_study_reads_the_file(three, tmp_path):
    path = tmp_path / "tuples.csv"
    path.write_text(tuples_text(read_sheets(three), 2), encoding="utf-8")
    (stage,) = BIStereoTuples().stages(BIStereoTuplesOptions(data=str(path), annotators=2))
    (test,) = {tuple(cell[f"test.{name}"] for name in "abc") for cell in stage.design.cells() if cell["test.validated"]}
    assert test == ("Tall girl", "strong", "Short girl")


def test_more_than_five_annotators_are_read(sheet, tmp_path):
    copies = [sheet(f"a{n}", f"1,{TALL}", f"1,{SHORT}") for n in range(7)]
    path = tmp_path / "tuples.csv"
    path.write_text(tuples_text(read_sheets(copies), 6), encoding="utf-8")
    (stage,) = BIStereoTuples().stages(BIStereoTuplesOptions(data=str(path), annotators=7))
    assert stage.design.size


def test_advice_counts_tests_and_names_what_lacks(three):
    said = "\n".join(advice(read_sheets(three), 0))
    assert "3 of 3 tuples are kept, 2 of them negative" in said and "make 1 analogy tests" in said
    assert "1 negative tuples have no opposite, such as (thin, man, weak)" in said


@pytest.mark.parametrize(
    ("rows", "code", "named"),
    [
        ([f"yes,{TALL}"], "data.unknown-value", "'yes'"),
        ([f"one,{TALL}"], "data.unknown-value", "'one'"),
        ([f"1,{TALL}", f"0,{TALL}"], "data.duplicate", "'tall, girl, attractive'"),
        (["1,height,tall,grl,attractive,positive,,"], "data.unknown-value", "term"),
        ([f"1,{TALL}", "1,height,tall,lady,,positive,,"], "data.cell-empty", "'attribute'"),
        (["1,height,tall,girl,attractive,positive,,high"], "data.unknown-value", "standing"),
    ],
)
def test_a_bad_row_is_named(sheet, rows, code, named):
    with raises_code(DataError, code, named):
        read_sheets([sheet("ana", *rows)])


def test_sheets_must_agree_on_what_a_tuple_needs_besides(sheet):
    other = SHORT.replace("strong", "sturdy")
    with raises_code(DataError, "data.contradiction", "'sturdy'", "'strong'"):
        read_sheets([sheet("ana", f"1,{SHORT}"), sheet("bo", f"1,{other}")])
