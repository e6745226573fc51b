"""An option that takes one value is refused where it is given twice, by every command; no value is ignored."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import cli
from prejudge.core.cli.shared import read_assignments, read_pairs
from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.options import parse_assignments
from prejudge.testing import raises_code


def commands_of(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands_of(command, *path, name)


SINGLE = [
    (path, option)
    for path, command in commands_of(cli)
    for option in command.params
    if isinstance(option, click.Option) and not (option.multiple or option.count or option.is_flag)
]
"""Options that take a value, and are not documented as repeatable."""


def value_of(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[0])
    return "1"


@pytest.mark.parametrize(("path", "option"), SINGLE, ids=[f"{' '.join(path)} {option.name}" for path, option in SINGLE])
def test_repeated_option_is_refused_by_every_command(path, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flag = option.opts[-1]
    words = [*path, flag, value_of(option), f"{flag}={value_of(option)}"]
    error = CliRunner().invoke(cli, words).exception
    assert isinstance(error, UsageError) and error.code == "options.duplicate", (words, error)
    assert error.fields["option"] in option.opts and list(tmp_path.iterdir()) == []


def test_every_command_is_walked():
    assert len(SINGLE) > 100
    paths = {path for path, _ in SINGLE}
    assert {
        ("run",),
        ("import",),
        ("cache", "export"),
        ("study", "tuples", "complete"),
        (
            "study",
            "demo",
        ),
    } <= paths


@pytest.mark.parametrize(
    "words",
    [
        ["score", "latest", "--store", "a.db", "--", "--store"],
        ["score", "latest", "--store", "a.db", "--quiet", "--quiet", "-q"],
        ["score", "latest", "--store", "a.db", "--set", "per_cell=1", "--set", "seed=1"],
    ],
)
def test_what_does_not_replace_a_value_is_allowed(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert getattr(CliRunner().invoke(cli, words).exception, "code", "") != "options.duplicate"


@pytest.mark.parametrize(
    "read",
    [
        lambda: parse_assignments(["seed=1", "seed=2"]),
        lambda: parse_assignments(["seed=1", " seed =1"]),
        lambda: read_assignments(("data=a.csv",), "b.csv"),
        lambda: read_assignments(("orders=all",), None, orders="latin"),
        lambda: read_pairs("--where", ("gender=women", "gender=men")),
    ],
)
def test_name_that_is_set_twice_is_refused(read):
    with raises_code(UsageError, "options.duplicate"):
        read()
