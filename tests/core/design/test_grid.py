"""Cells by arithmetic on indices are those of plain loops over all combinations."""

from __future__ import annotations

import itertools
from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from prejudge import design
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.testing import raises_code

NAMES = st.sampled_from(("a", "b", "c"))


def agrees(cell, value):
    """Return whether a cell of a gating column goes with a level."""
    return cell is None or value is None or value in (cell if isinstance(cell, tuple) else (cell,))


@st.composite
def declared(draw):
    """Draw three factors: one plain, one with a part, and one within that part and the first factor."""
    first = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    sizes = st.integers(1, 4)
    part = draw(st.lists(st.sampled_from(("x", "y", None)), min_size=(n := draw(sizes)), max_size=n))
    gate = st.one_of(st.none(), NAMES, st.tuples(NAMES, NAMES))
    gates = draw(st.lists(gate, min_size=(m := draw(sizes)), max_size=m))
    others = draw(st.lists(st.sampled_from(("x", "y", None)), min_size=m, max_size=m))
    left_out = draw(st.booleans())
    where = draw(st.booleans())
    return first, part, gates, others, left_out, where


def loops(first, part, gates, others, left_out, where):
    """Return the cells by brute force."""
    for a, (at, p), (to, (gate, other)) in itertools.product(
        first, enumerate(part), enumerate(zip(gates, others, strict=True))
    ):
        if not (agrees(gate, a) and agrees(other, p)):
            continue
        if left_out and a == "a" and p == "x":
            continue
        if where and p != "y":
            continue
        yield a, f"p{at}", f"q{to}"


def plan_of(first, part, gates, others, left_out, where):
    wholes = design.Levels(tuple(f"p{at}" for at in range(len(part))), {"kind": tuple(part)})
    columns = {"first": tuple(gates), "kind": tuple(others)}
    inner = design.Levels(tuple(f"q{at}" for at in range(len(gates))), columns)
    return design.Design(
        (
            design.Group("first", tuple(first)),
            design.Sampled("whole", wholes, parts=(design.By("kind"),)),
            design.Fixed("inner", inner, within=("first", "kind")),
        ),
        where={"kind": ("y",)} if where else {},
        without=({"first": ("a",), "kind": ("x",)},) if left_out else (),
    )


@settings(max_examples=200, deadline=None)
@given(declared())
def test_cells_are_those_of_nested_loops(parts):
    plan, expected = plan_of(*parts), list(loops(*parts))
    assert plan.size == len(expected)
    assert [(cell["first"], cell["whole"], cell["inner"]) for cell in plan.cells()] == expected
    assert [trial.id for trial in plan.trials(lambda cell: None)] == ["/".join(cell) for cell in expected]


@settings(max_examples=100, deadline=None)
@given(declared())
def test_incidence_counts_the_cells(parts):
    plan, cells = plan_of(*parts), list(loops(*parts))
    kinds = dict(zip((f"p{at}" for at in range(len(parts[1]))), parts[1], strict=True))
    expected = Counter((kinds[whole], inner) for _, whole, inner in cells if kinds[whole] is not None)
    table = plan.incidence("kind", "inner")
    counted = {
        (kind, inner): int(table[i, j])
        for i, kind in enumerate(plan.levels("kind"))
        for j, inner in enumerate(plan.levels("inner"))
        if table[i, j]
    }
    assert counted == dict(expected)


@settings(max_examples=100, deadline=None)
@given(declared())
def test_twins_differ_in_the_group_alone(parts):
    plan, cells = plan_of(*parts), list(loops(*parts))
    twins = plan.twins("first")
    for row in twins:
        assert len({cells[at][1:] for at in row if at >= 0}) == 1
        assert [cells[at][0] for at in row if at >= 0] == [
            level for at, level in zip(row, plan.levels("first"), strict=True) if at >= 0
        ]
    assert sorted(twins[twins >= 0].tolist()) == list(range(len(cells)))


