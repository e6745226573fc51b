"""Bundles, merges and imports by several processes are those of one, and refuse what one refuses."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from fakes import FakeModel

from prejudge.core.contracts import processes as pools
from prejudge.core.contracts.errors import PermanentError, PrejudgeError
from prejudge.core.contracts.records import Generation
from prejudge.core.store import Store, content, exchange_checks, get_run, list_runs, statistics
from prejudge.core.store import crew as crews
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.merge import merge
from prejudge.core.store.unbundle import Bundle, import_bundle

from .bundles import edit
from .test_bundle import digest_in

EVERY_STORE = True
THREE = 3
DAMAGES = [
    "UPDATE exchange SET response = replace(response, '1', '7') WHERE id > 4",
    "UPDATE exchange SET digest = NULL WHERE id IN (2, 9)",
    "UPDATE run_trial SET trial = 'x' WHERE ordinal = 3",
    "UPDATE run_trial SET exchange_id = NULL; DELETE FROM exchange WHERE id = 12",
]


@pytest.fixture
def given(monkeypatch):
    """Let all processes have parts of two exchanges; return the tasks that were given to others."""
    monkeypatch.setattr(crews, "EACH", 1)
    for module in (exchange_checks, content):
        monkeypatch.setattr(module, "READ", 2)
    give, tasks = pools.Helper.give, []

    def noted(self, task):
        tasks.append(task)
        give(self, task)

    monkeypatch.setattr(pools.Helper, "give", noted)
    return tasks


@pytest.fixture
def filled(store, run_study, given):
    """Return a store with two runs, a failure, a refreshed generation and an image."""

    def script(request, seen):
        text = request.messages[0].parts[0].text
        return PermanentError("too long") if text == "q 2" else Generation(text=text * 9)

    FakeModel.script = script
    run_study(n=11, name="a")
    run_study(n=13, name="b", mode="refresh")
    store.keep(b"a picture", "image/png")
    return store


def copied(filled, folder, processes):
    """Return the bundle of a run, and what stores hold into which it is imported and the whole store is merged."""
    folder.mkdir()
    exported = export_run(filled, get_run(filled, "b"), folder / "b.db.gz", processes)
    found = [exported.counts, exported.absent, exported.head, digest_in(exported.path)]
    with Store(folder / "imported.db") as store, Bundle(exported.path) as opened:
        done = import_bundle(store, opened, processes=processes)
        found += [done, import_bundle(store, opened, processes=processes), *held(store)]
    with Store(folder / "merged.db") as store:
        found += [merge(store, filled, processes), merge(store, filled, processes), *held(store)]
    return found


def held(store):
    heads = {run.name: run.head for run in list_runs(store)}
    return [statistics(store), heads, list(Checks(store).problems())]


def outcome(folder, do):
    """Return the code and words with which something is refused, or None; what is refused copies nothing."""
    folder.mkdir()
    with Store(folder / "new.db") as new:
        try:
            do(new)
        except PrejudgeError as refused:
            assert not any(statistics(new).values())
            return refused.code, str(refused)
    return None


def asked(connections):
    return [connection.scalar(sa.text("SELECT 1")) for connection in connections]


def test_copies_by_three_processes_are_those_of_one(filled, given, tmp_path):
    one = copied(filled, tmp_path / "1", 1)
    assert not given and one[-1] == [] and one[4].new and not one[5].new and one[-4].same == 2
    assert copied(filled, tmp_path / "3", THREE) == one
    assert {task.work.__module__.rpartition(".")[2] for task in given} == {"exchange_checks"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_three_processes_refuse_the_store_that_one_refuses(filled, given, tmp_path, damage):
    with filled.engine.begin() as connection:
        for statement in damage.split(";"):
            connection.execute(sa.text(statement))
    run, path = get_run(filled, "b"), tmp_path / "b.db.gz"
    merged = [outcome(tmp_path / f"merge {n}", lambda new, n=n: merge(new, filled, n)) for n in (1, THREE)]
    exported = [
        outcome(tmp_path / f"export {n}", lambda new, n=n: export_run(filled, run, path, n)) for n in (1, THREE)
    ]
    assert merged[0] is not None and merged[0] == merged[1]
    assert exported[0] == exported[1] and path.exists() == (exported[0] is None)
    assert given


@pytest.mark.parametrize("copy", ["merge", "export"])
@pytest.mark.parametrize("processes", [1, THREE])
def test_what_was_refused_ends_no_later_transaction(filled, given, tmp_path, processes, copy):
    """A cursor that is closed with the garbage would be closed in the next transaction, which would fail."""
    with filled.engine.begin() as connection:
        connection.execute(sa.text(DAMAGES[0]))
    run, path = get_run(filled, "b"), tmp_path / "b.db.gz"
    does = {
        "merge": lambda new: merge(new, filled, processes),
        "export": lambda new: export_run(filled, run, path, processes),
    }
    gc.disable()
    try:
        assert outcome(tmp_path / "new", does[copy]) is not None
        with ExitStack() as stack:
            later = [stack.enter_context(filled.engine.connect()) for _ in range(THREE)]
            assert asked(later) == [1] * THREE
            gc.collect()
            assert asked(later) == [1] * THREE
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("change", "digests"),
    [
        ("request = replace(request, 'q 5', 'q 50')", True),
        ("status = replace(status, 'ok', 'refused')", True),
        ("response = replace(response, 'q 5', 'q 50')", False),
    ],
)
def test_three_processes_refuse_the_bundle_that_one_refuses(filled, given, tmp_path, change, digests):
    path = export_run(filled, get_run(filled, "b"), tmp_path / "b.db.gz").path
    edit(path, f"UPDATE exchange SET {change}", digests=digests)

    def take(new, processes):
        with Bundle(path) as opened:
            import_bundle(new, opened, processes=processes)

    one, three = (outcome(tmp_path / str(n), lambda new, n=n: take(new, n)) for n in (1, THREE))
    assert one is not None and one == three and given


def test_copies_are_whole_although_processes_are_killed(filled, given, tmp_path, monkeypatch):
    one, give = copied(filled, tmp_path / "1", 1), pools.Helper.give
    killed = []

    def kill(self, task):
        if self._process.pid not in killed and len(given) % 3 == 2:
            killed.append(self._process.pid)
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.join()
        give(self, task)

    monkeypatch.setattr(pools.Helper, "give", kill)
    assert copied(filled, tmp_path / "3", THREE) == one and len(killed) >= 3
