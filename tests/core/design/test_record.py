"""The record of a design: stored, read back, and joined to observations."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from prejudge import design
from prejudge.core.contracts.errors import UnknownNameError
from prejudge.testing import raises_code

WORDS = design.Levels.of_rows(
    [
        {"name": "kind", "shown": "kind", "sentiment": "praise", "stem": "kind"},
        {"name": "unkind", "shown": "unkind", "sentiment": "blame", "stem": "kind"},
        {"name": "rude", "shown": "rude", "sentiment": "blame", "stem": "rude"},
        {"name": "none", "shown": None, "sentiment": "neutral", "stem": None},
    ]
)
PLAN = design.Design(
    (
        design.Sampled("opening", ("I saw", "There was")),
        design.Sampled("word", WORDS, parts=(design.Context("sentiment"), design.Sampled("stem"))),
        design.Group("condition", ("groups", "swapped", "prior"), controls=("prior",)),
    ),
    columns={"opening": "opening", "word": "word.shown", "condition": "condition"},
    questions=(design.Question("by opening", {"opening": "by"}),),
    answer=design.AnswerForm("label", outcome="choice", answers=("a", "b"), up=("a",)),
)


@pytest.fixture(scope="module")
def roles():
    return msgspec.json.decode(msgspec.json.encode(PLAN.record()), type=design.Roles)


def test_a_record_is_the_same_when_it_is_read_back(roles):
    assert roles == PLAN.record()


def test_parts_are_joined_by_the_column_that_trials_have(roles):
    seen = pl.DataFrame([trial.factors for trial in PLAN.trials(lambda cell: None)], infer_schema_length=None)
    joined = roles.join(seen)
    assert joined.columns == ["opening", "word", "condition", "sentiment", "stem"]
    expected = [(cell["sentiment"], cell["stem"]) for cell in PLAN.cells()]
    assert list(zip(joined["sentiment"], joined["stem"], strict=True)) == expected


def test_categories_are_joined_as_texts(roles):
    seen = pl.DataFrame({"word": ["rude", None, "kind"]}, schema={"word": pl.Categorical})
    assert roles.join(seen)["sentiment"].to_list() == ["blame", "neutral", "praise"]


def test_a_level_that_the_design_lacks_has_no_part(roles):
    joined = roles.join(pl.DataFrame({"word": ["odd", "rude"]}))
    assert joined["stem"].to_list() == [None, "rude"]


def test_a_part_that_data_have_themselves_stays_theirs(roles):
    joined = roles.join(pl.DataFrame({"word": ["rude"], "stem": ["mine"]}))
    assert joined["stem"].to_list() == ["mine"]


def test_facets_are_all_that_is_sampled_with_what_each_is_nested_in(roles):
    assert {facet.name: facet.nested_in for facet in roles.facets()} == {"opening": (), "word": ("stem",), "stem": ()}
    assert {facet.name: facet.levels for facet in roles.facets()} == {"opening": 2, "word": 4, "stem": 2}


def test_a_question_has_its_own_facets(roles):
    assert [facet.name for facet in roles.facets("by opening")] == ["word", "stem"]
    with raises_code(UnknownNameError, "unknown-question"):
        roles.facets("by closing")


def test_facets_that_data_lack_are_named(roles):
    assert roles.missing(roles.join(pl.DataFrame({"word": ["odd"]}))) == ("opening", "stem")


def test_incidence_is_stored(roles):
    stored = {(one.first, one.second): one for one in roles.incidence}
    assert stored["opening", "condition"].each == 4
    assert set(stored["sentiment", "stem"].counts) == {(0, 0, 6), (1, 0, 6), (1, 1, 6)}


def test_controls_are_no_twins():
    assert PLAN.twins("condition").shape == (8, 2)
    assert PLAN.units.max() == 7
