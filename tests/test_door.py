"""The door: complete, sorted, light."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.resources import files

import pytest

import prejudge

TABLE = ast.parse(files("prejudge").joinpath("__init__.pyi").read_text("utf-8")).body
HOMES = [(node.module, alias) for node in TABLE if isinstance(node, ast.ImportFrom) for alias in node.names]


def test_door_is_the_table():
    assert prejudge.__all__ == sorted({alias.name for _, alias in HOMES}) == dir(prejudge)
    assert len(prejudge.__all__) == len(HOMES)


@pytest.mark.parametrize(("home", "alias"), HOMES, ids=[alias.name for _, alias in HOMES])
def test_name_is_the_thing_of_its_home(home, alias):
    assert alias.asname == alias.name, "type checkers take a name of a stub for public only if it is written `X as X`"
    assert getattr(prejudge, alias.name) is getattr(import_module(f"prejudge.{home}"), alias.name)


def test_there_is_no_other_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = prejudge.no_such_name


def test_import_is_light():
    code = "import prejudge, sys; print(sorted({'polars', 'sqlmodel', 'scipy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
