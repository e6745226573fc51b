"""A study over how much a model thinks, end to end: endpoints of several styles, a local model, and their opponents."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import BudgetError, UsageError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.engine.budget import Caps
from prejudge.core.engine.runs import RunOptions
from prejudge.core.engine.varying import SharedBudget, ensure_accepted, varied_studies
from prejudge.core.store import Store, list_runs, statistics
from prejudge.testing import ChaosServer, raises_code
from prejudge.testing.chaos import Reply
from prejudge.testing.chaos.tiny import chat

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)
pytestmark = pytest.mark.usefixtures("no_figures")
STUDY, SMALL = "subtle-sai", {"per_cell": 2}
SAYS = {"high": 2, "on": 2}
"""Number of the option that a model takes by how much it thinks; 1 for all others."""


def effort_of(body: dict[str, Any]) -> str | None:
    """How much an endpoint of OpenAI's kind is asked to think."""
    return body.get("reasoning_effort")


def switch_of(body: dict[str, Any]) -> str | None:
    """The same of an endpoint that serves Qwen3."""
    told = body.get("chat_template_kwargs", {}).get("enable_thinking")
    return None if told is None else ("on" if told else "off")


class Model:
    """An endpoint that thinks as much as it is told, or as much as it likes."""

    def __init__(self, level_of: Callable[[dict[str, Any]], str | None], stubborn: str | None = None) -> None:
        self.level_of, self.stubborn = level_of, stubborn
        self.bodies: list[dict[str, Any]] = []
        self.server: ChaosServer

    def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        level = self.stubborn or self.level_of(body)
        thought = {"none": 0, "off": 0, None: 0, "low": 10, "on": 40, "high": 90}[level]
        options = re.findall(r"Option \d: (.*)", str(body["messages"][-1]["content"]))
        answer = options[SAYS.get(level or "", 1) - 1] if options else "nice"
        hidden = self.level_of is effort_of
        # Qwen3 and its kin write an empty pair when they are told not to think.
        made = chat(answer if hidden or level is None else f"<think>\n{'hm ' * thought}\n</think>\n\n{answer}", "stop")
        details = {"completion_tokens_details": {"reasoning_tokens": thought}} if hidden else {}
        return made | {"usage": {"prompt_tokens": 50, "completion_tokens": thought + 3, **details}}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[prejudge.Settings, Model]]]:
    servers = []

    def start(model: Model, more: str = "", **settings: Any) -> tuple[prejudge.Settings, Model]:
        server = ChaosServer(model)
        servers.append(server)
        model.server = server
        server.__enter__()
        entry = f'model = "thinker", base_url = "{server.url}", api_key_env = ""{more}'
        registry = tmp_path / "mine.toml"
        prices = "prices = { input = 1.0, output = 1000.0 }"
        registry.write_text(f'[models.thinker]\nadapter = "openai"\nsettings = {{ {entry} }}\n{prices}\n')
        place = {"store": str(tmp_path / "s.db"), "runs": str(tmp_path / "runs"), "registry": str(registry)}
        return prejudge.Settings(**place, **settings), model

    yield start
    for server in servers:
        server.__exit__(None, None, None)


SWITCH = ", extra_body = { chat_template_kwargs = { enable_thinking = true } }"


def test_effort_is_varied_in_one_command(serve):
    settings, model = serve(Model(effort_of))
    done = prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low", "high"]}, settings, **SMALL)
    labels = [f"thinker[thinking={level}]" for level in ("off", "low", "high")]
    assert list(done.comparison.runs) == labels
    asked = [body["reasoning_effort"] for body in model.bodies]
    assert {level: asked.count(level) for level in set(asked)} == dict.fromkeys(
        ("none", "low", "high"), len(asked) // 3
    )
    rooms = {body["reasoning_effort"]: body["max_tokens"] for body in model.bodies if "max_tokens" in body}
    assert not rooms or rooms["none"] < rooms["low"] < rooms["high"]
    pairs = {(d.estimate.group["run"], d.estimate.group["against"]) for d in done.comparison.differences}
    assert pairs == {(labels[1], labels[0]), (labels[2], labels[0]), (labels[2], labels[1])}
    (note,) = [note for note in done.comparison.notes if note.startswith("Reasoning:")]
    trials = len(asked) // 3
    assert f"{labels[0]}: 0 of {trials} answers" in note
    assert f"{labels[2]}: {trials} of {trials} answers with reasoning, 90 tokens" in note
    assert not any(Caveat.NOT_HEEDED in d.estimate.caveats for d in done.comparison.differences)
    tested = [d.estimate for d in done.comparison.headline if d.estimate.test.family]
    for metric in {e.metric for e in tested}:
        families = {e.test.family for e in tested if e.metric == metric}
        assert len(families) == 1 or all(sum(e.test.family == f for e in tested) % 3 == 0 for f in families)
    before = len(model.bodies)
    again = prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low", "high"]}, settings, **SMALL)
    assert len(model.bodies) == before and list(again.comparison.runs) == labels


