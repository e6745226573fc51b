"""`kill -9` at any moment: no counted answer is lost, and no answer that was kept is paid for twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import time

import pytest
from children import CountingApi, counting_catalogue, key_of

from prejudge.core.scoring.estimates_frame import estimates_frame
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, read_trials
from prejudge.core.store.checks import Checks

TRIALS, CONCURRENCY = 1500, 8


@pytest.fixture
def api():
    with CountingApi() as api:
        yield api


def job(api, path, **more):
    return {"store": str(path), "n": TRIALS, "api": {"port": api.port, "concurrency": CONCURRENCY}, **more}


def kill_at_random(child, api, chance):
    """Kill a process after some time, or after it asked some questions."""
    asked, wanted = api.asked.total(), chance.choice([None, chance.randint(1, 60)])
    deadline = time.monotonic() + (chance.uniform(0.0, 0.15) if wanted is None else 5.0)
    while time.monotonic() < deadline and child.problem is None:
        if wanted is not None and api.asked.total() - asked >= wanted:
            break
        time.sleep(0.0005)
    time.sleep(chance.uniform(0.0, 0.01))
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    return child.wait()


def kept(path):
    """Return which questions have an answer in the store, after checking the whole of it."""
    if not path.exists():
        return set()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    with Store(path) as store:
        assert list(Checks(store).problems()) == []
        numbers = {key_of(number): number for number in range(TRIALS)}
        return {numbers[key] for key in store.find(numbers)}


def scored(path, name):
    with Store(path, writable=False) as store:
        scores = score(counting_catalogue(), store, name)
        trials = read_trials(store, get_run(store, name).id, "count")
        return estimates_frame(scores.estimates["mean"]), trials.select("trial", "status", "response")


@pytest.mark.parametrize("number", [6, pytest.param(60, marks=pytest.mark.soak)])
def test_kills_lose_nothing_and_ask_nothing_twice(tmp_path, api, nursery, number):
    path, chance, before, kills, again = tmp_path / "store.db", random.Random(20), set(), 0, []
    while kills < number:
        at_start = api.asked
        child = nursery.start(**job(api, path, name="run"))
        end = kill_at_random(child, api, chance)
        assert end in ("signal 9", ""), end  # "": it came to its end before the kill
        kills += end == "signal 9"
        api.settle()
        asked, after = api.asked - at_start, kept(path)
        assert before <= after, "an answer was lost"
        assert len(after - before) >= child.counted, "an answer was counted before it was durable"
        assert not before & set(asked), "a stored answer was asked for again"
        again.append(asked.total() - len(after - before))
        before = after
    child = nursery.start(**job(api, path, name="run"))
    assert child.wait() == "" and kept(path) == set(range(TRIALS))
    assert max(again) <= 2 * CONCURRENCY, f"more was lost than was in flight or not yet committed: {again}"
    assert api.asked.total() - TRIALS == sum(again)
    assert nursery.start(**job(api, tmp_path / "calm.db", name="run")).wait() == ""
    for killed, calm in zip(scored(path, "run"), scored(tmp_path / "calm.db", "run"), strict=True):
        assert killed.equals(calm)
    print(json.dumps({"kills": kills, "distinct": TRIALS, "asked": api.asked.total() - TRIALS, "again": again}))
