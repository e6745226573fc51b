"""A run records which answers other runs asked before it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from fakes import FakeModel, text_of

from prejudge.core.contracts.errors import AuthenticationError, PermanentError
from prejudge.core.engine.manifest import Manifest, earlier_words
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import get_run
from prejudge.core.store.earlier_answers import EarlierRun
from prejudge.core.store.prune import PruneOptions, prune

EVERY_STORE = True


@pytest.fixture
def slow_clock(monkeypatch):
    """Let a second pass at every look at the clock, so that no two times are equal."""
    clock = iter(range(1_000, 100_000))
    monkeypatch.setattr("prejudge.core.store.store.time.time", lambda: float(next(clock)))


def manifest(store, name):
    return msgspec.json.decode(get_run(store, name).manifest, type=Manifest)


def earlier(store, name):
    return manifest(store, name).earlier


def head(store, name):
    return get_run(store, name).head.hex()


def resume(catalogue, store, name, n=10):
    study = catalogue.study("count", {"subject": "fake"}, {"n": n})
    asyncio.run(execute(catalogue, study, store, RunOptions(name=name)))


def stopped(run_study, store, at="q 9"):
    """Return the name of a run of ten that a refused key stopped after some answers."""
    FakeModel.script = lambda request, seen: AuthenticationError("no") if text_of(request) == at else None
    with pytest.raises(AuthenticationError):
        run_study(n=10)
    FakeModel.script = None
    return get_run(store, "latest").name


def test_run_that_asked_all_names_no_other(run_study, store):
    name, _ = run_study(n=10)
    assert earlier(store, name) is None and not earlier_words(manifest(store, name))


def test_answers_are_of_the_run_that_asked_them(run_study, store, slow_clock):
    first, _ = run_study(n=4)
    second, _ = run_study(n=7)
    third, _ = run_study(n=10)
    found = earlier(store, third)
    assert (found.answers, found.of_no_run) == (10, 0)
    assert found.runs == (EarlierRun(first, head(store, first), 4), EarlierRun(second, head(store, second), 3))
    assert f"4 of 10 answers from the run {first}, head {head(store, first)[:16]}." in earlier_words(
        manifest(store, third)
    )


def test_prompts_asked_twice_are_one_answer(run_study, store, slow_clock):
    first, _ = run_study(n=4)
    second, _ = run_study(n=10, distinct=4)
    found = earlier(store, second)
    assert (found.answers, [run.answers for run in found.runs]) == (4, [4])


def test_resumed_run_asked_what_it_asked_before(run_study, catalogue, store, slow_clock):
    first, _ = run_study(n=4)
    name = stopped(run_study, store)
    resume(catalogue, store, name)
    assert [(run.run, run.answers) for run in earlier(store, name).runs] == [(first, 4)]


def test_answers_asked_while_a_run_was_interrupted_are_not_its_own(run_study, catalogue, store, slow_clock):
    name = stopped(run_study, store, at="q 0")
    between, _ = run_study(n=10)
    resume(catalogue, store, name)
    asked = [(run.run, run.answers) for run in earlier(store, name).runs]
    assert asked == [(between, 10 - manifest(store, name).stages["count"].counts["asked"])]


def test_answers_of_a_removed_run_are_never_claimed(run_study, catalogue, store, slow_clock):
    first, _ = run_study(n=4)
    FakeModel.script = lambda request, seen: PermanentError("no") if text_of(request) == "q 9" else None
    name, _ = run_study(n=10)
    FakeModel.script = None
    before = earlier(store, name).runs
    prune(store, get_run(store, first), PruneOptions())
    resume(catalogue, store, name)
    assert manifest(store, name).stages["count"].counts["failed"] == 0
    assert [run.run for run in before] == [first] and earlier(store, name).runs == before


def test_answers_of_no_run_are_told(run_study, store, slow_clock):
    first, _ = run_study(n=4)
    second, _ = run_study(n=4)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE run_trial SET exchange_id = NULL")  # as a run that was killed leaves them
    third, _ = run_study(n=10)
    found = earlier(store, third)
    assert (found.answers, found.of_no_run, found.runs) == (10, 4, ())
    assert "4 are older than this run" in earlier_words(manifest(store, third))


def test_a_run_brought_alone_stands_for_its_sources(run_study, catalogue, store, slow_clock):
    """Where the run that asked is not in the store, the first that used the answers is named."""
    first, _ = run_study(n=4)
    second, _ = run_study(n=4)
    prune(store, get_run(store, first), PruneOptions())
    third, _ = run_study(n=10)
    assert [(run.run, run.answers) for run in earlier(store, third).runs] == [(second, 4)]
