"""The verbs: five groups, few of them, no two for one thing; and how a run is named."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from prejudge.core.cli.main import COMMANDS, ELSEWHERE, SECTIONS, cli
from prejudge.core.cli.repeated import joined_latest
from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.core.store import Store, get_run
from prejudge.testing import raises_code


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        for name, study in (
            ("first-subtle", "subtle-sai"),
            ("second-subtle", "subtle-sai"),
            ("words", "subtle-asa"),
            ("sentences", "crows-pairs"),
            ("again", "recheck of first-subtle"),
        ):
            opened.begin_run(name, study, b"{}")
        yield opened


def test_help_has_five_groups_of_at_most_17_verbs():
    shown = CliRunner().invoke(cli, ["--help"]).output
    headings = [line.removesuffix(":") for line in shown.splitlines() if line[:1].isalpha() and line.endswith(":")]
    assert headings == ["Options", "Ask", "Read", "Decide", "Prove", "Build"] and len(COMMANDS) <= 17
    assert sum(map(len, SECTIONS.values())) == len(COMMANDS), "one name in two groups"
    assert not COMMANDS.keys() & ELSEWHERE.keys()


@pytest.mark.parametrize("group", ["lab", "study"])
def test_commands_of_a_group_are_not_at_the_top(group):
    context = click.Context(cli)
    inner = cli.get_command(context, group)
    assert isinstance(inner, click.Group)
    names = inner.list_commands(click.Context(inner, parent=context))
    assert names and not set(names) & COMMANDS.keys()
    for name in names:
        assert CliRunner().invoke(cli, [name]).exit_code == 2
        assert CliRunner().invoke(cli, [group, name, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("latest", "sentences"),
        ("latest subtle-sai", "second-subtle"),
        ("latest subtle-a", "words"),
        ("latest crows", "sentences"),
        ("sec", "second-subtle"),
    ],
)
def test_run_is_named_by_its_study_or_its_beginning(store, name, run):
    assert get_run(store, name).name == run


def test_study_that_is_not_one_is_refused(store):
    with raises_code(DataError, "run.ambiguous", "subtle-sai", "subtle-asa"):
        get_run(store, "latest subtle")
    with pytest.raises(UnknownNameError) as unknown:
        get_run(store, "latest indicasa")
    assert unknown.value.fields["name"] == "indicasa"


@pytest.mark.parametrize(
    ("verb", "words", "joined"),
    [
        ("score", ["latest", "subtle-sai", "--unproved"], ["latest subtle-sai", "--unproved"]),
        ("gate", ["--policy", "p.toml", "latest", "dora"], ["--policy", "p.toml", "latest dora"]),
        ("score", ["latest", "--unproved"], ["latest", "--unproved"]),
        ("view", ["latest", "dora"], ["latest dora"]),
        ("cache", ["prune", "--run", "latest", "x"], ["prune", "--run", "latest", "x"]),
        ("compare", ["latest", "other"], ["latest", "other"]),
        ("run", ["latest", "other"], ["latest", "other"]),
    ],
)
def test_latest_of_a_study_is_one_word_where_one_run_is_asked_for(verb, words, joined):
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None and joined_latest(command, words) == joined


def test_card_takes_no_selection_of_estimates():
    error = CliRunner().invoke(cli, ["export", "latest", "--what", "card", "--metric", "delta"]).exception
    assert isinstance(error, UsageError) and error.code == "options.conflict"
