"""Printed values and tables: what they are expanded to, and when a measured value agrees."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.published import Again, Published, PublishedTable, references, whose
from prejudge.core.catalogue.registry import parse_registry
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.testing import raises_code

TABLE = PublishedTable(
    by=("domain", "pronoun"),
    measures=("PL", "NL"),
    rows=(("age", "she", 60.5, 20), ("age", "he", 50.1, 30), ("looks", "she", 1, 2)),
    tolerance=0.01,
    model="m",
    source="Table 9",
)


def test_table_has_a_value_per_row_and_measure():
    first, *_, last = found = list(TABLE.values())
    assert len(found) == 6 and {value.tolerance for value in found} == {0.01}
    assert first == Published("PL", 60.5, {"domain": "age", "pronoun": "she"}, 0.01, model="m", source="Table 9")
    assert (last.measure, last.value, last.group) == ("NL", 2.0, {"domain": "looks", "pronoun": "she"})


def test_other_answers_have_tolerances_and_readings_of_their_own():
    again = Again("n", tolerances={"age, he": 0.5}, readings={"age, he": "asked later", "looks": "others"})
    table = PublishedTable(**{n: getattr(TABLE, n) for n in TABLE.__struct_fields__ if n != "again"}, again=(again,))
    she, he, looks = [value for value in table.values() if value.model == "n" and value.measure == "PL"]
    assert (she.tolerance, she.reading) == (0.01, "")
    assert (he.tolerance, he.reading) == (0.5, "asked later")
    assert (looks.tolerance, looks.reading) == (None, "others")


def test_rows_may_say_of_how_many_units_they_are():
    own = {name: getattr(TABLE, name) for name in TABLE.__struct_fields__}
    assert [value.n for value in PublishedTable(**own | {"n": (7, 8, 9)}).values()] == [7, 7, 8, 8, 9, 9]
    each = {"n": ((7, 1), 8, (9, 2))}
    assert [value.n for value in PublishedTable(**own | each).values()] == [7, 1, 8, 8, 9, 2]
    with raises_code(DataError, "published.row", "'Table 9'"):
        list(PublishedTable(**own | {"n": (7, 8, (9,))}).values())
    with raises_code(DataError, "published.row", "'Table 9'", "2", "3"):
        list(PublishedTable(**own | {"n": (7, 8)}).values())


def test_references_are_what_models_gave():
    again = Again("PaLM 2 (published answers)")
    own = {name: getattr(TABLE, name) for name in TABLE.__struct_fields__}
    table = PublishedTable(**own | {"model": "PaLM 2", "again": (again,)})
    other = Published("tau", 0.5, model="GPT-3.5")
    more = [
        Published("tau", 0.1, model="PaLM 2", of="p"),
        Published("tau", 0.2, model="PaLM 2", reference=False),
        Published("tau", 0.3),
    ]
    values = [*table.values(), other, *more]
    assert references(values, ["all"]) == {"PaLM 2": list(table.values())[:6], "GPT-3.5": [other]}
    assert references(values, ["palm-2"]) == {"PaLM 2": list(table.values())[:6]}
    with raises_code(UnknownNameError, "unknown-published-model", "'PaLM 3'"):
        references(values, ["PaLM 3"])
    with raises_code(UsageError, "published.none"):
        references(more, ["all"])


@pytest.mark.parametrize("row", [("age", 1), ("age", 1, 2, 3), ("age", 1, "x"), ("age", 1, True)])
def test_row_that_does_not_fit_is_refused(row):
    with raises_code(DataError, "published.row", "'T'"):
        list(PublishedTable(by=("domain",), measures=("PL", "NL"), rows=(row,), source="T").values())


def test_catalogue_adds_tables_to_the_single_values():
    text = "[studies.s]\nprobe='p'\nmetrics={}\npublished=[{measure='a', value=1}]\n"
    table = "[[studies.s.tables]]\nby=['d']\nmeasures=['b']\nrows=[['x', 2]]\n"
    found = parse_registry(text + table, "my.toml").studies["s"].published
    assert [(value.measure, value.value) for value in found] == [("a", 1.0), ("b", 2.0)]
    with raises_code(DataError, "registry.entry", "my.toml"):
        parse_registry(text + table.replace("['x', 2]", "['x']"), "my.toml")
    with raises_code(UnknownNameError, "unknown-key", "'measurs'"):
        parse_registry(text + table.replace("measures", "measurs"), "my.toml")


@pytest.mark.parametrize(
    ("value", "measured", "agrees"),
    [
        (Published("a", 60.48, tolerance=0.01), 60.47, True),
        (Published("a", 60.48, tolerance=0.01), 60.4699, False),
        (Published("a", 4.95786e-133, relative=1e-5), 4.95785e-133, True),
        (Published("a", 4.95786e-133, relative=1e-5), 4.9577e-133, False),
        (Published("a", 4.95786e-133, relative=1e-5), 0.0, False),
        (Published("a", 1.0), 1.0, None),
    ],
)
def test_tolerance_is_absolute_or_a_share_of_the_value(value, measured, agrees):
    assert value.agrees(measured) is agrees


PALM = [Published("a", 1, model=name) for name in ("PaLM 2", "GPT-3.5", "PaLM 2 (published answers)")]


@pytest.mark.parametrize(
    ("name", "imported", "models"),
    [
        ("palm-2", True, ["PaLM 2 (published answers)"]),
        ("palm_2", False, ["PaLM 2"]),
        ("PaLM 2", True, ["PaLM 2 (published answers)"]),
        ("PaLM 2 (published answers)", True, ["PaLM 2 (published answers)"]),
        ("gpt_3.5", True, ["GPT-3.5"]),
        ("gpt-4", False, []),
        ("palm", True, []),
        ("-", True, []),
    ],
)
def test_names_are_compared_without_case_and_signs(name, imported, models):
    assert whose(PALM, name, imported=imported) == models
