"""Files of tuples as people write them, with what they lack, and the columns that are drafted."""

from __future__ import annotations

import csv

import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.tables import TableOptions
from prejudge.probes.bistereo.tuples import BIStereoTuples, BIStereoTuplesOptions
from prejudge.probes.bistereo.tuples_columns import complete
from prejudge.probes.bistereo.tuples_file import COLUMNS, parse_tuples, read_tuples, shortage, tidy_rows
from prejudge.probes.bistereo.tuples_tests import build
from prejudge.testing import raises_code

FIVE = "Dimension,Body Image Descriptor,Gender-specific term,Attribute,Score"
TALL, SHORT = "height,tall,girl,attractive,3", "height,short,girl,unattractive,4"
FULL = "dimension,descriptor,term,attribute,sentiment,score,opposite,standing"
ABOVE, BELOW = "height,tall,man,sexy,positive,3,,advantaged", "height,short,man,weak,negative,2,strong,disadvantaged"


@pytest.fixture
def file(tmp_path):
    def file(*lines, name="mine.csv", end="\n", mark=""):
        path = tmp_path / name
        path.write_bytes((mark + end.join(lines) + end).encode())
        return str(path)

    return file


def prejudge(*words):
    return CliRunner().invoke(cli, list(words), catch_exceptions=False)


@pytest.mark.parametrize(
    "lines",
    [
        (FULL, ABOVE, "", ",,,,,,,", BELOW, ""),
        (FULL.replace(",", ";"), ABOVE.replace(",", ";"), BELOW.replace(",", ";")),
        (FULL.upper(), ABOVE, BELOW),
        (FULL.replace(",", " , "), ABOVE.replace(",", " ,  "), BELOW.replace(",", "\t, ")),
        (FULL, ABOVE, BELOW, BELOW, ABOVE),
        (FULL, ABOVE.replace("man", "Man").replace("advantaged", "ADVANTAGED"), BELOW.replace("negative", "Negative")),
        (FULL, ABOVE.replace(",3,", ",3.0,"), BELOW.replace("height", "Height")),
        (f"{FULL},mirrored,people,note", f"{ABOVE},,,x", f'{BELOW},,,"a, b"'),
    ],
)
@pytest.mark.parametrize(("end", "mark"), [("\n", ""), ("\r\n", "\ufeff")])
def test_untidy_file_is_read_as_the_tidy_one(file, lines, end, mark):
    tidy = build(read_tuples(file(FULL, ABOVE, BELOW)), 2, unscored=False)
    untidy = build(read_tuples(file(*lines, name="untidy.csv", end=end, mark=mark)), 2, unscored=False)
    assert len(tidy) == 1 and untidy == tidy


@pytest.mark.parametrize(
    ("lines", "code", "named"),
    [
        ((FULL, ABOVE, BELOW, BELOW.replace("strong", "sturdy")), "data.contradiction", "line 4"),
        (("term,descriptor,noun,attribute", "man,short,man,weak"), "data.column-twice", "'term'"),
        (("descriptor,attribute", "short,weak"), "data.column-missing", "'term'"),
        ((FULL,), "data.no-rows", "no rows"),
        ((FULL, ",,,,,,,"), "data.no-rows", "no rows"),
        ((FULL, BELOW.replace(",2,", ",2.5,")), "data.value", "whole"),
        ((FULL, BELOW.replace(",2,", ",two,")), "data.number", "'two'"),
        ((FULL, BELOW.replace("short", " ")), "data.cell-empty", "descriptor"),
        ((f"{FULL},mirrored", f"{BELOW},maybe"), "data.unknown-value", "mirrored"),
    ],
)
def test_what_cannot_be_read_is_named(file, lines, code, named):
    with raises_code(DataError, code, named):
        read_tuples(file(*lines))


def test_columns_of_the_paper_load_and_an_empty_design_says_what_is_missing(file):
    path = file(FIVE, TALL, SHORT)
    assert [one.score for one in read_tuples(path)] == [3, 4]
    for command in ("plan", "run"):
        words = (command, "bistereo-tuples", "--data", path, "--model", "simulated-fair")
        with raises_code(UsageError, "study.empty", "have no `standing`", "prejudge study tuples complete"):
            prejudge(*words)


def test_shortage_names_each_lack(file):
    path = file(FULL, ABOVE, BELOW.replace("strong", ""), BELOW.replace("weak", "shy").replace("height", "attire"))
    said = " ".join(shortage(read_tuples(path), 2, False))
    assert "1 of 3 tuples are negative and have no `opposite`, such as (short, man, weak)" in said
    assert "without an advantaged group" in said and "(short, man, shy)" in said
    assert "3 of 3 tuples have a score below 5" in " ".join(shortage(read_tuples(path), 5, False))


