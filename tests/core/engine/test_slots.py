"""A slot is free once its answer is there; what is not committed is bounded, and not counted."""

from __future__ import annotations

import asyncio
import time

import pytest
from fakes import FakeModel, fake_catalogue, text_of

from prejudge.core.contracts.adapter import Limits
from prejudge.core.contracts.errors import StoreError, TransientError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.commits import Commits
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.estimates_frame import estimates_frame
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, read_trials, statistics
from prejudge.testing import raises_code

SLOTS = 4
COMMIT_SECONDS = 0.05
FIRST = FakeModel.__init__


def set_slots(monkeypatch, slots):
    """Let models have so many slots, each for one request."""

    def make(self, options):
        FIRST(self, options)
        self.limits = Limits(concurrency=slots, batch_items=1)

    monkeypatch.setattr(FakeModel, "__init__", make)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    set_slots(monkeypatch, SLOTS)
    FakeModel.made, FakeModel.script, FakeModel.delay = [], None, 0.0
    yield
    FakeModel.made, FakeModel.script, FakeModel.delay = [], None, 0.0


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        yield opened


def perform(store, n):
    study = fake_catalogue().study("count", {"subject": "fake"}, {"n": n})
    name = asyncio.run(execute(fake_catalogue(), study, store, RunOptions()))
    return get_run(store, name)


def slow(store, monkeypatch, seconds=COMMIT_SECONDS):
    """Make commits slow; return what was asked before each, and how many answers each had."""
    add, seen = store.add_exchanges, []

    def late(rows, **options):
        seen.append((len(FakeModel.made[-1].asked), len(rows)))
        time.sleep(seconds)
        return add(rows, **options)

    monkeypatch.setattr(store, "add_exchanges", late)
    return seen


def test_calls_are_sent_while_others_are_committed(store, monkeypatch):
    """A slot that waited for its commit would ask nothing until what it asked is in the store."""
    FakeModel.delay = COMMIT_SECONDS
    commits = slow(store, monkeypatch)
    perform(store, 40)
    assert any(asked > done for (asked, _), done in zip(commits, total(commits), strict=True))


def total(commits):
    """Return how many answers were in the store after each commit."""
    done, counted = 0, []
    for _, rows in commits:
        done += rows
        counted.append(done)
    return counted


def test_slow_disk_holds_the_calls_up(store, monkeypatch):
    commits = slow(store, monkeypatch)
    perform(store, 60)
    before = [0, *total(commits)[:-1]]
    uncommitted = [asked - done for (asked, _), done in zip(commits, before, strict=True)]
    assert max(uncommitted) <= 2 * SLOTS
    assert statistics(store)["Exchange"] == 60


def test_failed_commit_stops_the_run_and_counts_nothing_of_it(store, monkeypatch):
    add, kept = store.add_exchanges, []

    def fail(rows, **options):
        if sum(kept) >= 20:
            raise StoreError("the disk is full", code="store.full")
        kept.append(len(rows))
        return add(rows, **options)

    monkeypatch.setattr(store, "add_exchanges", fail)
    with raises_code(StoreError, "store.full"):
        perform(store, 100)
    assert statistics(store)["Exchange"] == sum(kept)
    assert len(FakeModel.made[-1].asked) <= sum(kept) + 3 * SLOTS
    run = get_run(store, "latest")
    assert run.state == "failed" and f'"asked":{sum(kept)}' in run.manifest


def test_cancelled_run_keeps_what_was_answered(store, monkeypatch):
    slow(store, monkeypatch)

    async def work():
        study = fake_catalogue().study("count", {"subject": "fake"}, {"n": 100})
        task = asyncio.create_task(execute(fake_catalogue(), study, store, RunOptions()))
        while not FakeModel.made or len(FakeModel.made[-1].asked) < 20:
            await asyncio.sleep(0.001)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    answered = len(FakeModel.made[-1].asked)
    assert answered - SLOTS <= statistics(store)["Exchange"] <= answered


def test_order_and_estimates_do_not_depend_on_slots(tmp_path, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda self, errors, retries: 0.0)

    def script(request, seen):
        number = int(text_of(request).split()[1])
        if number % 7 == 3 and not seen:
            return TransientError("cut")
        return Generation(text="x" * (1 + number % 5), status="refused" if number % 11 == 5 else "ok")

    found = []
    for slots in (1, 3, 32):
        set_slots(monkeypatch, slots)
        FakeModel.script = script
        with Store(tmp_path / f"{slots}.db") as store:
            run = perform(store, 120)
            estimates = estimates_frame(score(fake_catalogue(), store, run.name).estimates["mean"])
            found.append((read_trials(store, run.id, "count").select("trial", "status", "response"), estimates))
    for trials, estimates in found[1:]:
        assert trials.equals(found[0][0]) and estimates.equals(found[0][1])


def test_commit_begins_at_half_the_slots_or_soon():
    async def work():
        groups = []

        async def commit(calls):
            groups.append(calls)
            await asyncio.sleep(0)

        commits = Commits(8, commit, lambda error: None)
        for number in range(5):
            commits.put(number, soon=False)
        await asyncio.sleep(0.005)
        at_once = list(groups)
        await asyncio.sleep(0.1)
        commits.put(5, soon=True)
        await commits.finish()
        return at_once, groups

    at_once, groups = asyncio.run(work())
    assert at_once == [[0, 1, 2, 3]] and groups == [[0, 1, 2, 3], [4], [5]]
