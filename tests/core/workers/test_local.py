"""Processes of this machine: killed again and again, interrupted, orphaned, and refused where they cannot be."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from children import PATIENCE, wait_for
from click.testing import CliRunner

from prejudge import Settings, observe
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import BudgetError, PrejudgeError
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.store import Store, get_run
from prejudge.core.workers import supervisor as supervisors
from prejudge.core.workers.local import Local

from . import studied

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")

BATCH, WORKERS = 8, int(os.environ.get("PREJUDGE_WORKERS", "2"))
SLOW = f"latency_seconds = 0.15\nbatch_items = {BATCH}\nconcurrency = 1\nstrength = 1.0"
REGISTRY = f"""[models.slow]
adapter = "simulated"
[models.slow.settings]
{SLOW}
[models.api]
adapter = "openai"
settings = {{ model = "gpt-4o", base_url = "http://127.0.0.1:9/v1", api_key_env = "" }}
"""
PER_CELL = 10
asked = partial(studied.asked, per_cell=PER_CELL)


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "registry.toml").write_text(REGISTRY)
    monkeypatch.chdir(tmp_path)
    # The machine that runs the tests may have GPUs, or not.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def children(parent):
    """Return the workers of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and b"workers.process" in (stat.parent / "cmdline").read_bytes():
                found.append(int(stat.parent.name))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def observed(settings):
    return observe("latest", settings).stacked


def counts(settings):
    with Store(settings.store, writable=False) as store:
        (record,) = manifest_of(get_run(store, "latest")).stages.values()
        return record.counts


