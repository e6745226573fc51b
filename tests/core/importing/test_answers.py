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
    with pytest.raises(DataError, match="cannot read 'response'"):
        parse_columns(["response"])
    with pytest.raises(DataError, match="two columns for 'a'"):
        parse_columns(["a=b,a=c"])


def test_csv_cells_are_kept_as_written(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffid,answer\r\nt0,"two\nlines, ""quoted"""\r\n\r\nt1, 007 \r\n'.encode())
    answers = read_answers(str(path), {"trial": "id", "response": "answer"})
    assert [(row.number, row.cells["response"]) for row in answers.rows] == [(2, 'two\nlines, "quoted"'), (5, " 007 ")]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b\n1\n", "line 2: 1 cells under 2 columns"),
        ('a,b\n1,"2\n', "line 2: no well-formed CSV"),
        ("a,a\n1,2\n", "'a' stands in the header twice"),
        ("a,b\n", "has no rows"),
        ("", "has no rows"),
        ("b\n1\n", "no column 'a'. It has: 'b'"),
    ],
)
def test_bad_csv_is_refused_with_its_line(tmp_path, text, match):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=match):
        read_answers(str(tmp_path / "a.csv"), {"response": "a"})


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_other_separator_is_named(tmp_path, separator, name):
    (tmp_path / "a.csv").write_text(f"a{separator}b\n1,5{separator}2\n")
    with pytest.raises(DataError, match=f"separated by {name}, not by commas"):
        read_answers(str(tmp_path / "a.csv"), {"response": "a"})


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n[2]\n')
    (tmp_path / "b.csv").write_bytes(b"a\n\xff\n")
    for name, match in (("a.jsonl", "line 2: no JSON object"), ("b.csv", "cannot read"), ("c.csv", "No such file")):
        with pytest.raises(DataError, match=match):
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
    ("request_", "cells", "match"),
    [
        (ask("q"), {"response": 7}, "line 1: the response 7 is no text"),
        (ask("q"), {"response": "x", "status": "fine"}, "status 'fine'. It may be: ok, refused"),
        (PseudoLikelihood(text="t"), {"log_probability": -1, "status": "refused"}, "It may be: ok"),
        (PseudoLikelihood(text="t"), {"log_probability": 0.5}, "0.5 is above 0"),
        (PseudoLikelihood(text="t"), {"log_probability": "NaN"}, "no finite number"),
        (PseudoLikelihood(text="t"), {"log_probability": -1, "tokens": 0}, "no counts above 0"),
        (TWO, {"log_probability": -1}, "1 log-probabilities and 2 numbers of tokens for 2 continuations"),
        (Classify(text="t"), {"probability.a": 1.5}, "not between 0 and 1"),
    ],
)
def test_cell_that_is_no_answer_is_refused(read, request_, cells, match):
    with pytest.raises(DataError, match=match):
        read(request_, **cells)