def test_a_factor_is_declared_after_what_it_is_within():
    nouns = design.Levels(("boy",), {"gender": ("men",)})
    plan = design.Design((design.Fixed("noun", nouns, within=("gender",)), design.Group("gender", ("men", "women"))))
    with raises_code(UsageError, "design.order", "gender"):
        _ = plan.size


def test_an_unknown_name_is_refused_with_the_nearest():
    plan = design.Design((design.Sampled("word", ("kind", "rude")),), where={"wrod": ("kind",)})
    with raises_code(UnknownNameError, "unknown-factor", "'word'"):
        _ = plan.size


@pytest.mark.parametrize(
    ("factors", "code"),
    [
        ((design.Group("a", ("x",)), design.Fixed("a", ("y",))), "design.names"),
        ((design.Sampled("a", design.Levels(("x",)), parts=(design.By("b"),)),), "design.column"),
        ((design.Sampled("a", design.Levels(("x",), {"b": ("y",)}), parts=(design.By("b", ("y",)),)),), "design.part"),
    ],
)
def test_contradictions_are_refused(factors, code):
    with raises_code(UsageError, code):
        _ = design.Design(factors).size


def test_a_rotation_gives_each_cell_one_of_its_levels_in_turn():
    premises = design.Levels(("p1", "p2", "p3"), {"number": (1, 2, 3), "kind": ("looks", "acts", "acts")})
    forms = design.Levels(("f1", "f2"), {"number": (1, 2)})
    turn = design.Rotation(("premise.number", "form.number"), only={"premise.kind": ("acts",)})
    plan = design.Design(
        (
            design.Sampled("premise", premises),
            design.Fixed("form", forms),
            design.Fixed("noun", ("n0", "n1", "n2"), assigned=turn),
        )
    )
    cells = [(cell["premise"], cell["form"], cell["noun"]) for cell in plan.cells()]
    assert cells == [
        *(("p1", form, noun) for form in ("f1", "f2") for noun in ("n0", "n1", "n2")),
        *(("p2", "f1", "n0"), ("p2", "f2", "n1"), ("p3", "f1", "n1"), ("p3", "f2", "n2")),
    ]


def test_a_draw_is_shared_by_the_cells_that_differ_in_nothing_it_draws_by():
    words = tuple(f"w{at}" for at in range(50))
    draw = design.Draw(("template",), seed=3)
    plan = design.Design(
        (
            design.Sampled("template", tuple(f"t{at}" for at in range(40))),
            design.Fixed("word", words, assigned=draw),
            design.Group("noun", ("woman", "man")),
        )
    )
    drawn = {(cell["template"], cell["word"]) for cell in plan.cells()}
    assert plan.size == 80 and len(drawn) == 40
    assert len({word for _, word in drawn}) > 20
    other = design.Draw(("template",), seed=4)
    assert [draw.place((name,), 50) for name, _ in drawn] != [other.place((name,), 50) for name, _ in drawn]


def test_a_level_of_several_groups_counts_with_the_commonest_where_that_is_stated():
    pairs = design.Levels(("1", "2", "3"), {"words": (("he", "John"), ("he",), ("John", "Ann"))})
    stated = design.Design((design.Sampled("pair", pairs, parts=(design.Sampled("words", several="commonest"),)),))
    assert [stated.levels("words")[code] for code in stated.codes("words")] == ["John", "he", "John"]
    unstated = design.Design((design.Sampled("pair", pairs, parts=(design.Sampled("words"),)),))
    with raises_code(UsageError, "design.several", "words"):
        unstated.codes("words")


def test_a_large_design_is_counted_without_a_loop_over_trials():
    plan = design.Design(
        (
            design.Sampled("face", tuple(map(str, range(462)))),
            design.Sampled("scenario", tuple(map(str, range(91)))),
            design.Balanced("order", ("ab", "ba")),
            design.Group("variant", ("original", "filtered")),
        )
    )
    assert plan.size == 462 * 91 * 4
    assert np.array_equal(plan.incidence("scenario", "variant"), np.full((91, 2), 924))
