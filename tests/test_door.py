"""The door: complete, sorted, light, and explained: `help` of every name, and examples that run."""

from __future__ import annotations

import ast
import doctest
import inspect
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

import prejudge

from .command import blank_figure
from .reference_api import door_groups


def homes(package: str) -> list[tuple[str, ast.alias]]:
    """Return the names that the table of a package promises, with the module each is from."""
    table = ast.parse(files(package).joinpath("__init__.pyi").read_text("utf-8")).body
    imports = [node for node in table if isinstance(node, ast.ImportFrom)]
    return [(f"{package}.{node.module}", alias) for node in imports for alias in node.names]


MODULES = {
    "prejudge.core.statistics": prejudge.statistics,
    "prejudge.core.design": prejudge.design,
    "prejudge.core.reading": prejudge.reading,
    "prejudge.core.tables": prejudge.tables,
}
"""Modules of the door with a table of their own."""
HOMES = homes("prejudge")
TABLES = [*HOMES, *(alias for package in MODULES for alias in homes(package))]


def test_door_is_the_table():
    assert prejudge.__all__ == sorted({alias.name for _, alias in HOMES}) == dir(prejudge)
    assert len(prejudge.__all__) == len(HOMES)


@pytest.mark.parametrize("package", MODULES)
def test_modules_are_their_tables(package):
    module, names = MODULES[package], [alias.name for _, alias in homes(package)]
    assert module.__all__ == sorted(names) == dir(module)
    assert not {path.stem for path in Path(module.__path__[0]).glob("*.py")} & set(names)


@pytest.mark.parametrize(
    ("home", "alias"),
    TABLES,
    ids=[f"{home}.{alias.name}" for home, alias in TABLES],
)
def test_name_is_the_thing_of_its_home(home, alias):
    door = next((module for package, module in MODULES.items() if home.startswith(package)), prejudge)
    assert alias.asname == alias.name, "type checkers take a name of a stub for public only if it is written `X as X`"
    assert getattr(door, alias.name) is getattr(import_module(home), alias.name)


def test_there_is_no_other_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = prejudge.no_such_name


def test_import_is_light():
    heavy = "{'polars', 'sqlmodel', 'scipy', 'torch'}"
    code = f"from prejudge import design, reading, statistics; import sys; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


MOST = 64
"""Names of the door."""
EXPLAINED = [name for name in prejudge.__all__ if not name.startswith("_")]
FUNCTIONS = [name for name in EXPLAINED if inspect.isroutine(getattr(prejudge, name))]
AWAITED = [name for name in FUNCTIONS if inspect.iscoroutinefunction(getattr(prejudge, name))]
RAISES_NOTHING = {"harmless", "hookimpl", "wire_seed"}
SHAPE = ("conclusion", "estimates", "report", "charts", "plot", "_repr_html_")
RESULTS = [
    name
    for name in EXPLAINED
    if inspect.isclass(found := getattr(prejudge, name)) and issubclass(found, prejudge.Result)
]


def shown(name: str) -> str:
    """Return what `help` prints of a name, without the marks at the left of a class."""
    text = pydoc.plain(pydoc.render_doc(getattr(prejudge, name)))
    return "\n".join(row.removeprefix(" |").removeprefix("  ") for row in text.splitlines())


def example_of(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(prejudge, name)) or "", name)


def test_door_has_few_names_each_in_a_group():
    grouped = [name for names in door_groups().values() for name in names]
    assert sorted(grouped) == prejudge.__all__
    assert len(grouped) <= MOST


@pytest.mark.parametrize("name", EXPLAINED)
def test_help_has_an_example(name):
    assert example_of(name)
    assert ">>> " in shown(name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_of_a_function_explains_every_argument_the_result_and_the_errors(name):
    text = shown(name)
    arguments, _, rest = text.partition("Args:")[2].partition("Returns:")
    for parameter in inspect.signature(getattr(prejudge, name)).parameters:
        assert re.search(rf"^ +{parameter}: \S", arguments, re.M), f"{name}: {parameter} is not explained"
    assert rest.strip()
    assert ("Raises:" in rest) != (name in RAISES_NOTHING)


@pytest.mark.parametrize("name", [n for n in EXPLAINED if inspect.isclass(getattr(prejudge, n))])
def test_help_of_a_class_explains_its_fields(name):
    kind, text = getattr(prejudge, name), shown(name)
    for field in getattr(kind, "__struct_fields__", ()):
        assert re.search(rf"^ +{field}: \(", text, re.M), f"{name}: {field} is not explained"


def test_help_of_a_record_explains_its_fields():
    text = pydoc.plain(pydoc.render_doc(prejudge.records.Generate))
    assert "Number of this repeat: each repeat of one prompt is a draw of its own." in text


@pytest.mark.parametrize("name", AWAITED)
def test_awaited_verb_has_a_blocking_twin(name):
    awaited, twin = getattr(prejudge, name), getattr(prejudge, name.removeprefix("a"))
    assert name == f"a{twin.__name__}"
    assert inspect.signature(awaited) == inspect.signature(twin)
    assert twin.__doc__ == awaited.__doc__.replace(f"await prejudge.{name}(", f"prejudge.{twin.__name__}(")
    assert twin.__doc__ != awaited.__doc__


def test_only_verbs_that_ask_models_have_a_twin():
    asking = {name for name in door_groups()["Ask models"] if name in FUNCTIONS}
    assert asking == {*AWAITED, *(name.removeprefix("a") for name in AWAITED)}


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_one_shape(name):
    assert all(hasattr(getattr(prejudge, name), member) for member in SHAPE)


def test_most_results_are_on_the_door():
    assert len(RESULTS) == 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A working directory whose store the examples share: an answer is asked once."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
        yield folder


@pytest.mark.parametrize("name", [n for n in EXPLAINED if n not in AWAITED or n == "arun"])
def test_example_runs(name, folder):
    text = inspect.getdoc(getattr(prejudge, name)) or ""
    text = re.sub(r"await (prejudge\.a.*)$", r"__import__('asyncio').run(\1)", text, flags=re.M)
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