def test_differences_are_those_of_the_answers(serve):
    """Where off takes the first option, high takes the second; the units are paired by trial."""
    settings, _ = serve(Model(effort_of))
    done = prejudge.vary(STUDY, "thinker", {"thinking": ["off", "high"]}, settings, **SMALL)
    frames = [prejudge.score(scores.run.name, settings).observations for scores in done.comparison.runs.values()]
    joined = frames[0].join(frames[1], on="trial", suffix="_high")
    assert joined.height == frames[0].height
    assert set(zip(joined["position"], joined["position_high"], strict=True)) == {(1, 2)}
    defined = [d for d in done.comparison.differences if d.estimate.value is not None]
    assert defined and any(d.estimate.value for d in defined)
    assert all(d.estimate.value == pytest.approx(d.second - d.first) for d in defined)


def test_switch_of_a_template_is_varied_by_what_the_entry_has(serve):
    settings, model = serve(Model(switch_of), SWITCH)
    done = prejudge.vary(STUDY, "thinker", {"thinking": ["off", "on"]}, settings, **SMALL)
    assert {switch_of(body) for body in model.bodies} == {"off", "on"}
    assert not any("reasoning_effort" in body for body in model.bodies)
    (note,) = [note for note in done.comparison.notes if note.startswith("Reasoning:")]
    assert "thinking=off]: 0 of" in note
    with raises_code(UsageError, "model.thinking", "off, on"):
        prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low", "high"]}, settings, **SMALL)


@pytest.mark.parametrize(("stubborn", "doubted"), [("on", "thinker[thinking=off]"), ("off", "thinker[thinking=on]")])
def test_endpoint_that_ignores_the_setting_is_told(serve, stubborn, doubted):
    settings, _ = serve(Model(switch_of, stubborn), SWITCH)
    done = prejudge.vary(STUDY, "thinker", {"thinking": ["off", "on"]}, settings, **SMALL)
    assert [note for note in done.comparison.notes if note.startswith(doubted)]
    assert all(Caveat.NOT_HEEDED in d.estimate.caveats for d in done.comparison.differences)
    assert "did not heed" in done.report.read_text()


def test_one_budget_for_all_variants(serve):
    settings, model = serve(Model(effort_of), max_requests=50)
    with raises_code(BudgetError, "budget-spent"):
        prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low", "high"]}, settings, **SMALL)
    assert len(model.bodies) == 50
    with Store(settings.store, writable=False) as store:
        assert statistics(store)["Exchange"] == 50


def test_command_runs_compares_and_continues(serve, tmp_path):
    settings, model = serve(Model(effort_of))
    words = ["run", STUDY, "--model", "thinker", "--vary", "thinking=off,high", "--set", "per_cell=2", "-q"]
    words += ["--store", settings.store, "--runs", settings.runs, "--registry", settings.registry]
    runner = CliRunner()
    stopped = runner.invoke(cli, [*words, "--max-requests", "5"], standalone_mode=False)
    assert stopped.return_value == 3 and len(model.bodies) == 5 and "0 of 2 variants" in stopped.output
    done = runner.invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 0
    assert "Reasoning: thinker[thinking=off]" in " ".join(done.output.split())
    each = len({json.dumps(body, sort_keys=True) for body in model.bodies})
    assert len(model.bodies) == each
    with Store(settings.store, writable=False) as store:
        assert [run.state for run in list_runs(store)] == ["interrupted", "finished", "finished"]


