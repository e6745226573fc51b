"""`prejudge run --batch` against an imitation of OpenAI's batches: killed at every step, it pays for nothing twice."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections import Counter

import polars as pl
import pytest

from prejudge.core.store import Store, get_run
from prejudge.core.store.batches import Batches
from prejudge.core.store.checks import Checks
from prejudge.testing import Behaviour, Reply
from prejudge.testing.chaos import OpenAIBatches
from prejudge.testing.chaos.tiny import chat, problem

REGISTRY = """
[models.theirs]
adapter = "openai"
settings = {{ model = "gpt-x", base_url = "{url}", api_key_env = "OPENAI_API_KEY", batches = true }}
prices = {{ input = 2.0, output = 10.0, batch = 0.5 }}
"""
STUDY = ("subtle-sai", "--model", "theirs", "--set", "per_cell=2", "--progress", "none")
IMPATIENT = """
import asyncio
from matplotlib.figure import Figure
from prejudge.core.cli import main
from prejudge.core.engine.batch import manager
Figure.savefig = lambda figure, file, **how: file.write(b"<svg/>")
sleep = asyncio.sleep
asyncio.sleep = lambda seconds, *more: sleep(min(seconds, 0.05), *more)
manager.FULL_SECONDS = 0.1
main()
"""
"""The command, with all waits cut short, and without drawing its figures."""
COMMAND = [sys.executable, "-c", "from prejudge.core.cli import main; main()"]


def choose(path, body):
    """Answer with an option that follows from the prompt."""
    text = body["messages"][-1]["content"]
    options = re.findall(r"Option \d: (.+)", text)
    return chat(options[hashlib.sha256(text.encode()).digest()[0] % len(options)].strip())


@pytest.fixture
def place(tmp_path, server, key, monkeypatch):
    server.model = choose
    (tmp_path / "own.toml").write_text(REGISTRY.format(url=server.url), "utf-8")
    return tmp_path


class Command:
    """A command in a process of its own, with waits made short."""

    def __init__(self, place, *words):
        line = [sys.executable, "-c", IMPATIENT, *words, "--registry", "own.toml"]
        self.process = subprocess.Popen(line, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self):
        said, _ = self.process.communicate(timeout=300)
        return self.process.returncode, said


def prejudge(place, *words):
    return Command(place, *words).end()


def estimates(place, runs="runs"):
    (folder,) = sorted((place / runs).iterdir())[-1:]
    return pl.read_parquet(folder / "estimates.parquet")


@pytest.fixture(scope="module")
def known():
    """Hold the estimates of a run by single calls, made once."""
    return {}


@pytest.fixture
def single(known):
    """Return a function that runs the same study by single calls into another store, and gives its estimates."""

    def run(place):
        if not known:
            known["single"] = by_single_calls(place)
        return known["single"]

    return run


def by_single_calls(place):
    code, said = prejudge(place, "run", *STUDY, "--store", "single.db", "--runs", "single")
    assert code == 0, said
    return estimates(place, "single")


def name_in(said):
    (name,) = set(re.findall(r"prejudge resume (\S+)", said))
    return name


def sound(place):
    with Store(place / "prejudge.db", writable=False) as store:
        assert list(Checks(store).problems()) == []
        book = Batches(store)
        assert not book.all(only_open=True)
        return Counter(state for row in book.all() for state, n in book.counts(row.id).items() for _ in range(n))


def test_batch_run_is_bit_equal_with_a_run_by_single_calls(place, server, single):
    desk = OpenAIBatches(server)
    code, said = prejudge(place, "run", *STUDY, "--batch", "--batch-only")
    assert code == 0, said
    asked = [seen for seen in server.seen if seen.path == "/chat/completions"]
    assert len(asked) == 20 and set(desk.paid.values()) == {1} and len(desk.paid) == 60
    assert estimates(place).equals(single(place))
    with Store(place / "prejudge.db", writable=False) as store:
        record = get_run(store, "latest").manifest
    assert '"equal_texts":20' in record and '"differs":false' in record
    assert set(sound(place)) == {"ok"}


KILLS = [
    ("before", "/files", 1),
    ("after", "/files", 1),
    ("before", "/batches", 1),
    ("after", "/batches", 1),
    ("after", "/batches/", 1),
    ("after", "/files/", 1),
]


@pytest.mark.parametrize(("when", "path", "number"), KILLS)
def test_kill_at_a_step_is_taken_up_and_pays_nothing_twice(place, server, single, when, path, number):
    running: list[Command] = []

    def kill(call):
        reply = desk._reply(call) if when == "after" else Reply(503)
        os.kill(running[0].process.pid, signal.SIGKILL)
        running[0].process.wait()
        return reply

    def is_step(call):
        long = path.endswith("/")
        return call.path.startswith(path) if long else call.path == path and bool(call.raw)

    server.play(Behaviour("kill", "", kill), first=number, where=is_step)
    desk = OpenAIBatches(server)
    running.append(Command(place, "run", *STUDY, "--batch", "--batch-only", "--sentinel", "0"))
    code, said = running[0].end()
    assert code == -signal.SIGKILL, said
    code, said = prejudge(place, "resume", "--progress", "none")
    assert code == 0, said
    assert set(desk.paid.values()) == {1} and len(desk.batches) == 1
    assert set(sound(place)) == {"ok"}
    assert estimates(place).equals(single(place))


def test_500_after_the_batch_was_taken_is_no_second_batch(place, server):
    taken = OpenAIBatches.taken_but
    desk_first = []
    server.play(
        Behaviour("taken", "", lambda call: taken(desk_first[0], Reply(500, problem("server_error"))).reply(call)),
        first=1,
        where=lambda call: call.path == "/batches" and bool(call.raw),
    )
    desk = OpenAIBatches(server)
    desk_first.append(desk)
    code, said = prejudge(place, "run", *STUDY, "--batch", "--batch-only", "--sentinel", "0")
    assert code == 0, said
    assert len(desk.batches) == 1 and set(desk.paid.values()) == {1}


def test_odd_ends_and_items_give_the_same_estimates(place, server, single):
    desk = OpenAIBatches(server)
    desk.ends = ["token_limit_exceeded", "queue", "expired"]
    failing = Counter()

    def fate(body, tried):
        draw = hashlib.sha256(str(body["messages"]).encode()).digest()[1]
        if tried or draw > 30:
            return None
        failing[draw % 3] += 1
        return ({**problem("rate_limit_exceeded", "slow"), "status": 429}, "nothing", {**problem(None), "status": 500})[
            draw % 3
        ]

    desk.fate = fate
    code, said = prejudge(place, "run", *STUDY, "--batch", "--batch-only", "--sentinel", "0", "--batch-items", "40")
    assert code == 0, said
    assert len(failing) == 3 and set(desk.paid.values()) == {1}
    assert estimates(place).equals(single(place))
    sound(place)


def test_two_processes_at_once_hand_nothing_in_twice(place, server):
    desk = OpenAIBatches(server)
    desk.polls = 5
    both = [
        Command(place, "run", *STUDY, "--batch", "--batch-only", "--sentinel", "0", "--runs", f"runs{n}")
        for n in range(2)
    ]
    for one in both:
        code, said = one.end()
        assert code == 0, said
    assert set(desk.paid.values()) == {1}
    assert estimates(place, "runs0").equals(estimates(place, "runs1"))
    sound(place)


def test_command_can_be_left_listed_cancelled_and_resumed(place, server, single):
    desk = OpenAIBatches(server)
    desk.polls = 99
    code, said = prejudge(place, "run", *STUDY, "--batch", "--batch-only", "--no-wait", "--sentinel", "0")
    assert code == 4 and "batch_0" in said
    name = name_in(said)
    listed = subprocess.run(
        [*COMMAND, "cache", "batches"], cwd=place, capture_output=True, text=True, check=True
    ).stdout
    assert "batch_0" in listed
    code, said = prejudge(place, "cache", "batches", "--cancel", "1")
    assert code == 0, said
    code, said = prejudge(place, "resume", name, "--progress", "none")
    assert code == 2 and "cancelled" in said
    desk.polls = 1
    code, said = prejudge(place, "resume", name, "--progress", "none")
    assert code == 0, said
    assert set(desk.paid.values()) == {1} and estimates(place).equals(single(place))


def test_cost_is_that_of_batches_and_budgets_hold_before(place, server):
    desk = OpenAIBatches(server)
    code, said = prejudge(place, "run", *STUDY, "--batch", "--batch-only", "--sentinel", "0", "--max-requests", "30")
    assert code == 3 and sum(len(batch.lines) for batch in desk.batches.values()) == 30
    with Store(place / "prejudge.db", writable=False) as store:
        record = get_run(store, "latest").manifest
    cost = float(re.findall(r'"cost":([0-9.e-]+)', record)[0])
    assert cost == pytest.approx(30 * 0.5 * (7 * 2.0 + 3 * 10.0) / 1e6)


@pytest.mark.parametrize("budget", [("--max-requests", "30"), ("--max-cost", "0.002")])
def test_budget_has_room_for_the_sample_that_is_asked_first(place, server, budget):
    desk = OpenAIBatches(server)
    code, said = prejudge(place, "run", *STUDY, "--batch", "--batch-only", *budget)
    single = sum(seen.path == "/chat/completions" for seen in server.seen)
    batched = sum(len(batch.lines) for batch in desk.batches.values())
    assert code == 3 and 0 < single <= min(20, batched), said
    assert single + batched <= 30 if "--max-requests" in budget else (single + batched / 2) * 44e-6 <= 0.002
