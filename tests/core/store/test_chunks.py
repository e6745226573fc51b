"""A merge or an import that is killed at any chunk, and taken up again, gives the store of one that was not."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import pytest
import sqlalchemy as sa
from fakes import FakeModel

from prejudge.core.contracts.errors import PermanentError, StoreError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, chunks, get_run, list_runs, statistics
from prejudge.core.store.bulk import table_of
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.chunks import Chunks
from prejudge.core.store.content import run_digest
from prejudge.core.store.merge import merge
from prejudge.core.store.prune import PruneOptions, prune, would_go
from prejudge.core.store.snapshots import snapshot
from prejudge.core.store.tables import Exchange, Renewal, Run, RunTrial, Tally
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .cutting import CutError, cut_after

EVERY_STORE = True


@pytest.fixture
def small(monkeypatch):
    """Let a chunk have 3 rows."""
    for name in ("PIECE", "FIRST", "CHUNK", "REMOVED"):
        monkeypatch.setattr(chunks, name, 3)


@pytest.fixture
def ran(catalogue):
    """Return a function that runs the study `count` in a store."""

    def run(store, before="", name=None, mode="use", **options):
        def script(request, seen):
            text = request.messages[0].parts[0].text
            return PermanentError("too long") if text == "q 2" else Generation(text=before + text)

        FakeModel.script = script
        study = catalogue.study("count", {"subject": "fake"}, options)
        return asyncio.run(execute(catalogue, study, store, RunOptions(name=name, mode=mode)))

    return run


@pytest.fixture
def other(tmp_path, ran):
    """Return a store with two runs, the second of which asked anew: two generations of each answer."""
    with Store(tmp_path / "other.db") as opened:
        ran(opened, "first ", "a", n=7)
        ran(opened, "second ", "b", mode="refresh", n=7)
        opened.keep(b"bytes", "image/png")
        yield opened


def content(store):
    """Return all that a store has, but ids and the times at which it came to it."""
    exchange, run, rows = table_of(Exchange), table_of(Run), {}
    columns = [exchange.c[name] for name in ("key", "generation", "request", "response", "status", "created", "digest")]
    with snapshot(store) as connection:
        rows["exchange"] = sorted(map(tuple, connection.execute(sa.select(*columns))))
        rows["renewal"] = len(connection.execute(sa.select(table_of(Renewal))).all())
        kept = table_of(Tally).c.kind.in_(("exchange", "run"))
        rows["tally"] = sorted(map(tuple, connection.execute(sa.select(table_of(Tally)).where(kept))))
        rows["heads"] = sorted(map(tuple, connection.execute(sa.select(run.c.name, run.c.head, run.c.record))))
        names = {one.name: one for one in list_runs(store)}
        rows["runs"] = {name: run_digest(connection, one) for name, one in names.items()}
    assert not list(Checks(store).problems())
    return rows | {"count": statistics(store)}


def killed_at(number, work):
    """Do some work in a process that is killed before its commit of that number, and return whether it was."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    commits = 0

    def count(_):
        nonlocal commits
        commits += 1
        if commits == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "commit", count)
    try:
        work()
    finally:
        os._exit(0)


def merged(place, url):
    with Store(place) as store, Store(url, writable=False) as source:
        merge(store, source)


def test_merge_killed_at_each_chunk_is_taken_up_again(small, store, other, ran, place, tmp_path, request):
    """Between the kills somebody works in the store, and what was copied is nobody's run."""
    ran(store, "mine ", "mine", n=4)
    with Store(whole_place(place, tmp_path, request)) as whole:
        merge(whole, store)
        merge(whole, other)
        expected = content(whole)
    store.engine.dispose()
    number = 0
    while killed_at(number := number + 1, lambda: merged(place, str(tmp_path / "other.db"))):
        assert {run.name for run in list_runs(store)} <= {"mine", "a", "b"}
        store.engine.dispose()
    assert number > 8
    assert content(store) == expected


def whole_place(place, tmp_path, request):
    if "://" in place:
        return request.getfixturevalue("postgresql").new_database()
    return str(tmp_path / "whole.db")


