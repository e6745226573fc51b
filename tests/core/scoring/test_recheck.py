"""Asking again finds a model that changed, and leaves everything else as it was."""

from __future__ import annotations

import asyncio

import pytest
from fakes import FakeModel

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.errors import DataError, PermanentError, UsageError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.scoring.recheck import RecheckOptions, recheck
from prejudge.core.scoring.score import score
from prejudge.core.store import get_run, list_runs, statistics
from prejudge.core.store.checks import Checks
from prejudge.testing import raises_code

EVERY_STORE = True


@pytest.fixture
def again(catalogue, store):
    """Return a function that rechecks a run."""

    def asked(run, **options):
        return asyncio.run(recheck(catalogue, store, run, RecheckOptions(**options)))

    return asked


def longer(request, seen):
    return Generation(text=request.messages[0].parts[0].text * 2)


def test_model_that_answers_alike_has_not_drifted(run_study, again):
    name, _ = run_study(n=30)
    done = again(name, sample=20)
    assert (done.drift.asked, done.drift.same, done.drift.missing) == (20, 20, 0) and not done.drift.drifted(0.05)


def test_model_that_changed_has_drifted(run_study, again):
    name, _ = run_study(n=30)
    FakeModel.script = longer
    drift = again(name, sample=20).drift
    assert drift.drifted(0.05) and drift.same == 0
    (length,) = (found for found in drift.comparisons if found.outcome == "length")
    assert length.effect == 1.0 and length.largest == 4


def test_model_that_refuses_now_has_drifted(run_study, again):
    name, _ = run_study(n=30)
    FakeModel.script = lambda request, seen: Generation(text="no", status="refused")
    drift = again(name, sample=20).drift
    assert {found.outcome for found in drift.comparisons if found.p_adjusted < 0.05} == {"status"}


def test_run_and_later_runs_keep_their_answers(run_study, again, catalogue, store):
    name, _ = run_study(n=10)
    before = score(catalogue, store, name).last
    FakeModel.script = longer
    again(name, sample=10)
    later, model = run_study(n=10)
    assert score(catalogue, store, name).last.equals(before) and score(catalogue, store, later).last.equals(before)
    assert model.asked == [] and list(Checks(store).problems()) == []


def test_sample_is_fixed_by_its_seed(run_study, again):
    name, _ = run_study(n=50)
    asked = []
    for options in ({"seed": 0}, {"seed": 0}, {"seed": 1}):
        again(name, sample=10, **options)
        asked.append(sorted(FakeModel.made[-1].asked))
    assert asked[0] == asked[1] != asked[2] and len(asked[0]) == 10
    again(name, sample=20)
    assert set(asked[0]) < set(FakeModel.made[-1].asked)


def test_answers_that_trials_share_are_asked_once(run_study, again):
    name, _ = run_study(n=50, distinct=5)
    assert again(name, sample=20).drift.asked == 5


def test_missing_answers_are_counted(run_study, again):
    name, _ = run_study(n=10)
    FakeModel.script = lambda request, seen: PermanentError("gone") if "q 3" in str(request) else None
    drift = again(name, sample=10).drift
    assert (drift.asked, drift.missing, drift.same) == (10, 1, 9)


def test_recheck_is_taken_up_by_its_name(run_study, again, store):
    name, _ = run_study(n=10)
    first = again(name, sample=5)
    before = statistics(store)["Exchange"]
    second = again(name, sample=10, name=first.name)
    assert second.name == first.name and len(FakeModel.made[-1].asked) == 5
    assert statistics(store)["Exchange"] == before + 5
    with raises_code(DataError, "recheck.name-taken"):
        again(name, name=name)


def test_latest_is_no_recheck(run_study, again, store):
    name, _ = run_study(n=3)
    done = again("latest")
    assert get_run(store, "latest").name == name and list_runs(store)[-1].name == done.name
    with raises_code(UsageError, "run.no-model"):
        again(done.name)


def test_other_model_is_refused(run_study, again, monkeypatch, store):
    name, _ = run_study(n=3)
    before = statistics(store)
    made = FakeModel.__init__

    def other(self, options):
        made(self, options)
        self.identity = Identity(adapter="fake", version="2", model="fake")

    monkeypatch.setattr(FakeModel, "__init__", other)
    with raises_code(UsageError, "recheck.other-model", "'1'", "'2'"):
        again(name)
    assert FakeModel.made[-1].closed and statistics(store) == before


def test_recheck_asks_all_its_answers_itself(run_study, again, store):
    run_study(n=10)
    name, _ = run_study(n=10)
    done = again(name, sample=10)
    assert manifest_of(get_run(store, name)).earlier is not None
    assert manifest_of(get_run(store, done.name)).earlier is None


@pytest.mark.parametrize(
    "change",
    [
        'UPDATE run SET manifest = replace(manifest, \'"python":"\', \'"python":"0\')',
        "UPDATE run_trial SET factors = '{}' WHERE ordinal = 3",
        "UPDATE run_trial SET exchange_id = (SELECT min(exchange_id) + max(exchange_id) FROM run_trial) - exchange_id",
        "UPDATE exchange SET response = replace(response, 'text', 'test')",
        "UPDATE exchange SET request = (SELECT max(request) FROM exchange)",
    ],
)
def test_changed_run_is_not_rechecked(run_study, again, store, change):
    name, _ = run_study(n=10)
    with store.writing() as connection:
        assert connection.exec_driver_sql(change).rowcount
    with raises_code(DataError, "store.row-damaged"):
        again(name, sample=10)
    assert len(list_runs(store)) == 1
