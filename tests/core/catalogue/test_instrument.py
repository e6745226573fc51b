"""What an instrument infers over: everything sampled that has levels enough, and is not covered by something else."""

from __future__ import annotations

import pytest

from prejudge.core.catalogue.instrument import Instrument
from prejudge.core.contracts import Options, Probe
from prejudge.core.design import Design, Group, Levels, Sampled


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
