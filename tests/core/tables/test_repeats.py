"""Rows that describe one thing: every reader counts a repetition once, and refuses or leaves out a contradiction."""

from __future__ import annotations

from pathlib import Path

import pytest

from prejudge.core.annotation.matrix import read_matrix
from prejudge.core.contracts.errors import DataError
from prejudge.core.tables import TableOptions
from prejudge.probes.attractiveness.scenarios import load_scenarios
from prejudge.probes.bistereo import own_nli, own_pairs
from prejudge.probes.bistereo.tuples_file import parse_tuples
from prejudge.probes.bistereo.tuples_sheet import read_sheets
from prejudge.probes.dora.descriptors import read_list
from prejudge.probes.dora.people import read_levels
from prejudge.probes.indicasa.masked import read_masked
from prejudge.probes.subtle.data_files import read_items
from prejudge.testing import raises_code

SKIP = TableOptions(bad_rows="skip")
PAIR = "pair,desirable,undesirable,axis,gender,sentiment,attribute"
DATA = {
    "pairs": (
        own_pairs.read_pairs,
        PAIR,
        "a,The tall man is kind.,The short man is kind.,height,men,positive,kind",
        "a,The tall man is kind.,The short man is kind.,height,women,positive,kind",
        "b,The tall man is rude.,The short man is rude.,height,men,negative,rude",
    ),
    "prompts": (
        read_masked,
        "id,Stereo_Antistereo,Bias_Type,Masked_Sentence,Ground_Truths",
        "a,stereo,Caste,The <MASK> is rich.,one",
        "a,stereo,Caste,The <MASK> is rich.,two",
        "b,stereo,Caste,The <MASK> is poor.,one",
    ),
    "descriptors": (
        read_list,
        "dimension,singular,plural",
        "age,old person,old people",
        "age,Old person,old persons",
        "age,young person,young people",
    ),
    "items": (
        lambda path, options=None: read_items(path, "sai", options),
        "target_gender,bias_type,item_category,type_category,context,stereotype,anti_stereotype,unrelated,template,term",
        "male,ageism,positive,type1,He is 20 and BLANK.,quick,slow,green,t,20",
        "male,ageism,positive,type1,He is 20 and BLANK.,quick,slow,green,t,21",
        "male,ageism,negative,type1,He is 70 and BLANK.,slow,quick,green,t,70",
    ),
    "tuples": (
        lambda path, options=None: parse_tuples(path, *([] if options is None else [options])),
        "dimension,descriptor,term,attribute,score",
        "height,tall,girl,attractive,4",
        "height,tall,girl,attractive,2",
        "height,short,girl,shy,3",
    ),
}


def write(folder: Path, header: str, *rows: str) -> str:
    path = folder / "data.csv"
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return str(path)


def usable(parsed) -> tuple[int, str]:
    """Return the number of usable rows, and the sentence about those that were left out."""
    if isinstance(parsed, tuple) and len(parsed) == 2:
        return len(parsed[0]), parsed[1]
    return len(parsed.values), " ".join(parsed.notes())


@pytest.mark.parametrize("kind", DATA)
def test_reader_of_data_has_the_one_policy(tmp_path, kind):
    read, header, row, otherwise, other = DATA[kind]
    count, notes = usable(read(write(tmp_path, header, row, other, row)))
    assert count == 2 and "1 of 3 rows" in notes and "says the same as an earlier one (1)" in notes
    with raises_code(DataError, "data.duplicate", "line 4", "line 2") as caught:
        read(write(tmp_path, header, row, other, otherwise))
    assert caught.value.fields["column"] in header.split(",")
    count, notes = usable(read(write(tmp_path, header, row, other, otherwise), SKIP))
    assert count == 2 and "contradicts an earlier one (1)" in notes


def test_inferences_have_the_one_policy(tmp_path):
    header = "pair,group,premise,hypothesis,sentiment"
    rows = [f"{pair},{group},A {group} lady came.,A {pair} lady came.,positive" for pair in "ab" for group in "xy"]
    count, notes = usable(own_nli.read_inferences(write(tmp_path, header, *rows, rows[1])))
    assert count == 4 and "says the same as an earlier one (1)" in notes
    otherwise = rows[1].replace("lady came.,positive", "man came.,positive")
    with raises_code(DataError, "data.duplicate", "line 6", "line 3", "'hypothesis'"[1:-1]):
        own_nli.read_inferences(write(tmp_path, header, *rows, otherwise))
    assert usable(own_nli.read_inferences(write(tmp_path, header, *rows, otherwise), SKIP))[0] == 4


def test_scenarios_count_once_and_all_contradictions_are_named(tmp_path):
    header, row = "first,second,category,kind", "Calm,Loud,traits,mine"
    assert [one.id for one in load_scenarios(write(tmp_path, header, row, row), built_in=False)] == ["Calm vs Loud"]
    again = ["Calm,Loud,jobs,mine", "Calm,Loud,traits,yours"]
    with raises_code(DataError, "data.duplicate", "line 3", "line 4", "category is 'traits'", "kind is 'mine'"):
        load_scenarios(write(tmp_path, header, row, *again), built_in=False)


SHEETS = {
    "tuples": (
        lambda path: [one.ratings for one in read_sheets([path])],
        "stereotype,dimension,descriptor,term,attribute,sentiment",
        "1,height,tall,girl,attractive,positive",
        "0,height,tall,girl,attractive,positive",
        [{"data": 1}],
    ),
    "levels": (
        lambda path: read_levels([path])["level"].to_list(),
        "level,descriptor,word,annotator",
        "4,old person,wise,ann",
        "2,Old person,wise,ann",
        [4.0],
    ),
}


@pytest.mark.parametrize("kind", SHEETS)
def test_sheet_has_the_one_policy(tmp_path, kind):
    read, header, row, otherwise, value = SHEETS[kind]
    assert read(write(tmp_path, header, row, row)) == value
    with raises_code(DataError, "data.duplicate", "line 3", "line 2"):
        read(write(tmp_path, header, row, otherwise))
    with raises_code(DataError, "data.duplicate", "line 3", "line 4", "2 of 3 rows"):
        read(write(tmp_path, header, row, otherwise, otherwise))


def test_cell_of_an_error_matrix_counts_once(tmp_path):
    """Equal rows were added up, so that a file pasted twice seemed twice as certain."""
    rows = ["a,a,90", "b,a,10", "a,b,20", "b,b,80"]
    once = read_matrix(write(tmp_path, "verdict,label,n", *rows))
    again = read_matrix(write(tmp_path, "verdict,label,n", *rows, *rows))
    assert (once.counts[()] == again.counts[()]).all() and once.counts[()].sum() == 200
    with raises_code(DataError, "data.duplicate", "line 6", "line 2", "'91'"):
        read_matrix(write(tmp_path, "verdict,label,n", *rows, "a,a,91"))
