"""The kinds of tests: `make quick` begins with those that have none, and warns of one that should have one."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from .kinds import FIXTURES, KINDS, LIBRARIES, MOST_SECONDS, PLACES, Watch, kinds_of


@pytest.mark.parametrize(
    ("place", "fixtures", "values", "kinds"),
    [
        ("core/store/test_store.py::test_x[a]", ["store"], ["sqlite"], []),
        ("core/store/test_store.py::test_x[a]", ["store"], ["postgresql"], ["servers"]),
        ("adapters/hf/test_new.py", [], [], ["models"]),
        ("metrics/dora/test_metric.py", ["make_masked", "tmp_path"], [], ["models"]),
        ("test_packaging.py", ["wheel"], [], ["slow"]),
    ],
)
def test_kind_follows_from_place_and_fixtures(place, fixtures, values, kinds):
    assert kinds_of(place, fixtures, values) == kinds


def test_every_place_is_there(request):
    here = request.path.parent
    assert set(PLACES) == set(FIXTURES) == set(KINDS)
    assert [place for places in PLACES.values() for place in places if not (here / place.split("::")[0]).exists()] == []


def test_a_test_that_loads_the_library_of_a_model_is_advised(monkeypatch):
    watch = Watch()
    for name in LIBRARIES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    watch.begin()
    assert watch.advice() is None
    # Undone before the test ends: `make quick` watches this test, too.
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", ModuleType("torch"))
        assert "torch" in str(watch.advice())
        watch.begin()
        assert watch.advice() is None


def test_a_long_test_is_advised(monkeypatch):
    watch = Watch()
    watch.begin()
    assert watch.advice() is None
    monkeypatch.setattr(watch, "_began", watch._began - MOST_SECONDS - 1)
    assert "processor time" in str(watch.advice())
