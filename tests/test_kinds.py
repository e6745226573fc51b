"""The kinds of tests: `make quick` runs those that need none, and holds what it says."""

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


def test_library_of_a_model_is_a_fault_once(monkeypatch):
    watch = Watch()
    # Undone before the test ends: `make quick` watches this test, too.
    with monkeypatch.context() as patch:
        for name in LIBRARIES:
            patch.delitem(sys.modules, name, raising=False)
        watch.begin()
        assert watch.fault() is None
        patch.setitem(sys.modules, "torch", ModuleType("torch"))
        assert "torch" in str(watch.fault()) and watch.fault() is None


def test_long_test_is_a_fault(monkeypatch):
    watch = Watch()
    watch.begin()
    monkeypatch.setattr(watch, "_began", watch._began - MOST_SECONDS - 1)
    monkeypatch.setattr(watch, "_known", set(LIBRARIES))
    assert "processor time" in str(watch.fault())