def test_import_cut_off_at_each_chunk_is_taken_up_again(small, store, other, tmp_path, monkeypatch):
    path = export_run(other, get_run(other, "b"), tmp_path / "b.db.gz").path
    for number in range(100):
        with monkeypatch.context() as patch, Bundle(path) as bundle:
            cut_after(patch, number)
            try:
                import_bundle(store, bundle)
                break
            except CutError:
                assert not list_runs(store) or number > 4
    with snapshot(other) as theirs, snapshot(store) as mine:
        digests = [run_digest(at, get_run(of, "b")) for at, of in ((theirs, other), (mine, store))]
    assert number > 4 and digests[0] == digests[1] and not list(Checks(store).problems())
    assert statistics(store)["Exchange"] == 6


def test_prune_spares_an_unfinished_merge(small, store, other, ran, monkeypatch):
    mine = ran(store, "mine ", "mine", n=1)
    with monkeypatch.context() as patch, pytest.raises(CutError):
        cut_after(patch, 4)
        merge(store, other)
    there = statistics(store)["Exchange"]
    assert there > 1 and [run.name for run in list_runs(store)] == ["mine"]
    assert prune(store, get_run(store, mine), PruneOptions(unused=True)).exchanges == 1
    assert statistics(store)["Exchange"] == there - 1
    merge(store, other)
    assert {run.name for run in list_runs(store)} == {"a", "b"} and not list(Checks(store).problems())


def test_prune_removes_what_a_killed_merge_left(small, store, other, ran, monkeypatch):
    mine = ran(store, "mine ", "mine", n=1)
    with monkeypatch.context() as patch, pytest.raises(CutError):
        cut_after(patch, 8)
        merge(store, other)
    assert statistics(store)["RunTrial"] > 1
    prune(store, get_run(store, mine), PruneOptions(unused=True, killed=True))
    assert not {name for name, rows in statistics(store).items() if rows} - {"Blob"}
    assert not list(Checks(store).problems())


def test_two_merges_of_one_store_do_not_meet(small, store, other):
    with Chunks(store, f"merge {other.url}", {}), raises_code(StoreError, "run.running"):
        merge(store, other)


def test_answer_that_came_meanwhile_stays_the_answer(small, store, other, ran, monkeypatch):
    """A key is answered here while a merge is under way: look-ups go on finding the answer that was here first."""
    exchanges = Chunks.exchanges
    done = []

    def slow(self, rows):
        if not done:
            done.append(ran(store, "mine ", "mine", n=7))
        return exchanges(self, rows)

    monkeypatch.setattr(Chunks, "exchanges", slow)
    merge(store, other)
    again = ran(store, "never asked", "again", n=7)
    with snapshot(store) as connection:
        trials = table_of(RunTrial)
        query = sa.select(trials.c.trial, trials.c.exchange_id).order_by(trials.c.ordinal)
        mine, replayed = (
            connection.execute(query.where(trials.c.run_id == get_run(store, name).id)).all()
            for name in ("mine", again)
        )
    assert len(mine) == 7 and mine == replayed


@pytest.mark.parametrize("again", ["prune", "merge"])
def test_prune_cut_off_at_each_chunk_leaves_what_can_be_taken_up(small, store, other, ran, monkeypatch, again):
    """What is half removed is nobody's: a second prune removes the rest, a second merge copies all anew."""
    options = PruneOptions(unused=True, killed=True)
    for number in range(100):
        ran(store, "mine ", "mine", n=1)
        with monkeypatch.context() as patch, pytest.raises(CutError):
            cut_after(patch, 8)
            merge(store, other)
        with monkeypatch.context() as patch:
            left = cut_after(patch, number, chunks, "_commit")
            with suppress(CutError):
                prune(store, get_run(store, "mine"), options)
            if left[0] < 0:
                assert [run.name for run in list_runs(store)] == ["mine"] and not list(Checks(store).problems())
        if again == "merge":
            merge(store, other)
            assert {run.name for run in list_runs(store)} >= {"a", "b"} and not list(Checks(store).problems())
        for run in list_runs(store):
            prune(store, run, options)
        assert not {name for name, rows in statistics(store).items() if rows} - {"Blob"}
        if left[0] >= 0:
            break
    assert number > 4


def test_prune_is_announced_as_it_is_where_a_merge_was_killed(small, store, other, ran, monkeypatch):
    mine = ran(store, "mine ", "mine", n=1)
    with monkeypatch.context() as patch, pytest.raises(CutError):
        cut_after(patch, 8)
        merge(store, other)
    before, options = statistics(store), PruneOptions(unused=True, killed=True)
    announced = would_go(store, get_run(store, mine), options)
    assert statistics(store) == before
    assert announced == prune(store, get_run(store, mine), options) and announced.exchanges == before["Exchange"]
