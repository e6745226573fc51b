"""Words that the command line does not know, and what is meant by them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from prejudge.core.cli import hints
from prejudge.core.cli.main import COMMANDS, cli
from prejudge.core.contracts.abilities import OPERATIONS


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["compar"], "compare"),
        (["scor", "latest"], "score"),
        (["report"], "score"),  # by what it does
        (["annotate"], "view"),
        (["calibrat"], "lab calibrate"),
        (["replicate"], "study replicate"),
        (["tuples", "sheet"], "study tuples"),
        (["card"], "export"),
        (["lab", "varianc"], "variance"),
        (["list", "modls"], "models"),
        (["list", "--operation", "drew"], "draw"),
        (["list", "--operation", "embedings"], "embed"),
        (["zzzz"], None),
        (["list", "--operation", "zzzz"], None),
    ],
)
def test_unknown_word_is_answered_with_the_one_that_is_meant(words, meant):
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 2
    assert f"Did you mean {meant!r}?" in said.stderr if meant else "Did you mean" not in said.stderr


def test_words_of_other_tools_are_taken_for_operations():
    choice = hints.Among(OPERATIONS.values(), hints.OPERATIONS)
    assert [choice.convert(word, None, None) for word in ("chat", "Embedding", "draw")] == ["generate", "embed", "draw"]
    operations = set(OPERATIONS.values())
    assert set(hints.OPERATIONS.values()) <= operations and not hints.OPERATIONS.keys() & operations
    assert set(hints.COMMANDS.values()) <= COMMANDS.keys() and not hints.COMMANDS.keys() & COMMANDS.keys()


@pytest.mark.parametrize(
    ("words", "option", "told"),
    [
        ("run subtle-sai --per_group 5", "--per_group", "per_cell=5"),
        ("run --per-group=5 subtle-sai", "--per-group", "per_cell=5"),
        ("plan dora-t2t --per_group", "--per_group", "per_dimension=VALUE"),
        ("plan dora-t2t --per_group --quick", "--per_group", "per_dimension=VALUE"),
        ("run no-study --per_group 5", "--per_group", "per_group=5"),  # of nothing that is known
    ],
)
def test_option_of_a_study_is_told_with_its_own_name_and_the_value(words, option, told):
    context = click.Context(cli.get_command(click.Context(cli), "run"))
    error = click.NoSuchOption(option, ctx=context)
    assert hints.option_of_study(error, words.split()).endswith(f"--set {told}")
