"""Entries that would do nothing, or not what they say, are refused before a study is planned with them."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import prejudge
from prejudge.adapters.openai.options import OpenAIOptions, make_identity
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code

WRONG = [
    ("openai", 'model = "m", omit = ["temprature"]', "unknown-field", "temperature"),
    ("anthropic", 'model = "m", omit = ["max_completion_tokens"]', "unknown-field", "max_tokens"),
    ("gemini", 'model = "m", omit = [""]', "unknown-field", "stop"),
    ("openai", 'model = ""', "options.value", "model"),
    ("gemini", 'model = "  "', "options.value", "model"),
    ("openai", 'model = "m", refusal_rule = false', "unknown-option", "refusal_rule"),
    ("anthropic", 'model = "m", thinking = "off", thinking_tokens = 2048', "options.conflict", "2048"),
    ("anthropic", 'model = "m", thinking = "adaptive", thinking_tokens = 2048', "options.conflict", "2048"),
    ("gemini", 'model = "m", effort = "low", thinking_tokens = 2048', "options.conflict", "2048"),
    ("openai", 'model = "m", thinking = "high", effort = "low"', "options.conflict", "effort"),
]


@pytest.fixture
def entry(tmp_path):
    """Return a function that writes a registry with one model, and gives the settings that read it."""

    def write(adapter, settings):
        path = tmp_path / "mine.toml"
        path.write_text(f'[models.mine]\nadapter = "{adapter}"\nsettings = {{ {settings} }}\n', "utf-8")
        return prejudge.Settings(store=str(tmp_path / "s.db"), registry=str(path))

    return write


@pytest.mark.parametrize(("adapter", "settings", "code", "named"), WRONG)
def test_entry_that_cannot_hold_is_refused_by_the_plan(entry, adapter, settings, code, named):
    with raises_code(UsageError, code, named):
        prejudge.plan("subtle-sai", "mine", entry(adapter, settings), per_cell=1)


def test_variant_replaces_what_its_model_has(entry):
    settings = entry("anthropic", 'model = "m", thinking_tokens = 2048, answer_room = 4096')
    assert prejudge.plan("subtle-sai", "mine[thinking=off]", settings, per_cell=1)


@pytest.mark.parametrize(
    ("adapter", "settings"),
    [
        ("openai", 'model = "m", omit = ["temperature", "max_completion_tokens", "seed"]'),
        ("openai", 'model = "m", think_opened = true'),
        ("anthropic", 'model = "m", thinking = "off"'),
        ("anthropic", 'model = "m", thinking_tokens = 2048, effort = "low"'),
        ("gemini", 'model = "m", thinking_tokens = 0'),
    ],
)
def test_sound_entries_are_planned(entry, adapter, settings):
    (stage,) = prejudge.plan("subtle-sai", "mine", entry(adapter, settings), per_cell=1)
    assert stage.requests


def test_seed_that_turns_out_to_be_refused_costs_no_answer():
    """An identity is of the model; which draw of it a seed chooses is not."""

    def identity(*omit):
        return make_identity(OpenAIOptions(model="m", omit=omit), "http://127.0.0.1:9/v1")

    assert identity("seed") == identity()
    assert identity("seed", "top_p") == identity("top_p") != identity()


def test_error_of_an_entry_is_said_once(entry):
    registry = entry("anthropic", 'model = "m"').registry
    words = ["list", "--model", "mine[thinking=much]", "--registry", registry]
    with raises_code(UsageError, "options.choice", "much"):
        CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)


def test_doctor_says_once_what_keeps_a_model_from_answering(entry, monkeypatch):
    monkeypatch.setattr(
        "prejudge.core.cli.doctor.terminal", lambda: __import__("rich.console").console.Console(width=300)
    )
    settings = 'model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = ""'
    words = ["doctor", "mine", "--study", "subtle-sai", "--registry", entry("openai", settings).registry]
    done = CliRunner().invoke(cli, [*words, "--set", "per_cell=1"], standalone_mode=False)
    failed = [line for line in done.output.splitlines() if "FAIL" in line]
    assert done.return_value == 1 and len(failed) > 2
    assert sum("127.0.0.1:9" in line for line in failed) == 1 and sum("as of" in line for line in failed) > 1