@pytest.mark.parametrize("number", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_killed_workers_cost_what_was_in_flight_and_change_no_answer(place, number):
    alone, together = Settings(store="alone.db"), Settings(store="together.db", workers=WORKERS)
    per_cell = max(PER_CELL, number)  # enough that the study is not over before the last kill
    asked(alone, per_cell=per_cell)
    killed, over = [], threading.Event()

    def kill():
        chance = random.Random(3)
        while len(killed) < number and not over.is_set():
            known = counted("together.db")
            while not over.is_set() and counted("together.db") < known + 2 * BATCH:
                time.sleep(0.02)
            if found := children(os.getpid()):
                os.kill(killed.append(pid := chance.choice(found)) or pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        asked(together, per_cell=per_cell)
    finally:
        over.set()
        killer.join()
    one, other = observed(alone), observed(together)
    assert len(killed) == number and one.equals(other) and len(one) == 36 * per_cell
    found = counts(together)
    assert found["asked"] == 36 * per_cell and found["failed"] == 0
    assert 0 < found["retried"] <= number * BATCH
    assert wait_for(lambda: not children(os.getpid()))


def counted(store):
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM exchange").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_the_budget_of_a_run_is_that_of_all_its_workers(place):
    settings = Settings(workers=WORKERS, max_requests=50)
    with pytest.raises(BudgetError):
        asked(settings)
    assert 50 - BATCH <= counted(settings.store) <= 50
    assert not children(os.getpid())


@pytest.mark.parametrize("limit", [{"max_tokens": 6000}, {"max_cost": 5.0}])
def test_answers_of_uneven_length_exceed_a_budget_by_one_batch(place, monkeypatch, limit):
    monkeypatch.syspath_prepend(place)
    studied.exceeded(limit, BATCH, "local", 4)


def test_a_run_that_finds_all_answers_starts_no_worker(place, monkeypatch):
    asked(Settings())
    monkeypatch.setattr(Local, "start", None)
    asked(Settings(workers=WORKERS))
    assert counts(Settings())["cached"] == 36 * PER_CELL


def test_no_worker_outlives_its_driver(place):
    words = [sys.executable, "-m", "prejudge.core.cli", "run", "bistereo-pairs", "--model", "slow", "-q"]
    for sent in (signal.SIGINT, signal.SIGKILL):
        known = counted("prejudge.db")
        command = [*words, "--workers", "2", "--set", "per_cell=20"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
            try:
                wait_for(lambda known=known: counted("prejudge.db") > known)
                workers = children(driver.pid)
                assert len(workers) == WORKERS
                driver.send_signal(sent)
                _, errors = driver.communicate(timeout=PATIENCE)
            finally:
                driver.kill()
        wait_for(lambda workers=workers: not any(map(alive, workers)))
        if sent == signal.SIGINT:
            assert driver.returncode == 2 and "prejudge resume" in errors and "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "spark"], "unknown engine 'spark'"),
        (["--address", "10.0.0.1:6379"], "need --engine ray"),
        (["--workers", "0"], "0 is not in the range"),
        (["--devices", "0,1"], "no GPU"),
        (["--devices", "two"], "neither 'all' nor numbers"),
        (["--engine", "local"], "--workers N"),
        (["--workers", "2", "--model", "api"], "one process is enough"),
    ],
)
def test_what_cannot_be_is_one_line_before_anything_is_asked(place, monkeypatch, words, said):
    asked = ["subtle-sai"] if "--model" in words else ["bistereo-pairs", "--model", "slow"]
    found = CliRunner().invoke(cli, ["run", *asked, *words], standalone_mode=False)
    assert isinstance(found.exception, Exception) and said in str(getattr(found.exception, "message", found.exception))
    assert "\n" not in str(found.exception) and not children(os.getpid())
    assert counted("prejudge.db") == 0


@pytest.mark.parametrize("command", [["run", "bistereo-pairs"], ["lab", "converge", "beauty-and-competence"]])
def test_commands_that_ask_refuse_an_address_without_ray(place, command):
    words = [*command, "--model", "slow", "--workers", "2", "--address", "10.0.0.1:6379"]
    found = CliRunner().invoke(cli, words, standalone_mode=False)
    assert getattr(found.exception, "code", found.exception) == "workers.address" and counted("prejudge.db") == 0
    lab = cli.get_command(None, "lab")
    for group, name in ((cli, "run"), (cli, "resume"), (lab, "recheck"), (lab, "converge")):
        params = {param.name for param in group.get_command(None, name).params}
        assert {"engine", "workers", "devices", "address"} <= params, name


def test_a_worker_that_ends_before_it_is_ready_says_why(place, monkeypatch):
    monkeypatch.setattr("prejudge.core.workers.local.START", "import sys; sys.exit('no room for {module}')")
    with pytest.raises(PrejudgeError) as caught:
        asked(Settings(workers=WORKERS))
    assert caught.value.code == "workers.start" and "no room for" in str(caught.value)
    assert counted("prejudge.db") == 0 and supervisors.LOSSES


SCRIPT = """
import contextlib, sys
from multiprocessing import get_context
from prejudge.core.cli.main import main
if __name__ == "__main__":
    with contextlib.suppress(SystemExit):
        main()
    process = get_context("spawn").Process(target=print)
    process.start()
    process.join()
"""


@pytest.mark.parametrize("module", ["json", "multiprocessing"])
def test_no_process_imports_modules_of_the_working_directory(place, monkeypatch, module):
    """A copied folder may hold files with the names of Python's own modules."""
    (place / f"{module}.py").write_text(f"open({str(place / 'ran')!r}, 'w')\nraise ImportError('a stranger')\n")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    (place / "bin").mkdir()
    (place / "bin" / "prejudge").write_text(SCRIPT)
    words = ["run", "subtle-sai", "--set", "per_cell=2", "--model", "slow", "--workers", "2", "--quiet"]
    done = subprocess.run([sys.executable, "bin/prejudge", *words], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout and "stranger" not in done.stderr, done.stderr
    assert not (place / "ran").exists()


def test_workers_plant_by_the_cells_of_the_study_that_this_process_declares(place):
    frames, identities = [], []
    for name, workers in (("one", {}), ("two", {"workers": 2})):
        settings = Settings(store=f"{name}.db", **workers)
        asked(settings, "simulated-cells", axes=["height"], per_cell=2)
        with Store(settings.store) as store:
            run = get_run(store, "latest")
            identities.append(manifest_of(run).identities["subject"])
            frames.append(observe(run.name, settings).stacked)
    assert identities[0] == identities[1] and "cells" in identities[0].settings
    columns = ["pair", "side", "log_probability"]
    assert frames[0].select(columns).equals(frames[1].select(columns))
    assert frames[0]["log_probability"].n_unique() > 10
