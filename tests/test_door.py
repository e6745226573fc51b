"""The door: complete, sorted, light."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

import prejudge


def homes(package: str) -> list[tuple[str, ast.alias]]:
    """Return the names that the table of a package promises, with the module each is from."""
    table = ast.parse(files(package).joinpath("__init__.pyi").read_text("utf-8")).body
    imports = [node for node in table if isinstance(node, ast.ImportFrom)]
    return [(f"{package}.{node.module}", alias) for node in imports for alias in node.names]


STATISTICS = "prejudge.core.statistics"
HOMES = homes("prejudge")


def test_door_is_the_table():
    assert prejudge.__all__ == sorted({alias.name for _, alias in HOMES}) == dir(prejudge)
    assert len(prejudge.__all__) == len(HOMES)


def test_statistics_are_their_table():
    names = [alias.name for _, alias in homes(STATISTICS)]
    assert prejudge.statistics.__all__ == sorted(names) == dir(prejudge.statistics)
    assert not {path.stem for path in Path(prejudge.statistics.__path__[0]).glob("*.py")} & set(names)


@pytest.mark.parametrize(
    ("home", "alias"),
    [*HOMES, *homes(STATISTICS)],
    ids=[f"{home}.{alias.name}" for home, alias in [*HOMES, *homes(STATISTICS)]],
)
def test_name_is_the_thing_of_its_home(home, alias):
    door = prejudge.statistics if home.startswith(STATISTICS) else prejudge
    assert alias.asname == alias.name, "type checkers take a name of a stub for public only if it is written `X as X`"
    assert getattr(door, alias.name) is getattr(import_module(home), alias.name)


def test_there_is_no_other_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = prejudge.no_such_name


def test_import_is_light():
    heavy = "{'polars', 'sqlmodel', 'scipy', 'torch'}"
    code = f"from prejudge import statistics; import sys; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
