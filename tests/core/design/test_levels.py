"""Level tables: read, crossed, joined and united."""

from __future__ import annotations

import pytest

from prejudge import design
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.testing import raises_code


def test_tables_from_csv_and_toml_are_one(tmp_path):
    (tmp_path / "words.csv").write_text("name,sentiment\nkind,praise\nodd,\n", "utf-8")
    (tmp_path / "words.toml").write_text(
        '[[levels]]\nname="kind"\nsentiment="praise"\n[[levels]]\nname="odd"\n', "utf-8"
    )
    from_csv, from_toml = (design.Levels.read(tmp_path / f"words.{kind}") for kind in ("csv", "toml"))
    assert from_csv == from_toml == design.Levels(("kind", "odd"), {"sentiment": ("praise", None)})


@pytest.mark.parametrize(
    ("text", "error", "code"),
    [
        ("name\nkind\nkind\n", UsageError, "design.levels"),
        ("word\nkind\n", DataError, "data.column-missing"),
        ("name\n", DataError, "data.no-rows"),
    ],
)
def test_a_file_that_is_no_table_is_refused(text, error, code, tmp_path):
    (tmp_path / "words.csv").write_text(text, "utf-8")
    with raises_code(error, code):
        design.Levels.read(tmp_path / "words.csv")


def test_columns_have_a_value_per_level():
    with raises_code(UsageError, "design.levels", "sentiment"):
        design.Levels(("kind", "rude"), {"sentiment": ("praise",)})


def test_crossed_tables_agree_in_the_columns_that_they_share():
    axes = design.Levels(("skin", "height"), {"key": ("s", "h")})
    endings = design.Levels(("at the cafe", "in the park", "anywhere"), {"axis": ("skin", "height", None)})
    table = design.crossed({"axis": axes, "ending": endings}, "{key}: {ending}")
    assert table.names == ("s: at the cafe", "s: anywhere", "h: in the park", "h: anywhere")
    assert table.column("axis") == ("skin", "skin", "height", "height")


def test_a_table_crossed_with_itself_is_a_self_join():
    rows = [
        {"name": "dark", "dimension": "skin", "rank": "low"},
        {"name": "fair", "dimension": "skin", "rank": "high"},
        {"name": "tall", "dimension": "height", "rank": "high"},
    ]
    groups = design.Levels.of_rows(rows)
    low, high = (
        design.Levels.of_rows(
            {key: row[key] for key in ("name", "dimension")} for row in groups.rows() if row["rank"] == r
        )
        for r in ("low", "high")
    )
    table = design.crossed({"below": low, "above": high}, "{dimension}: {above} over {below}")
    assert table.names == ("skin: fair over dark",)


def test_a_union_has_null_where_a_table_lacks_a_column():
    by_race = design.crossed(
        {"gender": design.Levels(("f", "m")), "race": design.Levels(("A", "B"))}, "{gender}-{race}"
    )
    by_age = design.crossed({"gender": design.Levels(("f", "m")), "age": design.Levels(("old",))}, "{gender}-{age}")
    faces = design.stacked(by_race, by_age)
    assert faces.column("race") == ("A", "B", "A", "B", None, None)
    plan = design.Design((design.Sampled("face", faces, parts=(design.By("gender"), design.Group("race"))),))
    assert plan.incidence("gender", "race").tolist() == [[1, 1], [1, 1]]


def test_a_union_keeps_the_first_of_equal_names_where_that_is_asked():
    first, second = design.Levels(("a",), {"seen": (True,)}), design.Levels(("b", "a"), {"seen": (False, False)})
    assert design.stacked(first, second, distinct=True) == design.Levels(("a", "b"), {"seen": (True, False)})
    with raises_code(UsageError, "design.levels"):
        design.stacked(first, second)
