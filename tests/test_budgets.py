"""Ceilings of the code: they hold today, and what grows, or has shrunk without its ceiling, is named."""

from __future__ import annotations

import subprocess
import tomllib

import pytest

from . import budgets, measured_code
from .budgets import Budgets, Room

ROOMY = Room(1000, 5)


def of(rooms, **lists):
    return Budgets(rooms, {key: lists.get(key, {}) for key in budgets.LISTS})


@pytest.fixture
def source(monkeypatch):
    """Let the package be some modules."""

    def replace(**modules):
        texts = {f"core/{name}/module.py": text for name, text in modules.items()}
        monkeypatch.setattr(measured_code, "modules", lambda: texts)
        measured_code.functions.cache_clear()

    yield replace
    measured_code.functions.cache_clear()


def test_code_keeps_its_ceilings():
    assert not list(budgets.problems(budgets.read(), budgets.measured()))


def test_file_is_as_it_is_written():
    assert budgets.FILE.read_text("utf-8") == budgets.text_of(budgets.read())


def test_lines_are_those_that_wc_counts():
    room = measured_code.ROOT / "core" / "store"
    done = subprocess.run(["wc", "-l", *map(str, room.rglob("*.py"))], capture_output=True, text=True, check=True)
    assert measured_code.lines_of_rooms()["core/store"] == int(done.stdout.splitlines()[-1].split()[0])


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (Room(1000, 5), False),
        (Room(960, 5), False),
        (Room(1001, 5), True),
        (Room(1000, 6), True),
        (Room(959, 5), True),
    ],
)
def test_room_that_outgrows_or_undercuts_its_ceiling_is_named(code, named):
    assert bool(list(budgets.problems(of({"core/a": ROOMY}), of({"core/a": code})))) == named


def test_ceiling_at_its_aim_may_be_loose_and_one_above_needs_a_reason():
    small = of({"core/a": Room(100, 5)})
    assert not list(budgets.problems(of({"core/a": Room(1000, 5, aim=1000)}), small))
    above = Room(1000, 5, aim=900)
    full = of({"core/a": ROOMY})
    assert list(budgets.problems(of({"core/a": above}), full))
    assert not list(budgets.problems(of({"core/a": above._replace(reason="because")}), full))


@pytest.mark.parametrize("key", budgets.LISTS)
def test_list_of_exceptions_may_only_shrink(key):
    rooms = {"core/a": ROOMY}
    allowed = of(rooms, **{key: {"core/a/b.py": 450}})
    assert not list(budgets.problems(allowed, of(rooms, **{key: {"core/a/b.py": 450}})))
    assert list(budgets.problems(allowed, of(rooms, **{key: {"core/a/b.py": 451}})))
    assert list(budgets.problems(allowed, of(rooms, **{key: {"core/a/b.py": 450, "core/a/c.py": 401}})))
    assert list(budgets.problems(allowed, of(rooms)))


def test_folder_without_ceiling_is_named():
    assert list(budgets.problems(of({}), of({"core/a": ROOMY})))
    assert list(budgets.problems(of({"core/a": ROOMY}), of({})))


def test_lowering_never_raises():
    ceilings = of(
        {"core/a": ROOMY, "core/b": ROOMY, "core/gone": ROOMY}, files={"core/a/b.py": 450, "core/a/c.py": 500}
    )
    code = of({"core/a": Room(2000, 9), "core/b": Room(515, 2), "core/new": Room(33, 1)}, files={"core/a/b.py": 430})
    lower = budgets.lowered(ceilings, code)
    assert lower.rooms == {"core/a": ROOMY, "core/b": Room(520, 2), "core/new": Room(40, 1)}
    assert lower.lists["files"] == {"core/a/b.py": 430}
    new = of(code.rooms, files={"core/a/b.py": 430, "core/a/d.py": 600})
    assert "core/a/d.py" not in budgets.lowered(ceilings, new).lists["files"]


def test_lowering_stops_at_the_aim():
    code = of({"core/a": Room(500, 5)})
    assert budgets.lowered(of({"core/a": Room(1000, 5, aim=800, reason="why")}), code).rooms["core/a"].lines == 800


def test_raising_takes_one_room_and_keeps_the_reason():
    ceilings = of({"core/a": ROOMY, "core/b": ROOMY})
    code = of({"core/a": Room(1203, 9), "core/b": Room(1203, 9)}, files={"core/a/x.py": 420, "core/b/x.py": 420})
    higher = budgets.raised(ceilings, code, "core/a", "a measure that users asked for")
    assert higher.rooms == {"core/a": Room(1220, 9, None, "a measure that users asked for"), "core/b": ROOMY}
    assert higher.lists["files"] == {"core/a/x.py": 420}
    assert tomllib.loads(budgets.text_of(higher))["rooms"]["core/a"]["lines"] == 1220


def test_vague_names_are_counted_once_per_function(source):
    source(a="def f(given):\n    found = 1\n    found = 2\n    for one in []: pass\n", b="rest = 1\ndef g(): pass\n")
    assert measured_code.vague_names_of_rooms() == {"core/a": 2, "core/b": 0}


def test_long_functions_and_many_parameters_are_found(source):
    long = "class A:\n    def m(self, a, b, c, d, e, *, f):\n        '''Text.\n\n        More.\n        '''\n"
    source(a=long + "        x = 1\n" * 60, b="def g(self, a, b, c, d, e):\n    x = 1\n" + "    x = 1\n" * 58)
    assert measured_code.long_functions() == {"core/a/module.py::A.m": 61}
    assert measured_code.many_parameters() == {"core/a/module.py::A.m": 6}


def test_command_refuses_to_raise_without_a_reason(capsys):
    before = budgets.FILE.read_text("utf-8")
    assert budgets.main(["raise", "core/api", " "]) == 2
    assert budgets.FILE.read_text("utf-8") == before
