"""A file of answers: read exactly, or refused with the line."""

from __future__ import annotations

import json

import pytest
from fakes import ask

from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import (
    Classification,
    Classify,
    Generation,
    Likelihood,
    Likelihoods,
    PseudoLikelihood,
    TokenScores,
)
from prejudge.core.importing.alike import folded
from prejudge.core.importing.answers import FileForm, NoAnswer, read_answer, read_answers
from prejudge.core.tables.names import parse_columns
from prejudge.testing import raises_code

TWO = Likelihood(prompt="p", continuations=("a", "b"))


@pytest.fixture
def read(tmp_path):
    """Return a function that writes one JSON line and reads the answer in it."""

    def answer(request, **cells):
        (tmp_path / "a.jsonl").write_text(json.dumps(cells))
        answers = read_answers([str(tmp_path / "a.jsonl")], FileForm())
        return read_answer(answers.rows[0], request)

    return answer


def test_columns_are_parsed():
    assert parse_columns(["response=My answer, trial=id", "status=s"]) == {
        "response": "My answer",
        "trial": "id",
        "status": "s",
    }
    with raises_code(DataError, "import.columns", "'response'"):
        parse_columns(["response"])
    with raises_code(DataError, "import.columns", "'a'"):
        parse_columns(["a=b,a=c"])


def test_csv_cells_are_kept_as_written(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffid,answer\r\nt0,"two\nlines, ""quoted"""\r\n\r\nt1, 007 \r\n'.encode())
    answers = read_answers([str(path)], FileForm({"trial": "id", "response": "answer"}))
    assert [(row.number, row.cells["response"]) for row in answers.rows] == [(2, 'two\nlines, "quoted"'), (5, " 007 ")]


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("a,b\n1\n", "data.row-length", "line 2"),
        ('a,b\n1,"2\n', "data.syntax", "line 2"),
        ("a,a\n1,2\n", "data.column-twice", "'a'"),
        ("a,b\n", "data.no-rows", ""),
        ("", "data.no-rows", ""),
        ("b\n1\n", "data.column-missing", "'a'"),
    ],
)
def test_bad_csv_is_refused_with_its_line(tmp_path, text, code, named):
    (tmp_path / "a.csv").write_text(text)
    with raises_code(DataError, code, named):
        read_answers([str(tmp_path / "a.csv")], FileForm({"response": "a"}))


ROWS = [{"trial": "t0", "response": "two"}, {"trial": "t1", "response": "one"}]
DOCUMENTS = {
    "list": ROWS,
    "nested list": {"model": "m", "seed": 7, "results": ROWS},
    "by name": {"a": ROWS[0], "b": ROWS[1]},
    "columns of lists": {"trial": ["t0", "t1"], "response": ["two", "one"]},
    "columns by index": {"trial": {"0": "t0", "1": "t1"}, "response": {"0": "two", "1": "one"}},
    "columns and rows": {"columns": ["trial", "response"], "data": [["t0", "two"], ["t1", "one"]]},
    "nested cells": [{"item": {"trial": row["trial"]}, "answer": {"response": row["response"]}} for row in ROWS],
}


@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_documents_of_all_shapes_give_the_same_rows(tmp_path, kind, indent):
    (tmp_path / "a.txt").write_text(json.dumps(DOCUMENTS[kind], indent=indent), encoding="utf-16")
    answers = read_answers([str(tmp_path / "a.txt")], FileForm())
    assert [(row.number, row.cells["trial"], row.cells["response"]) for row in answers.rows] == [
        (1, "t0", "two"),
        (2, "t1", "one"),
    ]
    assert answers.sources[0].unit == "record"


def test_objects_with_equal_names_inside_keep_both_names(tmp_path):
    (tmp_path / "a.json").write_text('[{"item": {"id": "t0"}, "call": {"id": 9}, "probability": {"a": 1}}]')
    (row,) = read_answers([str(tmp_path / "a.json")], FileForm({"trial": "item.id"})).rows
    assert row.cells == {"trial": "t0", "call.id": 9, "probability.a": 1, "a": 1}


def test_two_lists_of_records_are_not_guessed_between(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"train": ROWS, "test": ROWS}))
    with raises_code(DataError, "data.syntax", "'train'", "'test'"):
        read_answers([str(tmp_path / "a.json")], FileForm())


def test_nan_in_json_is_missing(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"trial": "t0", "response": NaN}\n{"trial": "NaN", "response": "NaN"}\n')
    one, two = read_answers([str(tmp_path / "a.jsonl")], FileForm()).rows
    assert (one.cells["response"], two.cells["response"]) == (None, "NaN")


