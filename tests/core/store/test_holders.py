"""One process at a time works on a run; others are refused before anything is changed, until it is dead."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa
from fakes import FakeModel

from prejudge.core.contracts.errors import HaltedError, StoreError
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import NewTrial, Store, get_run, holders, list_runs, processes
from prejudge.core.store.bulk import table_of
from prejudge.core.store.tables import Holder, RunTrial
from prejudge.testing import raises_code

EVERY_STORE = True


def begun(store, name="r"):
    """Begin a run, and record a trial of it."""
    run_id = store.begin_run(name, "s", b"{}")
    store.add_trials([NewTrial(run_id, "stage", 0, "t", "{}", b"k", None)])
    return run_id


def changed(store, **values):
    """Change the holder of the only run, which is no longer one of this process."""
    holders._living.clear()
    with store.engine.begin() as connection:
        connection.execute(sa.update(table_of(Holder)).values(**values))


def contents(store):
    """Return everything that is recorded of runs."""
    with store.engine.connect() as connection:
        return list_runs(store), *(connection.execute(sa.select(table_of(kind))).all() for kind in (RunTrial, Holder))


@pytest.fixture
def dead():
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def other(monkeypatch):
    """Let the holders of this process look like those of another one."""
    monkeypatch.setattr(holders, "_living", set())
    monkeypatch.setattr(holders.os, "getpid", lambda: 2**22 + 1)


def test_run_at_work_is_refused_and_nothing_is_changed(store, place, other):
    begun(store)
    changed(store, pid=os.getppid(), born=processes.born(os.getppid()))
    before = contents(store)
    with Store(place) as second, raises_code(StoreError, "run.running", os.getppid(), "r"):
        second.begin_run("r", "s", b"{}")
    assert contents(store) == before


def test_run_at_work_in_this_process_is_refused(store, place):
    begun(store)
    with Store(place) as second, raises_code(StoreError, "run.running"):
        second.begin_run("r", "s", b"{}")


def test_process_that_ended_holds_nothing(store, place, other, dead):
    begun(store)
    changed(store, pid=dead)
    with Store(place) as second:
        assert second.begin_run("r", "s", b"{}")


def test_later_process_of_the_same_id_holds_nothing(store, place, other):
    begun(store)
    changed(store, pid=os.getppid(), born="long ago")
    with Store(place) as second:
        assert second.begin_run("r", "s", b"{}")


def test_process_that_is_waited_for_holds_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    while processes.born(process.pid) is not None:  # until it is dead, which its parent has not been told yet
        pass
    process.wait()
    assert processes.born(os.getpid()) == processes.born(os.getpid()) != ""


@pytest.mark.parametrize("here", ["another machine", "this machine, started again"])
@pytest.mark.parametrize("clock", [-3600.0, 3600.0])
def test_holder_elsewhere_lives_as_long_as_it_reports(store, place, other, here, clock, monkeypatch):
    """On a file it is watched, because its clock may be wrong; a server has one clock for all."""
    file = store.engine.dialect.name == "sqlite"
    monkeypatch.setattr(processes, "LEASE_SECONDS", 2.0)
    begun(store)
    with store.engine.connect() as connection:
        now = processes.clock(connection)
    changed(store, host=here, seen=now + clock if file else now + 1)
    reported = []

    def report(seconds):
        reported.append(seconds)
        changed(store, seen=now + clock + len(reported))

    with monkeypatch.context() as patched:
        patched.setattr(processes.time, "sleep", report)
        with Store(place) as second, raises_code(StoreError, "run.running", "another machine", "try again in"):
            second.begin_run("r", "s", b"{}")
    assert len(reported) == (1 if file else 0)
    if file:
        time.sleep(2.1)
    else:
        changed(store, seen=-1.0)
    with Store(place) as second:
        assert second.begin_run("r", "s", b"{}")


def test_other_run_is_not_waited_for(store, other, monkeypatch):
    begun(store)
    changed(store, host="elsewhere")
    monkeypatch.setattr(processes.time, "sleep", lambda _: pytest.fail("it waits"))
    begun(store, "another")


def test_who_lost_a_run_writes_no_more_to_it(store, place, other, monkeypatch):
    run_id = begun(store)
    changed(store, host="elsewhere", seen=-1.0)
    monkeypatch.setattr(processes, "LEASE_SECONDS", 0.3)
    with Store(place) as second:
        assert begun(second) == run_id
        for ended in (False, True):
            if ended:
                second.end_run(run_id, "finished", b"{}")
            before = contents(store)
            with raises_code(StoreError, "run.running"):
                store.add_trials([NewTrial(run_id, "stage", 1, "t", "{}", b"k", None)])
            with raises_code(StoreError, "run.running"):
                store.end_run(run_id, "failed", b"{}")
            assert contents(store) == before


def test_run_that_changed_since_it_was_read_is_not_begun(store):
    run_id = begun(store)
    store.end_run(run_id, "interrupted", b'{"now":1}')
    before = contents(store)
    with raises_code(StoreError, "run.running"):
        store.begin_run("r", "s", b"{}", "{}")
    assert contents(store) == before
    assert store.begin_run("r", "s", b"{}", '{"now":1}') == run_id


def test_ended_run_has_no_holder(run_study, store):
    run_study(n=3)
    assert contents(store)[2] == []


def test_holder_reports_while_it_works(catalogue, store, monkeypatch):
    monkeypatch.setattr("prejudge.core.store.claims.BEAT_SECONDS", 0.0)
    seen = []

    def looked(request, tries):
        with store.engine.connect() as connection:
            seen.append(connection.scalar(sa.select(table_of(Holder).c.seen)))

    FakeModel.script, FakeModel.delay = looked, 0.4
    study = catalogue.study("count", {"subject": "fake"}, {"n": 16})
    asyncio.run(execute(catalogue, study, store, RunOptions()))
    assert seen[-1] > seen[0]


def test_run_with_fewer_recorded_trials_than_planned_is_not_finished(run_study, catalogue, store, monkeypatch):
    add = store.add_trials
    monkeypatch.setattr(store, "add_trials", lambda rows, **how: add(rows[:-3], **how))
    with raises_code(HaltedError, "run.incomplete", "7 of 10"):
        run_study(n=10)
    run = get_run(store, "latest")
    assert run.state == "interrupted"
    monkeypatch.undo()
    run_study(name=run.name, n=10)
    assert get_run(store, "latest").state == "finished"
