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
from prejudge.core.importing.answers import NoAnswer, parse_columns, read_answer, read_answers
from prejudge.testing import raises_code

TWO = Likelihood(prompt="p", continuations=("a", "b"))


@pytest.fixture
def read(tmp_path):
    """Return a function that writes one JSON line and reads the answer in it."""

    def answer(request, **cells):
        (tmp_path / "a.jsonl").write_text(json.dumps(cells))
        answers = read_answers(str(tmp_path / "a.jsonl"), {})
        return read_answer(answers, answers.rows[0], request)

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
    answers = read_answers(str(path), {"trial": "id", "response": "answer"})
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
        read_answers(str(tmp_path / "a.csv"), {"response": "a"})


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_other_separator_is_named(tmp_path, separator, name):
    (tmp_path / "a.csv").write_text(f"a{separator}b\n1,5{separator}2\n")
    with raises_code(DataError, "data.separator", name):
        read_answers(str(tmp_path / "a.csv"), {"response": "a"})


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n[2]\n')
    (tmp_path / "b.csv").write_bytes(b"a\n\xff\n")
    for name, code in (("a.jsonl", "data.syntax"), ("b.csv", "file.encoding"), ("c.csv", "file.missing")):
        with raises_code(DataError, code, name):
            read_answers(str(tmp_path / name), {})


def test_text_is_an_answer_and_null_is_none(read):
    assert read(ask("q"), response="yes") == Generation(text="yes")
    assert read(ask("q"), response="") == Generation(text="")
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
        (ask("q"), {"response": 7}, "line 1"),
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
