"""A pilot's units, as many as a design would have."""

from __future__ import annotations

import polars as pl
import pytest

from prejudge.core.scoring.planned_units import enlarge, untold


def units(people="abc", size=2, **factors):
    rows = [(name, str(number)) for name in people for number in range(size)]
    return pl.DataFrame(
        {"metric": "m", "over.people": [name for name, _ in rows], "unit": [name + number for name, number in rows]}
    ).with_columns(pl.lit(value).alias(name) for name, value in factors.items())


def trials(people, settings=("x",)):
    rows = [(setting, name) for setting in settings for name in people]
    return pl.DataFrame(rows, schema={"setting": pl.String, "person": pl.String}, orient="row")


@pytest.mark.parametrize("people", ["a", "pq", "abc", "abcdefg", "abcdefghijkl"])
def test_there_are_as_many_clusters_as_are_asked_about(people):
    found = enlarge(units(), trials("abc"), trials(people))
    assert found["over.people"].n_unique() == len(people)
    assert found["unit"].n_unique() == found.height == 2 * len(people)


def test_clusters_that_gave_nothing_are_expected_again():
    found = enlarge(units("ab"), trials("abcd"), trials("abcdefgh"))
    assert found["over.people"].n_unique() == 4


def test_a_group_has_the_clusters_that_are_asked_of_it():
    asked = pl.concat([trials("abcdef"), trials("ab", ["y"])])
    parts = pl.concat([units(setting="x"), units(setting="y")])
    found = enlarge(parts, trials("abc", "xy"), asked)
    assert dict(found.group_by("setting").agg(pl.col("over.people").n_unique()).iter_rows()) == {"x": 6, "y": 2}


def test_units_tell_what_clusters_do_not():
    found = enlarge(
        units(size=1).with_columns(pl.col("over.people").alias("unit"), "k/" + pl.col("over.people")), *two()
    )
    assert found["over.people"].n_unique() == 6


def two():
    return trials("abc"), trials("abcdef")


def test_clusters_of_no_factor_cannot_be_counted():
    assert enlarge(units("pqr"), *two()) is None


def test_clusters_that_are_asked_more_than_in_the_pilot_are_not_like_its_clusters():
    tried, asked = two()
    assert enlarge(units(), tried, asked) is not None
    assert enlarge(units(), tried, pl.concat([asked, asked])) is None
    assert enlarge(units(), pl.concat([tried, tried]), asked) is None


def test_groups_that_are_not_asked_about_are_left_out():
    contrast = units(setting="x", against="y")
    assert enlarge(contrast, trials("abc", "xy"), trials("abc", "xz")).is_empty()
    assert not enlarge(contrast, trials("abc", "xy"), trials("abc", "xyz")).is_empty()


def test_what_the_pilot_did_not_ask_is_untold():
    assert list(untold(units(setting="x"), trials("abc"), trials("abc", "xz"))) == ["setting z"]