def test_settings_of_any_kind_are_varied_and_checked_before_the_first_request(serve):
    settings, model = serve(Model(effort_of))
    cases = [
        ({"thinking": ["off", "much"]}, "options.choice"),
        ({"thinking": ["off"]}, "vary.values"),
        ({"thinking": ["off", "off"]}, "options.duplicate"),
        ({"thniking": ["off", "on"]}, "unknown-option"),
        ({"thinking": ["on", "medium"]}, "vary.same"),
        ({"timeout_seconds": [10, 20]}, "vary.same"),
        ({"max_tokens": [0, 5]}, "options.type"),
    ]
    for varied, code in cases:
        with raises_code(UsageError, code):
            prejudge.vary(STUDY, "thinker", varied, settings, **SMALL)
    with raises_code(UsageError, "model.thinking"):
        prejudge.vary(STUDY, "simulated-fair", {"thinking": ["off", "on"]}, settings, **SMALL)
    assert not model.bodies
    done = prejudge.vary(STUDY, "simulated-fair", {"strength": [0, 2], "refusal_rate": [0.0, 0.1]}, settings, **SMALL)
    assert len(done.comparison.runs) == 4


def test_variant_is_a_model_like_any_other(serve):
    settings, model = serve(Model(effort_of), ", answer_room = 77, effort = 'low', max_tokens = 5")
    # It says one word, whatever the letter.
    settings = msgspec.structs.replace(settings, accept_unfit=True)
    run = prejudge.run("dora-t2t", "thinker[thinking=high]", settings, per_dimension=1, samples=1, letters="a")
    assert {body["reasoning_effort"] for body in model.bodies} == {"high"}
    assert all(body["max_tokens"] % 100 == 77 for body in model.bodies if body["max_tokens"] > 77)
    (stage,) = prejudge.plan("dora-t2t", "thinker[thinking=high]", settings, per_dimension=1, samples=1, letters="a")
    assert stage.requests == 0 and prejudge.score(run.name, settings).name == run.name


def test_plan_counts_the_room_for_reasoning(serve):
    settings, _ = serve(Model(effort_of))
    plans = [prejudge.plan(STUDY, f"thinker[thinking={level}]", settings, **SMALL)[0] for level in ("off", "low")]
    assert plans[1].output_tokens == plans[0].output_tokens + plans[0].requests * 4096
    assert plans[1].cost > plans[0].cost and "4,096" in plans[1].basis and "reasoning" not in plans[0].basis


