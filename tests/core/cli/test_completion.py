"""Tab: names of studies, models and runs, without a backend and without a word too much."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.shell_completion import CompletionItem, ShellComplete

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli import completing
from prejudge.core.cli.main import COMMANDS, LazyGroup, cli
from prejudge.core.store import Store


def offered(*words: str) -> list[CompletionItem]:
    """Return what is offered for the last of the words."""
    return ShellComplete(cli, {}, "prejudge", "_PREJUDGE_COMPLETE").get_completions(list(words[:-1]), words[-1])


def names(*words: str) -> list[str]:
    return [item.value for item in offered(*words)]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Make a store with two runs where a command looks for one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREJUDGE_STORE", raising=False)
    with Store("prejudge.db") as store:
        for name in ("old-run", "new-run"):
            store.begin_run(name, "crows-pairs", b"{}")


def test_commands_are_offered_without_importing_one(monkeypatch):
    monkeypatch.setattr(LazyGroup, "get_command", lambda self, ctx, name: pytest.fail(f"{name} was imported"))
    assert names("re") == [name for name in COMMANDS if name.startswith("re")]


def test_commands_of_studies_are_offered():
    assert "tuples" in names("study", "tu") and "train-encoder" in names("study", "tr")


@pytest.mark.parametrize("command", [("run",), ("plan",), ("import",), ("study", "replicate")])
def test_studies_are_offered(command):
    assert set(names(*command, "bistereo-")) == {
        n for n in Catalogue.load().registry.studies if n.startswith("bistereo-")
    }


def test_study_that_begins_like_none_is_left_to_the_shell():
    (item,) = offered("run", "my-stu")
    assert item.type == "file"


@pytest.mark.parametrize("words", [("run", "crows-pairs", "--model"), ("plan", "crows-pairs", "--model"), ("doctor",)])
def test_models_are_offered(words):
    assert "reference-masked-fair" in names(*words, "reference-") and names(*words, "hf-mask") == ["hf-masked:"]


def test_model_of_a_role_keeps_its_role():
    assert "judge=simulated-fair" in names("run", "crows-pairs", "--model", "judge=simulated-f")


@pytest.mark.parametrize(
    "command",
    [
        ("score",),
        ("resume",),
        ("export", "--what", "card"),
        ("gate",),
        ("compare", "old-run"),
        ("cache", "export"),
        ("lab", "recheck"),
    ],
)
def test_runs_are_offered_the_newest_first(command, runs):
    assert names(*command, "") == ["new-run", "old-run", "latest"]


def test_runs_of_the_store_that_is_named_are_offered(runs, tmp_path):
    (tmp_path / "prejudge.db").rename(tmp_path / "other.db")
    assert names("score", "--store", "other.db", "o") == ["old-run"]


def test_no_store_offers_nothing_and_makes_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names("score", "o") == [] and not list(tmp_path.iterdir())


def test_server_is_not_asked(monkeypatch):
    monkeypatch.setattr(completing, "Store", lambda *_, **__: pytest.fail("a server was asked"))
    assert names("score", "--store", "postgresql://elsewhere/db", "o") == []


def test_broken_registry_offers_files_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "registry.toml").write_text("no toml")
    assert [item.type for item in offered("run", "bistereo-")] == ["file"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_for_a_shell_is_printed(shell):
    code = "import sys; sys.argv = ['prejudge']; from prejudge.core.cli import main; main()"
    environment = {**os.environ, "_PREJUDGE_COMPLETE": f"{shell}_source"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and f"_PREJUDGE_COMPLETE={shell}_complete" in done.stdout


def test_completion_imports_no_backend():
    code = (
        "import sys; sys.argv = ['prejudge']; from prejudge.core.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'openai'} & set(sys.modules)), file=sys.stderr)"
    )
    words = {"COMP_WORDS": "prejudge run crows-pairs --model ref", "COMP_CWORD": "4"}
    environment = {**os.environ, **words, "_PREJUDGE_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "plain,reference-masked-fair" in done.stdout and done.stderr.strip() == "[]"