def test_drafts_of_the_printed_tuples_are_those_of_the_project(file):
    printed = read_tuples(None)
    lines = [
        f"{t.dimension},{t.descriptor},{t.term},{t.attribute},{'' if t.score is None else t.score}" for t in printed
    ]
    drafted = {(c["descriptor"], c["term"], c["attribute"]): c for c in complete(tidy_rows(file(FIVE, *lines)))}
    for t in printed:
        cells = drafted[t.descriptor, t.term, t.attribute]
        assert cells["sentiment"] == t.sentiment and (cells["opposite"] or None) == t.opposite
        if t.standing:
            assert cells["standing"] == t.standing
        assert cells["mirrored"] == ("yes" if t.mirrored else "no")


@pytest.mark.parametrize(
    ("descriptor", "attribute", "expected"),
    [
        ("petite", "clumsy", {"dimension": "height", "sentiment": "negative", "opposite": "graceful"}),
        ("bald", "has poor taste", {"dimension": "miscellaneous", "opposite": "has good taste", "mirrored": ""}),
        ("kurta", "less modern", {"dimension": "attire", "opposite": "modern", "mirrored": "no"}),
        ("dusky skin", "undesirable", {"dimension": "skin complexion", "opposite": "desirable"}),
        ("left-handed", "weird", {"dimension": "", "sentiment": "", "opposite": ""}),
    ],
)
def test_draft_of_what_is_not_printed(file, descriptor, attribute, expected):
    (cells,) = complete(tidy_rows(file("descriptor,term,attribute", f"{descriptor},girl,{attribute}")))
    assert expected.items() <= cells.items()
    assert {name for name in expected if expected[name]} <= {*cells["drafted"].split()}


def test_standing_follows_the_scores_and_filled_cells_stay(file):
    header = "dimension,descriptor,term,attribute,sentiment,score,opposite,standing"
    rows = ("height,lanky,boy,smart,positive,2,,", "height,lanky,boy,weak,negative,5,sturdy,")
    first, second = complete(tidy_rows(file(header, *rows)))
    assert first["standing"] == second["standing"] == "disadvantaged"
    assert second["opposite"] == "sturdy" and "opposite" not in second["drafted"].split()
    *_, third = complete(tidy_rows(file(header, *rows, "height,lanky,boy,weird,,5,,")))
    assert third["sentiment"] == third["standing"] == ""
    (kept,) = complete(tidy_rows(file(header, "height,lanky,boy,weak,negative,5,sturdy,advantaged")))
    assert kept["standing"] == "advantaged" and kept["drafted"] == ""


def test_completed_file_makes_tests_and_says_what_nobody_confirmed(file, tmp_path):
    path, out = file(f"{FIVE},Remark", f"{TALL},a", f"{SHORT},b", end="\r\n", mark="\ufeff"), str(tmp_path / "out.csv")
    done = prejudge("study", "tuples", "complete", path, "--out", out)
    assert done.exit_code == 0 and "standing: 2 of 2 drafted, 0 missing" in done.output
    assert "make 1 analogy tests" in done.output
    with open(out, encoding="utf-8") as written:
        rows = list(csv.DictReader(written))
    assert [*rows[0]] == [*COLUMNS, "remark", "drafted"] and [row["remark"] for row in rows] == ["a", "b"]
    (stage,) = BIStereoTuples().stages(BIStereoTuplesOptions(data=out))
    assert {cell["test.b"] for cell in stage.design.cells() if cell["test.validated"]} == {"attractive"}
    assert (
        "2 of 2 tuples have values that nobody confirmed" in prejudge("plan", "bistereo-tuples", "--data", out).output
    )
    again = complete(tidy_rows(out))
    assert [row["drafted"] for row in again] == [row["drafted"] for row in rows]
    with raises_code(UsageError, "file.exists"):
        prejudge("study", "tuples", "complete", path, "--out", out)


def test_bad_rows_are_named_together_or_left_out_and_counted(file):
    path = file(FULL, ABOVE, BELOW, BELOW.replace("weak", "shy").replace(",2,", ",two,"), BELOW.replace("short", " "))
    with pytest.raises(DataError) as caught:
        read_tuples(path)
    assert caught.value.fields["lines"] == [4, 5]
    tuples, sentence = parse_tuples(path, TableOptions(bad_rows="skip"))
    assert tuples == read_tuples(file(FULL, ABOVE, BELOW, name="good.csv"))
    assert sentence.startswith("2 of 4 rows") and "(1)" in sentence
    (stage,) = BIStereoTuples().stages(BIStereoTuplesOptions(data=path, bad_rows="skip", unscored=False))
    assert any("2 of 4 rows" in note for note in stage.notes())
