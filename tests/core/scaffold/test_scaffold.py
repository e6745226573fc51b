"""`prejudge new` writes a package with the names in it, and refuses names and folders that cannot be."""

from __future__ import annotations

import ast
import tomllib

import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import UsageError
from prejudge.core.scaffold import KINDS, Names, write_package
from prejudge.core.scaffold.write import check_name, rendered
from prejudge.testing import raises_code


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_is_sound(kind):
    files = dict(rendered(Names(kind, "word-choice")))
    assert {"pyproject.toml", "README.md", ".gitignore", ".github/workflows/tests.yml"} <= set(files)
    for path, text in files.items():
        assert "$package" not in path + text and "class_name" not in text, path
        if path.endswith(".py"):
            ast.parse(text)
        if path.endswith(".toml"):
            tomllib.loads(text)


@pytest.mark.parametrize("kind", KINDS)
def test_entry_point_is_the_plugin_module(kind):
    files = dict(rendered(Names(kind, "word-choice")))
    entry = tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]["prejudge"]
    assert entry == {"word_choice": "word_choice.plugin"} and "src/word_choice/plugin.py" in files


def test_workflow_keeps_its_own_dollar_signs():
    assert "${{ matrix.python }}" in dict(rendered(Names("probe", "word-choice")))[".github/workflows/tests.yml"]


@pytest.mark.parametrize(
    "name", ["Word", "word_choice", "1word", "-word", "word--choice", "", "../word", "class", "tests"]
)
def test_name_that_cannot_be_one_is_refused(name):
    with raises_code(UsageError, "scaffold.name"):
        check_name("probe", name)


def test_folder_with_files_is_left_alone(tmp_path):
    (tmp_path / "kept").write_text("kept")
    with raises_code(UsageError, "file.exists"):
        write_package(Names("probe", "word-choice"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_command_says_what_comes_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["new", "metric", "my-gap"])
    assert done.exit_code == 0 and "cd my-gap" in done.output
    assert (tmp_path / "my-gap" / "src" / "my_gap" / "metric.py").is_file()


def test_taken_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["new", "probe", "crows-pairs"])
    assert isinstance(done.exception, UsageError) and done.exception.code == "scaffold.name-taken"
    assert not list(tmp_path.iterdir())
