"""Which fixed factors of a design a conclusion names."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.estimates import Estimate
from prejudge.core.design import By, Design, Fixed, Group, Levels, Sampled
from prejudge.core.scoring.fixed import with_fixed
from prejudge.core.statistics.facets import population

COLUMNS = frozenset({"word", "form", "kind", "noun", "group", "number", "face"})


def record(**levels):
    words = Levels.of_rows({"name": f"w{n}", "number": "one" if n % 2 else "many"} for n in range(8))
    nouns = Levels.of_rows({"name": noun, "kind": kind} for noun, kind in (("a", "x"), ("b", "x"), ("c", "y")))
    faces = Levels.of_rows({"name": f"f{n}", "group": "g" if n % 2 else "h"} for n in range(4))
    factors = (
        By("kind", ("x", "y")),
        Sampled("word", words, (Fixed("number"),)),
        Fixed("form", levels.get("form", ("1", "2", "3", "4"))),
        Fixed("noun", nouns, within=("kind",)),
        Group("group", ("g", "h")),
        Fixed("face", faces, within=("group",)),
    )
    return Design(factors, columns={name: name for name in ("word", "form", "kind", "noun", "group", "face")}).record()


def named(record, columns=COLUMNS, facts=None, **group):
    estimate = Estimate(metric="m", group=group, value=1.0, facts={"over": "word"} if facts is None else facts)
    return with_fixed([estimate], record, columns)[0].facts.get("fixed")


def test_claim_names_the_fixed_factors_that_it_averages_over():
    """Not the number, which each word brings with it, and not the faces, which differ by group."""
    assert named(record()) == "in these four forms, with these nouns"


def test_factor_of_the_group_one_level_or_no_column_is_not_named():
    assert named(record(), form="1") == "with these nouns"
    assert named(record(form=("1",))) == "with these nouns"
    assert named(record(), COLUMNS - {"noun"}) == "in these four forms"
    assert named(record(form=tuple(map(str, range(12)))), COLUMNS - {"noun"}) == "in these 12 forms"


def test_estimates_that_generalise_over_nothing_and_studies_without_a_design_name_nothing():
    assert named(record(), facts={}) is None and named(None) is None


def test_population_ends_with_what_the_claim_holds_for_alone():
    fixed, other = (Estimate(metric="m", group={}, value=1.0, facts={"over": "word", "fixed": f"in these {n} forms"})
                    for n in ("two", "four"))  # fmt: skip
    assert population([fixed, fixed]).endswith(", in these two forms")
    assert "forms" not in population([fixed, other])


@pytest.mark.parametrize("study", ["bistereo-pairs", "bistereo-tuples", "bistereo-nli", "attractiveness"])
def test_built_in_designs_name_no_group_and_nothing_twice(study):
    catalogue = Catalogue.load()
    design = catalogue.instrument(catalogue.study(study, {}, {})).design
    columns = frozenset(factor.name for factor in design.declared)
    words = named(design, columns) or ""
    names = [factor.name for factor in design.declared if factor.role != "fixed"]
    assert not any(f"{name}s" in words.replace(",", "").split() for name in names)
    assert bool(words) is any(name in columns for name in ("form", "noun"))
