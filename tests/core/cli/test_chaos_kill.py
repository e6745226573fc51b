"""Commands that are killed at any moment: no counted answer is lost or asked again, and the estimates stay the same."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from prejudge.testing import ChaosServer

from .chaos_runs import KEY, Lab, answer_option, write_registry
from .processes import Command, Commands, Ended

pytest.importorskip("openai", reason="needs the extra openai")
STUDY = ("run", "subtle-sai", "--model", "mine", "--set", "per_cell=5", "--set", "subtle.resamples=99")
TRIALS, CONCURRENCY = 150, 8


def make_lab(folder: Path, server: ChaosServer, commands: Commands) -> Lab:
    folder.mkdir()
    server.model, server.delay = answer_option, 0.01
    write_registry(folder, server.url)
    return Lab(folder, server, commands)


def start(lab: Lab) -> Command:
    """Start the run, or resume it if it has begun."""
    words = (
        ("resume",)
        if lab.table("SELECT name FROM sqlite_master WHERE name = 'run'") and lab.table("SELECT name FROM run")
        else STUDY
    )
    return lab.commands.start(lab.folder, *lab.words(*words), env={"LAB_KEY": KEY})


def kill_at_random(lab: Lab, command: Command, chance: random.Random, how: int = signal.SIGKILL) -> None:
    """Kill a command after some time, after it asked some questions, or while it scores."""
    asked, deadline = len(lab.server.seen), time.monotonic() + 60
    match chance.choice(["soon", "asking", "asking", "scoring"]):
        case "soon":
            time.sleep(chance.uniform(0.0, 0.6))
        case "asking":
            wanted = chance.randint(1, 40)
            while command.running and len(lab.server.seen) - asked < wanted and time.monotonic() < deadline:
                time.sleep(0.001)
        case "scoring":
            while command.running and len(lab.kept()) < TRIALS and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(chance.uniform(0.0, 1.0))
    command.kill(how)


def estimates(lab: Lab) -> dict[str, pl.DataFrame]:
    """Return what the last command wrote."""
    (folder,) = (lab.folder / "runs").iterdir()
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in ("estimates", "observations")}


def prompts(lab: Lab) -> set[str]:
    """Return the prompts with an answer, after checking the file of the store."""
    path = lab.folder / "prejudge.db"
    if not path.exists() or not lab.table("SELECT name FROM sqlite_master WHERE name = 'exchange'"):
        return set()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return set(lab.kept())


@pytest.mark.parametrize("number", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_kills_lose_nothing_and_change_no_estimate(tmp_path, chaos_server, commands, number):
    lab, chance = make_lab(tmp_path / "killed", chaos_server, commands), random.Random(5)
    before: set[str] = set()
    ended: list[Ended] = []
    kills = 0
    chaos_server.play("503", "cut", "429-now", share=0.05, seed=7)
    again: list[int] = []
    while kills < number:
        asked = len(chaos_server.seen)
        command = start(lab)
        kill_at_random(lab, command, chance)
        done = command.wait()
        ended.append(done)
        kills += done.code == -signal.SIGKILL
        assert done.code in (0, -signal.SIGKILL), done.said.decode()
        time.sleep(0.05)  # calls that were on their way are counted
        well = Counter(seen.body["messages"][-1]["content"] for seen in chaos_server.seen[asked:] if not seen.behaviour)
        after = prompts(lab)
        assert before <= after, "an answer was lost"
        assert not before & set(well), "a stored answer was asked for again"
        again.append(well.total() - len(after - before))
        before = after
    # A slot is free before its answer is committed: as many answers wait for a commit as there are slots.
    assert max(again) <= 2 * CONCURRENCY, f"more was lost than was in flight and uncommitted: {again}"
    lab.ended += [one for one in ended if one.code == 0]
    assert lab.call("resume").code == 0 and lab.call("cache", "verify").code == 0
    assert len(lab.kept()) == TRIALS
    killed, asked = estimates(lab), len(chaos_server.seen)
    assert lab.broken_rules() == []

    chaos_server.clear()
    calm = make_lab(tmp_path / "calm", chaos_server, commands)
    assert calm.call(*STUDY).code == 0 and len(chaos_server.seen) == TRIALS
    for name, frame in estimates(calm).items():
        assert frame.height and frame.equals(killed[name]), name
    print(f"{kills} kills, {asked} calls for {TRIALS} prompts, asked again after a kill: {again}")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_gentle_end_is_told_and_resumed(tmp_path, chaos_server, commands, how):
    lab = make_lab(tmp_path / "ended", chaos_server, commands)
    command = start(lab)
    while command.running and len(chaos_server.seen) < 20:
        time.sleep(0.001)
    command.kill(how)
    done = command.wait()
    lab.ended.append(done)
    assert done.code == 2 and b"prejudge resume" in done.said
    assert lab.call("resume").code == 0
    assert lab.broken_rules() == [] and len(lab.kept()) == TRIALS
