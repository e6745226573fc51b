"""Several processes on one store: none is locked out, and none asks what another has asked."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest
from children import CountingApi, counting_catalogue, stop, wait_for

from prejudge.core.contracts.errors import StoreError
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, list_runs, read_trials
from prejudge.core.store.checks import Checks
from prejudge.core.store.claims import Claims
from prejudge.core.store.processes import host
from prejudge.core.store.tables import StoreTable

EVERY_STORE = True
TRIALS, CONCURRENCY = 300, 8


@pytest.fixture
def api():
    with CountingApi((0.05, 0.15)) as api:  # so slow that processes which start late find work
        yield api


@pytest.fixture
def start(api, nursery, place):
    """Return a function that starts a process which runs the study on the store."""

    def start(**more):
        settings = {"port": api.port, "concurrency": CONCURRENCY}
        return nursery.start(store=place, n=TRIALS, api=settings, **more)

    return start


def until(api, asked):
    wait_for(lambda: api.asked.total() >= asked, 0.001)


def ended_well(place, runs):
    """Check that all runs are complete and sound, and that no claim is left."""
    with Store(place) as store:
        assert list(Checks(store).problems()) == []
        assert [run.state for run in list_runs(store)] == ["finished"] * runs
        frames = [read_trials(store, run.id, "count") for run in list_runs(store)]
        assert frames[0]["status"].to_list() == ["ok"] * TRIALS
        assert all(frame.equals(frames[0]) for frame in frames)
        assert rows(store, "claim") == rows(store, "worker") == 0
        return [score(counting_catalogue(), store, run.name).estimates["mean"] for run in list_runs(store)]


def rows(store, table):
    assert table in StoreTable.metadata.tables
    with store.engine.connect() as connection:
        return connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_that_start_together_ask_nothing_twice(start, api, place, processes):
    api.hold(processes)  # none has all the work before the others have begun
    children = [start(together=True) for _ in range(processes)]
    assert [child.wait() for child in children] == [""] * processes
    estimates = ended_well(place, processes)
    assert all(estimate == estimates[0] for estimate in estimates)
    assert api.asked.total() == TRIALS == len(api.asked)
    assert sum(child.counted for child in children) == TRIALS
    assert all(child.counted for child in children), "they did not share the work"


def test_process_that_comes_later_asks_nothing_twice(start, api, place):
    first = start()
    until(api, 50)
    second = start()
    until(api, 200)
    third = start()
    assert [child.wait() for child in (first, second, third)] == [""] * 3
    ended_well(place, 3)
    assert api.asked.total() == TRIALS
    assert second.counted > 0


@pytest.mark.parametrize("ahead", [3600, -3600])
@pytest.mark.parametrize("where", ["this machine", "another container"])
def test_process_whose_clock_is_wrong_asks_nothing_twice(start, api, place, ahead, where):
    machine = {"host": f"{host()}-2"} if where == "another container" else {}
    api.hold(3)  # none has all the work before the others have begun
    children = [start(together=True), start(together=True, ahead=ahead, **machine), start(together=True)]
    assert [child.wait() for child in children] == [""] * 3
    assert api.asked.total() == TRIALS and all(child.counted for child in children)
    ended_well(place, 3)


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_machine_whose_clock_is_wrong_asks_nothing_twice(start, api, place, ahead):
    file = "://" not in str(place)
    api.hold()
    first = start()
    with Store(place) as store:
        wait_for(lambda: rows(store, "worker") == 1)
        second = start(ahead=ahead, host="elsewhere 1 x")
        wait_for(lambda: second.problem is not None if file else rows(store, "worker") == 2)
    api.go_on()
    assert first.wait() == "" and api.asked.total() == TRIALS
    assert second.wait().startswith("store.machines: ") if file else second.wait() == ""


def test_killed_process_holds_up_nobody(start, api, place):
    first, second = start(), start()
    until(api, 100)
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait() == "signal 9"
    began = time.monotonic()
    assert second.wait() == ""
    assert time.monotonic() - began < 15
    assert TRIALS <= api.asked.total() <= TRIALS + 2 * CONCURRENCY, "in flight, and answered but not committed"
    third = start()
    assert third.wait() == "" and third.counted == 0
    with Store(place) as store:
        assert rows(store, "claim") == rows(store, "worker") == 0


def test_processes_share_what_an_endpoint_allows(api, nursery, place):
    """Together they have no more calls in flight, and ask no faster, than one alone may."""
    rate, bunch = 30.0, 2 * CONCURRENCY
    settings = {"port": api.port, "concurrency": CONCURRENCY, "shared": True, "requests_per_minute": 60 * rate}
    api.hold()
    children = [nursery.start(store=place, n=TRIALS, api=settings) for _ in range(3)]
    with Store(place) as store:
        wait_for(lambda: rows(store, "worker") == 3)
    api.go_on()
    assert [child.wait() for child in children] == [""] * 3
    assert api.most <= CONCURRENCY and api.asked.total() == TRIALS and all(child.counted for child in children)
    # Calls that were let go may be sent late, as many as are in flight: so many may come above the rate in any time.
    ahead = np.arange(TRIALS) - rate * (np.array(api.sent) - api.sent[0])
    assert (ahead - np.minimum.accumulate(ahead)).max() <= bunch


def halt_between_writes(pid, place):
    """Halt a process that is not just writing: a file has no server that would end a silent writer's transaction."""
    for _ in range(50):
        stop(pid)
        if "://" in str(place):
            return
        with closing(sqlite3.connect(place, timeout=0.2, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)
            else:
                connection.execute("ROLLBACK")
                return
    raise AssertionError("always halted while it wrote")


def test_halted_process_finds_out_that_it_lost_its_claims(start, api, place):
    """It is halted for longer than the lease; another one does the rest of the study meanwhile, and is gone."""
    halted = start(lease=6.0)
    until(api, 40)
    try:
        halt_between_writes(halted.pid, place)
        time.sleep(7.0)
        assert start(lease=6.0).wait(180) == ""
        api.settle()
        before = api.asked.total()
    finally:
        os.kill(halted.pid, signal.SIGCONT)
    assert before <= TRIALS + 2 * CONCURRENCY
    assert halted.wait(180) == ""
    assert api.asked.total() <= before + CONCURRENCY, "claimed before it was halted"
    ended_well(place, 2)


def test_run_that_two_processes_take_up_is_finished_by_one(start, api, place):
    first = start(name="run")
    until(api, 50)
    second = start(name="run")
    problems = sorted([first.wait(), second.wait()])
    assert problems[0] == "" and problems[1].startswith("run.running: ")
    assert api.asked.total() == TRIALS
    with Store(place) as store:
        (run,) = list_runs(store)
        assert read_trials(store, run.id, "count")["status"].to_list() == ["ok"] * TRIALS


def test_process_alone_claims_nothing(start, api, place):
    child = start()
    until(api, 100)
    with Store(place, writable=False) as store:
        assert rows(store, "claim") == 0 and rows(store, "worker") == 1
    assert child.wait() == ""
    ended_well(place, 1)


def test_silent_worker_of_another_machine_is_given_up(place, monkeypatch):
    key = b"k" * 32
    with Store(place) as store:
        here, elsewhere = Claims(store), Claims(store)
        on(monkeypatch, "a 1")  # a name that two machines have, or the boot before this one
        elsewhere.join([key])
        on(monkeypatch, "a 2")
        here.join()
        assert here.is_awaited() and here.others()[0] > 0
        assert here.take([key], ()).mine == frozenset()
        assert here.others()[0] > 0, "its clock tells nothing"
        monkeypatch.setattr("prejudge.core.store.processes.LEASE_SECONDS", -1.0)
        assert not here.is_awaited() and here.others()[0] == 0
        here.beat(0, (), ())
        assert here.take([key], ()).mine == {key}
        assert rows(store, "worker") == 1


def on(monkeypatch, machine):
    for module in ("claims", "processes"):
        monkeypatch.setattr(f"prejudge.core.store.{module}.host", lambda: machine)


@pytest.mark.parametrize("other", ["b 2 x", "b"])
def test_machines_share_a_server_but_no_file(place, monkeypatch, other):
    with Store(place) as store:
        one, second = Claims(store), Claims(store)
        on(monkeypatch, other)
        second.join()
        on(monkeypatch, "b 1 y")
        one.join()  # another container, or boot, of the same machine
        one.leave()
        on(monkeypatch, "a" if other == "b" else "a 1 y")
        if store.engine.dialect.name == "postgresql":
            return one.join()
        beaten = []

        def beat(seconds):
            beaten.append(seconds)
            with store.engine.begin() as connection:
                connection.exec_driver_sql("UPDATE worker SET seen = seen + 1")

        monkeypatch.setattr("prejudge.core.store.processes.time.sleep", beat)
        with pytest.raises(StoreError) as caught:
            one.join()
        assert caught.value.code == "store.machines" and caught.value.fields["machine"] == "b"
        assert len(beaten) == 1, "it is seen to work"
        second.leave()
        one.join()


def test_machine_that_left_without_a_word_is_waited_for_once(tmp_path, monkeypatch):
    """Its clock was an hour ahead, so that its last sign of life is later than any time here."""
    monkeypatch.setattr("prejudge.core.store.processes.LEASE_SECONDS", 0.5)
    with Store(tmp_path / "s.db") as store:
        gone, here = Claims(store), Claims(store)
        on(monkeypatch, "b 2 x")
        gone.join([b"k" * 32])
        with store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE worker SET seen = seen + 3600")
        on(monkeypatch, "a 1 y")
        began = time.monotonic()
        here.join()
        assert 0.4 < time.monotonic() - began < 10
        assert here.take([b"k" * 32], ()).mine == {b"k" * 32} and rows(store, "worker") == 1


def test_worker_that_was_halted_comes_back(place):
    key = b"k" * 32
    with Store(place) as store:
        halted, other = Claims(store), Claims(store)
        halted.join([key])
        other.join()
        halted.leave()  # as the other would do it
        halted.beat(0, [key], ())
        assert other.take([key], ()).mine == frozenset()


def test_run_that_could_not_say_goodbye_holds_up_no_other_of_its_process(place):
    with Store(place) as store:
        one, other, gone = Claims(store), Claims(store), Claims(store)
        one.join()
        gone.join([b"k" * 32])
        gone._living.discard(gone)
        other.join()
        assert other.is_awaited(), "one lives and has not seen it"
        one.beat(one.others()[0], (), ())
        assert not other.is_awaited() and rows(store, "worker") == 2 and rows(store, "claim") == 0


def test_machine_is_told_from_others():
    assert host() == host() and len(host()) > 3
