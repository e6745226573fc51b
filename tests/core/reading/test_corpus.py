"""Every reader against its corpus: no wrong value, known misses, and the figures on the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import prejudge
from prejudge.core.reading.label import read_label
from prejudge.core.reading.results import REASONS, Unread, Value
from tests.core.reading.corpus_files import READERS, cases, errors

PAGE = Path(prejudge.__file__).parent / "docs" / "reading.md"
SHARED = Path(prejudge.__file__).resolve().parent.parent / "shared" / "data" / "cases" / "answers.jsonl"
MISSED = {"label-098"}
"""Answers that a person can read and the reader does not: a bare small letter at the end may be a cut article."""
ALL = [pytest.param(name, case, id=case["kind"]) for name in READERS for case in cases(name)]


@pytest.mark.parametrize(("name", "case"), ALL)
def test_answer_is_read_as_a_person_reads_it(name, case):
    result = READERS[name](case)
    if isinstance(result, Value):
        assert result.value == case["must"]
    elif case["must"] is not None:
        assert case["kind"] in MISSED
    else:
        assert result.reason == case["reason"]


def test_kinds_are_many_distinct_and_sourced():
    every = [case for name in READERS for case in cases(name)]
    assert len(every) >= 400
    assert len({case["kind"] for case in every}) == len(every)
    assert all(case["source"] and case["manner"] and case["language"] for case in every)
    assert len({case["manner"] for case in every}) >= 30
    assert all(case["reason"] in REASONS for case in every if case["must"] is None)
    assert {"de", "fr", "es", "pt", "hi"} <= {case["language"] for case in every}


def test_labels_are_balanced():
    counts = Counter(case["must"] for case in cases("label") if case["must"] in ("a", "b"))
    assert max(counts.values()) / min(counts.values()) < 1.2
    counts = Counter(case["must"] for case in cases("yes_no") if case["must"])
    assert max(counts.values()) / min(counts.values()) < 1.2


@pytest.mark.parametrize("name", READERS)
def test_figures_of_the_page_are_those_of_the_corpus(name):
    read, wrong, required, missed = errors(name)
    row = re.search(rf"^\| `{name}` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert row is not None
    shown = [int(cell) for cell in row[1].split("|")[:4]]
    assert shown == [read, wrong, required, missed]
    assert wrong == 0


def test_exchanged_labels_are_read_exchanged():
    swap = str.maketrans("abAB\uff21\uff22\uff41\uff42", "baBA\uff22\uff21\uff42\uff41")
    bare = re.compile(r"(?<![^\W_])[abAB\uff21\uff22](?![^\W_])")
    checked = 0
    for case in cases("label"):
        if case.get("labels", ["a", "b"]) != ["a", "b"] or "<b>" in case["text"]:
            continue
        text = case["text"]
        turned = bare.sub(lambda found: found[0].translate(swap), text)
        if re.search(r"\b[ab] (?!\w\b)[^\W_]{2,}", text):
            continue  # `a` is an article there; `b` is none
        checked += 1
        before, after = read_label(text, ("a", "b")), read_label(turned, ("a", "b"))
        if isinstance(before, Unread):
            assert isinstance(after, Unread), turned
        else:
            assert isinstance(after, Value) and after.value == before.value.translate(swap), turned
    assert checked > 150


def test_cases_handed_over_are_read():
    if not SHARED.exists():
        pytest.skip("the cases lie beside a checkout of the maintainers only")
    lines = map(json.loads, SHARED.read_text(encoding="utf-8").splitlines())
    for case in (line for line in lines if line["reader"] == "label"):
        result = read_label(case["text"], ("a", "b"))
        assert isinstance(result, Value) and result.value == case["must"], case