def test_variant_that_cannot_be_sent_is_refused_before_another_is_paid_for(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    settings, model = serve(Model(effort_of))
    url = Path(settings.registry).read_text().split('base_url = "')[1].split('"')[0]

    def registry(more: str) -> prejudge.Settings:
        entry = f'model = "tiny", base_url = "{url}", api_key_env = "", max_tokens = 5000{more}'
        (tmp_path / "claude.toml").write_text(f'[models.thinker]\nadapter = "anthropic"\nsettings = {{ {entry} }}\n')
        return prejudge.Settings(store=settings.store, registry=str(tmp_path / "claude.toml"))

    with raises_code(UsageError, "vary.refused", "thinker[thinking=low]", "temperature") as caught:
        prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low"]}, registry(""), **SMALL)
    assert caught.value.fields == {"variant": "thinker[thinking=low]", "why": "request.thinking"}
    assert not model.bodies and not Path(settings.store).exists()
    catalogue = Catalogue.load(registry(', omit = ["temperature", "top_p"]').registry)
    varied = varied_studies(catalogue, STUDY, {"subject": "thinker"}, {"thinking": ["off", "low"]}, SMALL)
    assert [one.roles["subject"] for one in varied] == ["thinker[thinking=off]", "thinker[thinking=low]"]


REFUSED = Reply(400, {"error": {"message": "Unsupported value", "type": "invalid_request_error"}})


def test_level_that_only_the_endpoint_refuses_is_found_before_another_variant_is_paid_for(serve):
    settings, model = serve(Model(effort_of))
    model.server.play(REFUSED, where=lambda call: call.body["reasoning_effort"] == "high")
    with raises_code(UsageError, "vary.refused", "thinker[thinking=high]", "Unsupported value") as caught:
        prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low", "high"]}, settings, **SMALL)
    assert caught.value.fields["variant"] == "thinker[thinking=high]"
    assert [body["reasoning_effort"] for body in model.bodies] == ["none", "low", "high", "high"]
    assert len({json.dumps(body["messages"]) for body in model.bodies}) == 2
    with Store(settings.store, writable=False) as store:
        assert statistics(store)["Exchange"] == 2 and not list_runs(store)
    # What was asked is kept: the levels that the endpoint takes find their first answer in the store.
    prejudge.vary(STUDY, "thinker", {"thinking": ["off", "low"]}, settings, **SMALL)
    taken = [json.dumps(body, sort_keys=True) for body in model.bodies if body["reasoning_effort"] != "high"]
    assert len(taken) == len(set(taken))


def test_prompt_that_an_endpoint_refuses_is_no_refused_variant(serve):
    settings, model = serve(Model(effort_of))
    model.server.play(REFUSED, where=lambda call: call.body["messages"] == model.bodies[0]["messages"])
    done = prejudge.vary(STUDY, "thinker", {"thinking": ["off", "high"]}, settings, **SMALL)
    assert len(done.comparison.runs) == 2


@pytest.mark.parametrize("refuses", [False, True])
def test_first_prompt_of_a_design_with_seeds_and_images_is_one_and_the_second_has_other_words(serve, refuses):
    """A prompt that is repeated by seeds is one prompt: it is asked once, and its words are not refused twice."""
    settings, model = serve(Model(effort_of))
    if refuses:
        model.server.play(REFUSED, where=lambda call: call.body["messages"] == model.bodies[0]["messages"])
    catalogue = Catalogue.load(settings.registry)
    options = {"categories": ["traits"], "per_cell": 1, "asking": "generate", "seeds": [1, 2, 3]}
    varied = {"thinking": ["off", "high"]}
    studies = varied_studies(catalogue, "attractiveness", {"subject": "thinker"}, varied, options)
    with Store(settings.store) as store:
        for _ in range(2):  # the second time, all that is needed is stored
            asyncio.run(ensure_accepted(catalogue, studies, store, RunOptions(), SharedBudget(Caps())))
        assert statistics(store)["Exchange"] == 2
    assert [body["reasoning_effort"] for body in model.bodies] == sorted(["none", "high"] * (1 + refuses), reverse=True)
    assert len({json.dumps(body["messages"]) for body in model.bodies}) == 1 + refuses
    assert all("data:image/png;base64," in json.dumps(body["messages"]) for body in model.bodies)


def test_budget_covers_the_first_prompts_of_the_variants(serve, tmp_path):
    settings, model = serve(Model(effort_of))
    words = ["run", STUDY, "--model", "thinker", "--vary", "thinking=off,high", "--set", "per_cell=2", "-q"]
    words += ["--store", settings.store, "--runs", settings.runs, "--registry", settings.registry]
    stopped = CliRunner().invoke(cli, [*words, "--max-requests", "1"], standalone_mode=False)
    assert stopped.return_value == 3 and len(model.bodies) == 1 and "0 of 2 variants" in stopped.output


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interruption_of_the_first_prompts_keeps_what_was_answered(serve, tmp_path, sent):
    """The first variant has answered its first prompt and the second has not when the signal comes."""
    settings, model = serve(Model(effort_of))
    model.server.play(Reply(delay=60.0), where=lambda call: call.body.get("reasoning_effort") == "high")
    words = ["run", STUDY, "--model", "thinker", "--vary", "thinking=off,high", "--set", "per_cell=2", "-q"]
    words += ["--store", settings.store, "--runs", settings.runs, "--registry", settings.registry]
    process = subprocess.Popen(
        [sys.executable, "-m", "prejudge.core.cli", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        deadline = time.monotonic() + 60
        while len(model.server.seen) < 2:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        process.send_signal(sent)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 2 and "0 of 2 variants" in errors and "Traceback" not in errors
    with Store(settings.store, writable=False) as store:
        assert statistics(store)["Exchange"] == 1 and not list_runs(store)
    model.server.stop_playing()
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.return_value == 0
    bodies = [json.dumps(body, sort_keys=True) for body in model.bodies]
    assert bodies.count(bodies[0]) == 1