def test_names_of_columns_are_found_in_another_spelling(tmp_path):
    (tmp_path / "a.csv").write_text("TRIAL ;Item Category;Answer\n1;2;3\n")
    answers = read_answers([str(tmp_path / "a.csv")], FileForm({"response": "answer"}), ["item_category", "order"])
    assert answers.fields == ("response", "trial", "item_category")
    assert answers.rows[0].cells == {"response": "3", "trial": "1", "item_category": "2"}


def test_exact_name_of_a_column_comes_first(tmp_path):
    (tmp_path / "a.csv").write_text("Response,response\nx,y\n")
    assert read_answers([str(tmp_path / "a.csv")], FileForm()).rows[0].cells == {"Response": "x", "response": "y"}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("It’s  BLANK. ", "It's BLANK"),
        ("“wise”", "Wise!"),
        ("caf\u00e9\u00a0bar", "cafe\u0301 bar"),
        ("a – b", "a - b"),
        ("beauty_profession", "Beauty Profession"),
        ("27.0", 27),
    ],
)
def test_texts_that_are_typed_otherwise_are_the_same(one, two):
    assert folded(one) == folded(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [("wise", "unwise"), ("he", "she"), ("27", "270"), ("-1", "1"), ("2.5", "25"), ("non-binary", "none")],
)
def test_texts_of_other_words_are_not_the_same(one, two):
    assert folded(one) != folded(two)


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n[2]\n')
    (tmp_path / "b.csv").write_bytes(b"a\n\xff\n")
    for name, code in (("a.jsonl", "data.syntax"), ("b.csv", "file.encoding"), ("c.csv", "file.missing")):
        with raises_code(DataError, code, name):
            read_answers([str(tmp_path / name)], FileForm())


def test_text_is_an_answer_and_null_is_none(read):
    assert read(ask("q"), response="yes") == Generation(text="yes")
    assert read(ask("q"), response="") == Generation(text="")
    assert read(ask("q"), response=27) == read(ask("q"), response=27.0) == Generation(text="27")
    assert read(ask("q"), response=None) == NoAnswer("no response")
    assert read(ask("q"), response="I will not", status="refused") == Generation(text="I will not", status="refused")
    assert read(ask("q"), response=None, status="filtered") == Generation(text="", status="filtered")


def test_numbers_become_scores(read):
    score = TokenScores(log_probability=-1.5, count=3)
    assert read(PseudoLikelihood(text="t"), log_probability=-1.5, tokens=3) == score
    assert read(PseudoLikelihood(text="t"), log_probability="-1.5", tokens="3") == score
    assert read(TWO, log_probability="[-1, -2.5]", tokens=[1, 2]) == Likelihoods(
        scores=(TokenScores(log_probability=-1.0, count=1), TokenScores(log_probability=-2.5, count=2))
    )
    assert read(PseudoLikelihood(text="t"), log_probability="") == NoAnswer("no log_probability")


def test_probabilities_become_a_classification(read):
    found = read(Classify(text="t"), **{"probability.positive": 0.75, "probability.negative": "0.25"})
    assert found == Classification(probabilities={"positive": 0.75, "negative": 0.25})
    assert read(Classify(text="t"), **{"probability.a": 0.5, "probability.b": None}) == NoAnswer("no probability")
    assert read(Classify(text="t"), **{"probability.a": 0}) == Classification(probabilities={"a": 0.0})


@pytest.mark.parametrize(
    ("request_", "cells", "named"),
    [
        (ask("q"), {"trial": "t0", "response": ["wise"]}, "record 1"),
        (ask("q"), {"response": True}, "True"),
        (ask("q"), {"response": "x", "status": "fine"}, "'fine'"),
        (PseudoLikelihood(text="t"), {"log_probability": -1, "status": "refused"}, "'refused'"),
        (PseudoLikelihood(text="t"), {"log_probability": 0.5}, "0.5"),
        (PseudoLikelihood(text="t"), {"log_probability": "NaN"}, "'NaN'"),
        (PseudoLikelihood(text="t"), {"log_probability": -1, "tokens": 0}, "0"),
        (TWO, {"log_probability": -1}, ""),
        (Classify(text="t"), {"probability.a": 1.5}, "1.5"),
    ],
)
def test_cell_that_is_no_answer_is_refused(read, request_, cells, named):
    with raises_code(DataError, "import.cell", named):
        read(request_, **cells)
