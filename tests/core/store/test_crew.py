"""Several processes find in a store what one finds, in the same order, whoever writes to it or kills them meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from children import PATIENCE, wait_for
from fakes import FakeModel, ask

from prejudge.core.contracts import processes as pools
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, encode_response, identity_digest, request_key
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.store import NewExchange, Store, exchange_checks
from prejudge.core.store import crew as crews
from prejudge.core.store.checks import Checks
from prejudge.core.store.crew import crew
from prejudge.core.store.reading import runs_of

EVERY_STORE = True
THREE = 3
DAMAGES = [
    "SELECT 1",
    "UPDATE exchange SET response = replace(response, '1', '7') WHERE id > 4",
    "UPDATE exchange SET digest = NULL WHERE id IN (2, 9)",
    "UPDATE exchange SET generation = 7 WHERE id = 2",
    "UPDATE run_trial SET exchange_id = NULL; DELETE FROM exchange WHERE id IN (1, 2, 3, 4, 5, 6, 7, 12)",
    "UPDATE model SET identity = 'x'; UPDATE part SET literal = 'x'; UPDATE tally SET rows = rows + 1",
    "UPDATE exchange SET response = '{\"image\":\"' || 'ab' || '\"}' WHERE id = 3",
]


@pytest.fixture
def many(monkeypatch):
    """Let a store of a few exchanges have many ranges, and be worth several processes."""
    monkeypatch.setattr(crews, "EACH", 1)
    monkeypatch.setattr(exchange_checks, "READ", 2)


@pytest.fixture
def filled(store, run_study, many):
    """Return a store with two runs, failures, and images."""

    def script(request, seen):
        text = request.messages[0].parts[0].text
        return PermanentError("too long") if text == "q 2" else Generation(text=text * 9)

    FakeModel.script = script
    run_study(n=11, name="a")
    run_study(n=13, name="b", mode="refresh")
    store.keep(b"a picture", "image/png")
    return store


def checked(store, processes):
    checks = Checks(store, processes)
    problems = list(checks.problems())
    return problems, checks.counts, checks.heads, checks.absent


def pids(store):
    """Return the processes of a crew of three: how many, and the ids."""
    with crew(store, THREE) as readers:
        return [helper._process.pid for helper in readers._helpers]


@pytest.mark.parametrize("damage", DAMAGES)
def test_three_processes_find_what_one_finds(filled, damage):
    with filled.engine.begin() as connection:
        for statement in damage.split(";"):
            connection.execute(sa.text(statement))
    one = checked(filled, 1)
    assert checked(filled, THREE) == one and bool(one[0]) == (damage != "SELECT 1")
    assert one[1].exchanges > 10


def test_what_comes_after_an_unreadable_row_is_found_by_nobody(tmp_path, filled):
    if filled.engine.dialect.name != "sqlite":
        pytest.skip("a file is needed")
    for number in range(200):
        add(filled, f"{number} " + "long " * 100)
    with filled.engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    data = bytearray((tmp_path / "store.db").read_bytes())
    place = data.index(b'"150 long') // 4096 * 4096
    data[place : place + 4096] = bytes(4096)
    (tmp_path / "t.db").write_bytes(data)
    with Store(tmp_path / "t.db", writable=False) as damaged:
        one = checked(damaged, 1)
        assert checked(damaged, THREE) == one
    (line,) = [problem for problem in one[0] if "read further" in problem.problem]
    assert line.where == "table exchange" and 100 < one[1].exchanges < 180


def add(store, text):
    identity = Identity(adapter="fake", version="1", model="m")
    request, answer = encode(ask(text)), encode_response(Generation(text="x"))
    key = request_key(identity_digest(identity), request)
    store.add_exchanges([NewExchange(key, store.ensure_model(identity), "generate", request, answer, "ok", 0, 0, 0.0)])


def test_store_is_sound_while_others_write_to_it(filled, place):
    """All processes see one state: rows and tally of different moments would be reported as damage."""
    over, written = threading.Event(), []

    def write():
        with Store(place) as mine:
            while not over.is_set():
                add(mine, f"n {len(written)}")
                written.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: written)
        found = [checked(filled, THREE) for _ in range(4)]
    finally:
        over.set()
        writer.join()
    assert all(problems == [] for problems, *_ in found)
    assert len({counts.exchanges for _, counts, *_ in found}) > 1


def test_all_see_what_was_there_when_they_began(filled, place, monkeypatch):
    """Somebody commits between the first and the second process that begins: they begin again."""
    does, began = pools.Helper.does, []

    def slow(helper, work, statement):
        began.append(statement)
        if len(began) == 2:
            with Store(place) as mine:
                mine.end_run(mine.begin_run("new", "s", b"{}"), "finished", b"{}")
        return does(helper, work, statement)

    monkeypatch.setattr(pools.Helper, "does", slow)
    with crew(filled, THREE) as readers:
        own = [run.name for run in runs_of(readers.connection)]
        seen = [[run.name for run in runs] for runs in readers.map(runs_of, [()] * 12)]
    assert len(readers._helpers) == THREE - 1 and seen == [own] * 12
    assert ("new" in own) == (filled.engine.dialect.name == "sqlite")


def test_one_process_reads_where_others_never_stop_to_write(filled, monkeypatch):
    if filled.engine.dialect.name != "sqlite":
        pytest.skip("a server lets others read the state that one reads")
    numbers = iter(range(1000))
    monkeypatch.setattr(crews, "_version", lambda watcher: next(numbers))
    monkeypatch.setattr(crews, "PAUSE", 0.0)
    assert pids(filled) == [] and checked(filled, THREE)[0] == []


def test_small_store_is_read_by_one_process(filled, monkeypatch):
    assert len(pids(filled)) == THREE - 1
    monkeypatch.setattr(crews, "EACH", 7)
    assert len(pids(filled)) == 23 // 7 - 1
    monkeypatch.setattr(crews, "EACH", 50_000)
    assert pids(filled) == []


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_part_of_a_killed_process_is_read_by_this_one(filled, monkeypatch, when):
    expected = checked(filled, 1)
    give, given = pools.Helper.give, []

    def killed(self, task):
        given.append(task)
        if len(given) == (1 if when == "before" else 3):
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.join()
        give(self, task)

    monkeypatch.setattr(pools.Helper, "give", killed)
    assert checked(filled, THREE) == expected and len(given) > 3


def test_results_that_wait_for_a_slow_one_are_few(filled, monkeypatch):
    taken = []

    def tasks():
        for number in range(1000):
            taken.append(number)
            yield ()

    with crew(filled, THREE) as readers:
        ahead = [len(taken) - done for done, _ in enumerate(readers.map(runs_of, tasks()))]
    assert len(ahead) == 1000 and max(ahead) <= pools.KEPT * THREE + 1


SCRIPT = """
import sys, time
from prejudge.core.store import Store, crew
crew.EACH = 1
if __name__ == "__main__":
    with Store(sys.argv[1], writable=False) as store, crew.crew(store, 3) as readers:
        print(*(helper._process.pid for helper in readers._helpers), flush=True)
        time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_one_that_started_it(filled, place, tmp_path, sent):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), place]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as driver:
        pids = [int(pid) for pid in driver.stdout.readline().split()]
        assert len(pids) == THREE - 1
        if sent == signal.SIGINT:
            for pid in pids:
                os.kill(pid, sent)
            time.sleep(0.5)
            assert all(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" for pid in pids)
            os.killpg(driver.pid, sent)  # as Ctrl-C does
        else:
            os.kill(driver.pid, sent)
        _, errors = driver.communicate(timeout=PATIENCE)
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert errors.count("Traceback") == (1 if sent == signal.SIGINT else 0), errors
