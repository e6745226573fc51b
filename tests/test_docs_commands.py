"""Every command of the documentation is run, as it stands on its page and in the order of the page."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prejudge.adapters.encoder_training.command import train_encoder
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.calibrate import calibrate
from prejudge.core.cli.main import cli
from prejudge.core.store import Store, list_runs
from prejudge.probes.demo.command import DESIGN

from . import docs_files as made
from . import docs_world as world
from .command import blank_figure
from .docs_pages import PAGES, blocks_of, commands_of, lines_of, name_of, write_files
from .ray_here import need_ray, time_for_ray

pytest.importorskip("torch", reason="needs the extra hf")

WITH_COMMANDS = [page for page in PAGES if commands_of(page)]
STUDIES = ("bistereo-pairs", "subtle-sai")
MODELS = ("simulated-biased", "simulated-fair", "my-model")
RUNS = re.compile(r"RUN|OTHER|NAME|RUN_[A-Z0-9]+")
"""Words that stand for runs, in this order of the store: those of one study first."""
CAPITALS = re.compile(r"[A-Z][A-Z_0-9]+")
CHECKS = {"gate", "replicate", "recheck"}
"""Commands that end with 1 where what they check does not hold of a stand-in, which is no fault of the page."""
SPENDING = {"run", "resume"}
"""Commands that end with 3 where a budget of theirs is spent."""
NEEDS = {
    "docs/guides/workers.md": ("ray",),
    "docs/studies/attractiveness.md": ("PIL",),
    "docs/studies/dora.md": ("PIL", "simplemma", "sklearn", "vaderSentiment"),
    "docs/studies/indicasa.md": ("sentence_transformers",),
    "docs/train-encoder.md": ("sentence_transformers", "sklearn"),
}
"""What a page's commands need to be installed besides torch."""
ANSWERED = {"prejudge cache prune --run": "y\n", "prejudge trust": "y\n"}
"""What a person says to a command that asks, by how it begins."""
BEFORE = {
    "prejudge study tuples agree ana.csv": lambda: made.sheets(Path.cwd()),
    "prejudge score latest --set dora-associations.method=fisher": lambda: asked(("dora-t2t",)),
    "prejudge study associations RUN OTHER": lambda: asked(("dora-t2t",)),
    "prejudge study levels sheet": lambda: judged(),
    "prejudge study levels agree anna.csv": lambda: made.levels(Path.cwd()),
    "prejudge score latest --labels samples/people": lambda: made.labelled(Path.cwd(), runs_of("subtle")[-1]),
    "prejudge run indicasa --model phi": lambda: indicasa_again("indicasa-gemma"),
}
"""What people do between two commands of a page, by how the second begins."""


@pytest.fixture(scope="module")
def options_of() -> Any:
    catalogue = Catalogue.load()

    def names(kind: str, name: str) -> frozenset[str]:
        return frozenset(catalogue.plugins.load(kind, name).options.__struct_fields__)

    return names


@pytest.fixture(scope="module")
def small(options_of) -> Iterator[None]:
    """Make studies small and models stand-ins. Figures, which take most of a small run's time, are not drawn here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prejudge.core.catalogue.study.load_registry", world.registry_of_stand_ins)
        patch.setattr(Catalogue, "load", world.small_catalogue(options_of))
        patch.setitem(DESIGN, "per_cell", 3)
        for option in (*train_encoder.params, *calibrate.params):
            if option.name in world.SHORT:
                patch.setattr(option, "default", world.SHORT[option.name])
        patch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
        # A reading room is open until somebody ends it.
        patch.setattr("prejudge.core.view.serve.serve", lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def template(tmp_path_factory, small) -> Path:
    """Make a folder with a store of six runs: two studies on three models."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        asked(STUDIES)
    return folder


def test_studies_of_plugins_are_small(small):
    studies = Catalogue.load().registry.studies
    assert all(few.items() <= studies[name].options.items() for name, few in world.FEW.items() if name in studies)
    assert studies["subtle-sai"].options["per_cell"] == 3


def test_trainings_and_studies_of_trained_models_are_short(small):
    options = (*train_encoder.params, *calibrate.params)
    assert {option.name: option.default for option in options if option.name in world.SHORT} == world.SHORT


def asked(studies: Iterable[str]) -> None:
    """Ask each study of three models."""
    for study in studies:
        for model in MODELS:
            assert call(f"prejudge run {study} --model {model} --quiet") == 0


def judged() -> None:
    """Let a judge rate associations, of which such a small run has none that the exact test keeps."""
    line = "prejudge run dora-t2t --model simulated-biased --model judge=gpt-4o --set salience=tf-idf --quiet"
    assert call(f"{line} --set salience_level=0.5 --set dora-associations.method=all") == 0


def indicasa_again(name: str) -> None:
    """Ask another model what the page asked last, and name the run."""
    line = next(line for page in PAGES for line in commands_of(page) if "--data Masked_IndiBias.csv" in line)
    assert call(re.sub(r"--model \S+", "--model gemma-2-9b-it", line, count=1)) == 0
    made.rename(Path.cwd(), runs_of("indicasa")[-1], name)


