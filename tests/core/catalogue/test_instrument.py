"""What an instrument infers over: everything sampled that has levels enough, and is not covered by something else."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.instrument import Instrument
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Options, Probe
from prejudge.core.contracts.errors import UsageError
from prejudge.core.design import Design, Group, Levels, Sampled
from prejudge.testing import raises_code


class Plain(Probe):
    def __init__(self, design):
        self._design = design

    def stages(self, options):
        return []

    def design(self, options):
        return self._design


def facets(*parts, **columns):
    """Facets of a study of twelve texts with some parts."""
    texts = Levels(tuple(f"text {number}" for number in range(12)), columns)
    wholes = Sampled("text", texts, tuple(Sampled(name) for name in parts))
    return Instrument(Plain(Design((wholes, Group("side", ("a", "b"))))), Options(), {}).facets


def instrument(**options):
    return Catalogue.load().instrument(Catalogue.load().study("subtle-sai", {}, options))


def test_inference_over_what_is_not_sampled_is_refused():
    with raises_code(UsageError, "options.facet") as caught:
        instrument(**{"subtle.over": ["template", "pronoun"]})
    assert {"template", "term", "positive", "neutral"} <= {*caught.value.fields["facets"]}
    with raises_code(UsageError, "study.metric-columns", "face"):
        instrument(**{"subtle.over": "face"})


def test_all_that_is_sampled_is_the_default():
    (_, options) = instrument().metrics["subtle"]
    assert options.ways == ("template", "term", "positive", "negative", "neutral")


def cycle(count):
    return tuple(f"level {number % count}" for number in range(12))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ("text",)),
        ({"place": cycle(6)}, ("place",)),
        ({"place": cycle(4)}, ("text",)),
        ({"place": cycle(4), "verb": cycle(6)}, ("verb",)),
        ({"place": cycle(12)}, ("text",)),
    ],
    ids=["whole", "part", "few levels", "one of two", "one to one"],
)
def test_facets_are_what_no_other_covers(columns, expected):
    assert facets(*columns, **columns) == expected


@pytest.mark.parametrize(
    ("study", "options", "way"),
    [
        ("subtle-sai", {}, "asking=likelihood"),
        ("subtle-sai", {"asking": "likelihood"}, ""),
        ("bistereo-tuples", {"asking": "generate"}, "asking=likelihood"),
        ("bistereo-tuples", {}, ""),
        ("indicasa", {}, ""),
    ],
)
def test_way_by_likelihood_is_an_option_of_the_probe(study, options, way):
    catalogue = Catalogue.load()
    assert catalogue.instrument(catalogue.study(study, {}, options)).by_likelihood == way
