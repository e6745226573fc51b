"""A rare value one letter away from a frequent level is named; other rare values are levels of their own."""

from __future__ import annotations

import random

import pytest

from prejudge.core.tables.options import TableOptions
from prejudge.core.tables.reading import Form, parse_file
from prejudge.core.tables.spelling import is_near


def remarks(tmp_path, counts, column="gender"):
    """Return what is remarked of a file with these values of a column, in any order."""
    values = [value for value, count in counts.items() for _ in range(count)]
    random.Random(1).shuffle(values)
    path = tmp_path / "data.csv"
    rows = [f"The person is number {number}.,{value}" for number, value in enumerate(values)]
    path.write_text("\n".join([f"text,{column}", *rows]) + "\n")
    return parse_file(str(path), Form(("text", column)), lambda row: row.cells, TableOptions()).notes()


def test_misspelt_level_is_named_with_its_rows_and_the_level_that_was_meant(tmp_path):
    (note,) = remarks(tmp_path, {"female": 312, "male": 300, "femal": 1})
    assert note.endswith("column 'gender': 'femal' is in 1 row. Did you mean 'female' (312 rows)?")


@pytest.mark.parametrize("wrong", ["femal", "femalle", "fenale", "feamle", "Female"])
def test_each_kind_of_slip_is_named(tmp_path, wrong):
    (note,) = remarks(tmp_path, {"female": 40, "male": 40, wrong: 2})
    assert repr(wrong) in note and "2 rows" in note and "'female' (40 rows)" in note


@pytest.mark.parametrize(
    "counts",
    [
        {"female": 40, "male": 40},
        {"female": 40, "male": 2},
        {"female": 40, "nonbinary": 1},
        {"group1": 40, "group2": 1},
        {"woman": 9, "women": 1},
        {"woman": 40, "women": 5},
        {"old": 40, "odd": 1},
        {f"name {letter}{other}": 1 for letter in "abcdefgh" for other in "abcdefghij"} | {"name zz": 20},
    ],
)
def test_level_of_its_own_is_not_questioned(tmp_path, counts):
    assert remarks(tmp_path, counts) == ()


def test_near_is_one_step_of_any_kind_by_a_plain_search():
    """Compare with all words that are one step away, written out."""
    letters, level = "aeflmz1", "female"
    steps = {level[:at] + level[at + 1 :] for at in range(len(level))}
    steps |= {level[:at] + letter + level[at:] for at in range(len(level) + 1) for letter in letters[:-1]}
    steps |= {level[:at] + letter + level[at + 1 :] for at in range(len(level)) for letter in letters[:-1]}
    steps |= {level[:at] + level[at + 1] + level[at] + level[at + 2 :] for at in range(len(level) - 1)}
    steps -= {level}
    others = {"".join(random.Random(seed).choices(letters, k=6)) for seed in range(3000)} | {"femle1", "fem1le"}
    assert all(is_near(word, level) and is_near(level, word) for word in steps)
    assert not [word for word in others - steps if is_near(word, level)]