def runs_of(studies: str) -> list[str]:
    """Return the names of the runs whose study begins so, the oldest first."""
    with Store("prejudge.db", writable=False) as store:
        return [run.name for run in list_runs(store) if run.study.startswith(studies)]


def filled(line: str, study: str = STUDIES[0]) -> list[str]:
    """Return the words of a command, with names of runs of a study in the place of words in capitals."""
    words = shlex.split(re.sub(r"\s\d?>\s*\S+", "", line))[1:]
    first = study if "associations" not in words and "dora" not in line else "dora-t2t"
    runs = runs_of(first) if any(map(CAPITALS.fullmatch, words)) else []
    if len(set(filter(RUNS.fullmatch, words))) > len(runs):
        runs = runs_of("")
    known: dict[str, str] = {"STUDY": STUDIES[0]}
    for number, word in enumerate(words):
        if words[number - 1] == "--model" and word == "NAME":
            words[number] = MODELS[0]
        elif RUNS.fullmatch(word):
            known.setdefault(word, runs[len(known) - 1])
    words = [known.get(word, word) for word in words]
    left = [word for word in words if CAPITALS.fullmatch(re.split("[=:]", word)[-1])]
    assert not left, f"{line}: what does {left} stand for?"
    return words


def call(line: str, study: str = STUDIES[0]) -> int:
    """Run one command in this process, on a run of a study if it needs one; return its exit code."""
    said = next((said for start, said in ANSWERED.items() if line.startswith(start)), "")
    words = filled(line, study)
    done = CliRunner().invoke(cli, words, input=said, standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"{line}\n{words}\n{done.output[-2000:]}\n{done.exception!r}") from done.exception
    return done.return_value if isinstance(done.return_value, int) else done.exit_code


def allowed(line: str) -> set[int]:
    name = next(word for word in line.split()[1:] if word not in ("lab", "study"))
    # The studies of these tests are small, so a run of one may have no value that was published.
    checks = name in CHECKS or (name == "compare" and "--published" in line)
    spent = {3} if name in SPENDING and "--max-" in line else set()
    # The small trained models know no numbers: a study of one's own stops on them as unfit.
    few = {5} if name == "gate" or "run ./my-audit --model my-model" in line else set()
    return {0} | ({1} if checks else set()) | few | spent | ({4} if "--no-wait" in line else set())


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=map(name_of, WITH_COMMANDS))
def test_commands_of_a_page_run(page, template, tmp_path, monkeypatch):
    for needed in NEEDS.get(name_of(page), ()):
        need_ray() if needed == "ray" else pytest.importorskip(needed)
    if made.signers in made.MAKERS.get(name_of(page), ()) and shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen (openssh-client)")
    place = tmp_path / "work"
    shutil.copytree(template, place)
    monkeypatch.chdir(place)
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_files(page, place)
    for make in made.MAKERS.get(name_of(page), ()):
        make(place)
    for line in commands_of(page):
        for start, step in BEFORE.items():
            if line.startswith(start):
                step()
        with time_for_ray():
            code = call(line, STUDIES["subtle" in name_of(page)])
        assert code in allowed(line), line


def test_pages_show_commands_and_need_what_is_made_for_them():
    shown = [line for page in WITH_COMMANDS for line in commands_of(page)]
    assert len(WITH_COMMANDS) > 20 and len(shown) > 90
    assert {*made.MAKERS, *NEEDS} <= set(map(name_of, WITH_COMMANDS))
    for start in (*BEFORE, *ANSWERED):
        assert any(line.startswith(start) for line in shown), f"no page shows {start}"


def test_word_in_capitals_that_stands_for_nothing_is_refused(template, monkeypatch):
    monkeypatch.chdir(template)
    assert not {"RUN", "OTHER"} & set(filled("prejudge compare RUN OTHER"))
    for word in ("SOMETHING", "confusion=SOMETHING", "hf-masked:SOMETHING"):
        with pytest.raises(AssertionError, match="SOMETHING"):
            filled(f"prejudge score {word}")


def test_runs_are_told_apart(template, monkeypatch):
    monkeypatch.chdir(template)
    _, first, again, other = filled("prejudge compare RUN_A RUN_A RUN_B")
    assert first == again != other


def test_policy_holds_or_fails_in_pytest(template, tmp_path, monkeypatch):
    (page,) = (page for page in PAGES if name_of(page) == "docs/gate.md")
    (line,) = (line for block in blocks_of(page) for line in lines_of(block) if line.startswith("pytest "))
    shutil.copytree(template, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    write_files(page, Path.cwd())
    made.gate(Path.cwd())
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *filled(f"prejudge {line}")[1:]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode in (0, 1) and "favouritism is small everywhere" in done.stdout + done.stderr, done.stdout
