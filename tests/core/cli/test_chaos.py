"""Whole commands before a server that misbehaves: whatever it does, the rules of `chaos_runs` hold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from prejudge.testing import BEHAVIOURS, ChaosServer

from .chaos_runs import KEY, STEERING, TRIALS, Lab, answer_option, deal, heal, write_registry
from .processes import Commands

pytest.importorskip("openai", reason="needs the extra openai")
WAITING = {"429-for-years", "429-reset-for-years", "429-date", "reset-for-years", "refused"}
CALM = [name for name, one in BEHAVIOURS.items() if one.taken != "authentication" and name not in WAITING]
"""All but those that stop a run at once, or let all its calls wait."""
STAYING = {
    # One of each kind of fault that stays; all behaviours are in the matrix of `make soak`.
    "500": 2,
    "hang": 2,
    "404": 2,
    "401": 2,
    "429": 2,
    "429-for-years": 2,
    "reset-for-years": 2,
    "control-error": 2,
    "key-in-error": 2,
    "key-in-answer": 2,
    "empty-length": 2,
    "deep-json": 2,
    "error-code-digits": 2,
    "error-code-superscript": 2,
    "gzip-bomb": 2,
    "refusal-words": 1,
    "control-answer": 1,
    "usage-huge": 0,
}
"""The exit code of a run before a server that does nothing else."""
FIRST = {"500", "404", "401", "429-for-years", "key-in-answer", "refusal-words", "usage-huge"}
"""One of each decision and exit code; the others are in `make soak`."""


@pytest.fixture
def lab(tmp_path: Path, chaos_server: ChaosServer, commands: Commands) -> Lab:
    chaos_server.model = answer_option
    write_registry(tmp_path, chaos_server.url)
    return Lab(tmp_path, chaos_server, commands)


@pytest.mark.parametrize("transport", ["lean", "httpx"])
def test_every_fault_that_passes_loses_nothing(lab, transport):
    """Each behaviour meets some prompts at their first calls, all in one run."""
    write_registry(lab.folder, lab.server.url, transport=transport)
    deal(lab.server, random.Random(3).sample(CALM, len(CALM)))  # not in order, where many faults look like an outage
    lab.wait = 20.0
    first = lab.run("tiny", size="per_cell=4")
    assert first.code == 0, first.said.decode()[-2000:]
    assert {seen.behaviour for seen in lab.server.seen} == {"", *CALM}
    heal(lab)
    assert lab.call("score").code == 0
    assert lab.broken_rules() == []
    assert len(lab.kept()) == 120


@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.soak) for name in STAYING]
)
def test_fault_that_stays_ends_the_run(lab, name):
    lab.server.play(name)
    assert lab.run().code == STAYING[name]
    asked = len(lab.server.seen)
    assert asked <= 60
    heal(lab)
    assert lab.broken_rules() == []
    assert len(lab.kept()) == TRIALS


@pytest.mark.parametrize("names", [["refused"], ["429-reset-for-years"], ["503", "429", "cut"]], ids=str)
def test_fault_of_some_seconds_is_waited_for_or_resumed(lab, names):
    lab.server.play(*names, first=6)
    assert lab.run().code in (0, 2)
    heal(lab)
    assert lab.broken_rules() == [] and len(lab.kept()) == TRIALS


@pytest.mark.parametrize(
    ("words", "most"), [(("--max-requests", "12"), 12), (("--max-tokens", "400"), 14), (("--max-cost", "0.0004"), 14)]
)
@pytest.mark.parametrize("usage", ["usage-missing", "usage-huge", "usage-text", "503"])
def test_budget_holds_whatever_is_reported(lab, words, most, usage):
    lab.server.play(usage, first=5 if usage == "503" else None)
    assert lab.run("tiny", *words).code == 3
    assert len(lab.server.seen) <= most
    heal(lab)
    assert lab.broken_rules() == [] and len(lab.kept()) == TRIALS


def test_command_on_a_terminal_keeps_the_rules_too(lab):
    """The forked commands are the command line; this one is started as a user does."""
    deal(lab.server, ["control-error", "control-answer", "key-in-error", "500"])
    code, shown = lab.run_on_terminal()
    assert code == 0 and "Traceback" not in shown and KEY not in shown, shown
    assert not [mark for mark in STEERING if mark in shown]
    heal(lab)
    assert lab.broken_rules() == [] and len(lab.kept()) == TRIALS
