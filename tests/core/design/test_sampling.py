"""Samples: nested, whole units, and balanced wherever they are cut."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from prejudge import design

WORDS = {"praise": 7, "blame": 5}
ENDINGS = {"park": 3, "station": 2, "cafe": 1}


def plan(orders=("ab", "ba")):
    words = design.Levels.of_rows(
        {"name": f"{sentiment}-{at}", "sentiment": sentiment} for sentiment, most in WORDS.items() for at in range(most)
    )
    endings = design.Levels.of_rows(
        {"name": f"{place}-{at}", "place": place} for place, most in ENDINGS.items() for at in range(most)
    )
    return design.Design(
        (
            design.Sampled("ending", endings, parts=(design.Sampled("place"),)),
            design.By("axis", ("skin", "height", "shape")),
            design.Sampled("word", words, parts=(design.Context("sentiment"),)),
            design.Balanced("order", orders),
            design.Group("noun", ("woman", "man")),
        )
    )


PLAN = plan()


def counts(rows, *names):
    return Counter(zip(*(PLAN.column(name, rows) for name in names), strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 120), st.integers(0, 300), st.integers(0, 3))
def test_a_larger_sample_holds_every_smaller_one(limit, more, seed):
    small, large = (set(PLAN.sample(most, seed=seed).tolist()) for most in (limit, limit + more))
    assert small <= large


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 400), st.integers(0, 3))
def test_units_are_whole_and_the_limit_holds(limit, seed):
    rows = PLAN.sample(limit, seed=seed)
    assert limit - 1 <= len(rows) <= limit
    assert set(counts(rows, "ending", "axis", "word", "order").values()) == {2}
    assert rows.tolist() == sorted(set(rows.tolist()))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 300), st.integers(0, 3))
def test_every_prefix_is_balanced(limit, seed):
    rows = PLAN.sample(limit, seed=seed)
    for names in (("sentiment",), ("sentiment", "axis")):
        cells = counts(rows, *names)
        assert max(cells.values()) - min(cells.get(cell, 0) for cell in counts(None, *names)) <= 2
    for name in ("order", "place"):
        for sentiment in WORDS:
            used = {level: n for (side, level), n in counts(rows, "sentiment", name).items() if side == sentiment}
            levels = PLAN.levels(name)
            assert max(used.values(), default=0) - min(used.get(level, 0) for level in levels) <= 4


@pytest.mark.parametrize("seed", range(5))
def test_each_side_has_two_levels_of_all_that_is_sampled_from_two_units_on(seed):
    rows = PLAN.sample(8, seed=seed)
    for sentiment in WORDS:
        for name in ("word", "place", "ending"):
            assert len({level for side, level in counts(rows, "sentiment", name) if side == sentiment}) == 2


def test_both_sides_use_the_same_places():
    rows = PLAN.sample(24)
    used = {
        sentiment: Counter(
            {place: n for (side, place), n in counts(rows, "sentiment", "place").items() if side == sentiment}
        )
        for sentiment in WORDS
    }
    assert used["praise"] == used["blame"]


@pytest.mark.parametrize("most", [1, 3, 20])
def test_per_cell_draws_that_many_units_of_every_cell(most):
    rows = PLAN.sample(per_cell=most)
    assert set(counts(rows, "sentiment", "axis").values()) == {2 * most}
    assert set(rows.tolist()) <= set(PLAN.sample(per_cell=most + 1).tolist())


def test_everything_is_drawn_in_the_end():
    assert PLAN.sample(per_cell=10_000).tolist() == PLAN.sample(10_000).tolist() == list(range(PLAN.size))


def test_another_seed_draws_others():
    assert PLAN.sample(40, seed=1).tolist() != PLAN.sample(40, seed=2).tolist()
