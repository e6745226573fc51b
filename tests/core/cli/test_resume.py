"""`prejudge run` and `prejudge resume` as processes: refused while a run is alive, whole after any kind of end."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing

import polars as pl
import pytest
from children import stop

TRIALS = 4320
"""More than one window, so that some are recorded while others are asked."""
RUN = ["run", "bistereo-pairs", "--model", "slow", "--set", "per_cell=360", "--set", "axes=height"]
SECONDS = 240.0


@pytest.fixture
def place(tmp_path):
    """Return a folder with a slow model."""
    slow = "latency_seconds = 0.2\nbatch_items = 50\nconcurrency = 4\nstrength = 1.0"
    (tmp_path / "registry.toml").write_text(f'[models.slow]\nadapter = "simulated"\n[models.slow.settings]\n{slow}\n')
    return tmp_path


@pytest.fixture
def start(place, commands):
    """Return a function that starts a command, and ends what it started."""
    started = []

    def start(*words):
        started.append(commands.start(place, *words, "-q", mute=True))
        return started[-1]

    yield start
    for command in started:
        command.kill(signal.SIGKILL)
        command.wait()


def ended(command):
    """Return the exit code and the lines that a command wrote to standard error."""
    end = command.wait(SECONDS)
    assert b"Traceback" not in end.said
    return end.code, end.said.decode().strip().splitlines()


def ask(place, query):
    """Return the rows of a query; none before there is a store."""
    try:
        with closing(sqlite3.connect(f"file:{place}/prejudge.db?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def wait_for(place, query, command):
    """Wait until a query returns something other than zero."""
    deadline = time.monotonic() + SECONDS
    while not (rows := ask(place, query)) or not rows[0][0]:
        assert time.monotonic() < deadline and command.running
        time.sleep(0.01)


def halt(process, place):
    """Halt a process, as a laptop that sleeps does, at a moment when it is not writing to the store."""
    while True:
        stop(process.pid)
        try:
            with closing(sqlite3.connect(place / "prejudge.db", timeout=1, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError:
            process.kill(signal.SIGCONT)


def killed(start, place, *words, until="SELECT count(*) FROM exchange"):
    """Start a command, and kill it as soon as a query returns something."""
    process = start(*words)
    wait_for(place, until, process)
    process.kill(signal.SIGKILL)
    process.wait()


def ensure_whole(place):
    """Check that the only run is finished, with all planned trials, each answered, and a complete report."""
    ((state, manifest),) = ask(place, "SELECT state, manifest FROM run")
    assert state == "finished"
    (stage,) = json.loads(manifest)["stages"].values()
    assert stage["planned"] == stage["counts"]["trials"] == TRIALS
    assert ask(place, "SELECT count(*), count(exchange_id) FROM run_trial") == [(TRIALS, TRIALS)]
    assert ask(place, "SELECT count(*) FROM holder") == [(0,)]
    (folder,) = (place / "runs").iterdir()
    assert pl.read_parquet(folder / "observations.parquet").height == TRIALS
    assert json.loads((folder / "manifest.json").read_bytes())["run"] == folder.name
    assert (folder / "report.html").read_text("utf-8").rstrip().endswith("</html>")


def test_resume_of_a_living_run_changes_nothing(start, place):
    first = start(*RUN)
    wait_for(place, "SELECT count(*) FROM run_trial", first)
    halt(first, place)
    before = ask(place, "SELECT state, started, manifest FROM run")
    code, lines = ended(start("resume"))
    assert code == 2 and len(lines) == 1 and str(first.pid) in lines[0]
    assert ask(place, "SELECT state, started, manifest FROM run") == before
    assert ask(place, "SELECT count(*) FROM run_trial")[0][0] > 0
    first.kill(signal.SIGCONT)
    assert ended(first) == (0, [])
    ensure_whole(place)


def test_of_two_resumes_one_is_refused(start, place):
    killed(start, place, *RUN)
    both = [start("resume"), start("resume")]
    (one, said), (other, nothing) = sorted((ended(process) for process in both), reverse=True)
    assert (one, other, len(said), nothing) == (2, 0, 1, [])
    ensure_whole(place)


@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak), signal.SIGKILL])
def test_resume_after_each_kind_of_end(start, place, sent):
    process = start(*RUN)
    wait_for(place, "SELECT count(*) FROM run_trial", process)
    process.kill(sent)
    code, lines = ended(process)
    assert code == (-9 if sent == signal.SIGKILL else 2)
    assert sent == signal.SIGKILL or "prejudge resume" in lines[-1]
    killed(start, place, "resume", until="SELECT count(*) FROM holder")  # a resume that is killed can be resumed too
    assert ended(start("resume")) == (0, [])
    ensure_whole(place)


@pytest.mark.parametrize("seconds", [0.0, pytest.param(1.0, marks=pytest.mark.soak)])
def test_resume_after_a_kill_while_scoring(start, place, seconds):
    process = start(*RUN)
    wait_for(place, "SELECT state = 'finished' FROM run", process)
    time.sleep(seconds)
    process.kill(signal.SIGKILL)
    process.wait()
    asked = ask(place, "SELECT count(*) FROM exchange")
    assert ended(start("resume")) == (0, [])
    assert ask(place, "SELECT count(*) FROM exchange") == asked
    ensure_whole(place)


def test_resume_after_the_machine_was_started_again(start, place):
    killed(start, place, *RUN)
    with closing(sqlite3.connect(place / "prejudge.db")) as connection:
        # Another boot, in which the process id belongs to a process that lives.
        connection.execute("UPDATE holder SET host = 'before', pid = ?, seen = seen - 60", (os.getpid(),))
        connection.commit()
    # Another boot of this machine and another machine look alike: the run may be another's, and is watched for a while.
    code, lines = ended(start("resume"))
    assert code == 0 and all("a process elsewhere" in line for line in lines)
    ensure_whole(place)
