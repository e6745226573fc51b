"""First screens of models that cannot do a task, beside one that can, from the command line and an endpoint."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from prejudge.testing import ChaosServer
from prejudge.testing.chaos.tiny import chat

from .command import Done, call

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)


NLI = ("entailment", "contradiction", "neutral")
STUDIES = {
    "bistereo-nli": ("--set", "asking=generate", "--set", "per_cell=8"),
    "subtle-sai": ("--set", "asking=generate", "--set", "per_cell=8", "--set", "pronouns=masculine"),
    "bistereo-tuples": ("--set", "asking=generate"),
}
UNFIT = {
    "echo": "repeat the question",
    "cut": "reached their limit of tokens",
    "empty": "have no text",
    "garbage": "",
}
MODELS = (*UNFIT, "same", "fit")


def answer(model: str, question: str, turn: int) -> tuple[str, str]:
    """Return the text and the finish reason of an answer."""
    options = re.findall(r"Option \d: (.*)", question) or (list(NLI) if "entailment" in question else _ends(question))
    last = question.strip().splitlines()[-4 if "Option 1" in question else -1]
    return {
        "echo": (last if len(last.split()) > 5 else question, "stop"),
        "cut": ("Let us think about what the two of them could have in", "length"),
        "empty": ("", "stop"),
        "garbage": ("@@ 7 7 7 zq zq", "stop"),
        "same": (options[0] if options[0] in NLI else "Option 1" if "Option 1" in question else options[0], "stop"),
        "fit": (options[turn % len(options)], "stop"),
    }[model]


def _ends(question: str) -> list[str]:
    """Return two ends of the last analogy of a question: that of its first half, and its opposite."""
    end = re.findall(r": ([\w -]+)::", question)[-1]
    return [end, f"un{end}"]


class Screen(NamedTuple):
    """What a command showed and wrote."""

    done: Done
    folder: Path

    @property
    def answers(self) -> dict[str, Any]:
        """Return the fields of answers.json."""
        (path,) = self.folder.glob("runs/*/answers.json")
        fields: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return fields


@pytest.fixture(scope="module", params=STUDIES)
def screens(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Screen]]:
    """Return the first screen of a study by model."""
    turns = itertools.count()

    def reply(path: str, body: dict[str, Any]) -> dict[str, Any]:
        return chat(*answer(str(body["model"]), str(body["messages"][-1]["content"]), next(turns)))

    study = request.param
    with ChaosServer(reply) as server:
        screens = {}
        for model in MODELS:
            folder = tmp_path_factory.mktemp(f"{study}-{model}")
            entry = f'model = "{model}", base_url = "{server.url}", api_key_env = ""'
            (folder / "mine.toml").write_text(f'[models.{model}]\nadapter = "openai"\nsettings = {{ {entry} }}\n')
            words = ("run", study, "--model", model, "--registry", "mine.toml", *STUDIES[study])
            screens[model] = Screen(call(folder, *words, "--accept-unfit"), folder)
    yield screens
    for screen in screens.values():
        shutil.rmtree(screen.folder)


@pytest.mark.parametrize("model", MODELS)
def test_fields_of_the_first_screen(screens, model):
    """A model that cannot do the task has one reply and no number; one that can has numbers with their n."""
    fields, done = screens[model].answers, screens[model].done
    states = [reply["state"] for reply in fields["answers"]]
    if model in UNFIT:
        assert states == ["unfit"] and fields["numbers"] == [] and fields["first"] == []
        assert fields["answers"][0]["sentence"].startswith("100 % of ") and UNFIT[model] in done.stdout
        assert re.match(r"(\d+) of \1 answers", fields["missing"]) and done.returncode == 1
    else:
        assert "unfit" not in states and all(row["n"] > 0 for row in fields["numbers"]) and fields["numbers"]
        assert "all" in fields["missing"] and done.returncode == 0


@pytest.mark.parametrize("model", UNFIT)
def test_first_screen_without_numbers_does_not_speak_of_them(screens, model):
    """Opponents: an error rate of numbers that are not there, and likelihoods of an endpoint that gives none."""
    shown = screens[model].done.stdout
    assert "calibrated studies" not in shown and "Calibration:" not in shown and "percentage points" not in shown
    assert "asking=likelihood" not in shown
    assert ("--set max_tokens=" in shown) == (model == "cut")


def test_one_label_or_position_is_said_first(screens):
    assert "The answers do not vary" in " ".join(screens["same"].answers["first"])
    assert "The answers do not vary" not in " ".join(screens["fit"].answers["first"])
