"""`--refresh OUTCOME`: only answers with that outcome are asked anew, once, and the numbers say so."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from fakes import FakeModel, text_of

from prejudge.core.contracts.errors import AuthenticationError, UnknownNameError, UsageError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.manifest import Manifest
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report.provenance import provenance
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import Store, get_run, read_trials, statistics
from prejudge.core.store.merge import merge
from prejudge.core.store.prune import PruneOptions, prune
from prejudge.testing import raises_code

EVERY_STORE = True
BAD = {"q 1": ("refused", "no"), "q 3": ("filtered", ""), "q 5": ("ok", ""), "q 7": ("refused", "no")}
"""Unusable first answers; of the study `count`, which cannot read an empty text."""


def unusable(request, seen):
    status, text = BAD.get(text_of(request), ("ok", "an answer"))
    return Generation(text=text, status=status)


@pytest.fixture
def refresh(catalogue, store):
    """Return a function that runs the study, and gives the run's name and what was asked."""

    def run(*outcomes, name=None, mode="use", **options):
        study = catalogue.study("count", {"subject": "fake"}, {"n": 10} | options)
        options = RunOptions(refresh=outcomes, name=name, mode=mode)
        done = asyncio.run(execute(catalogue, study, store, options))
        return done, sorted(FakeModel.made[-1].asked)

    FakeModel.script = unusable
    run()
    FakeModel.script = lambda request, seen: Generation(text="better")
    return run


def manifest(store, name):
    return msgspec.json.decode(get_run(store, name).manifest, type=Manifest)


@pytest.mark.parametrize(
    ("outcomes", "asked"),
    [
        (("refused",), ["q 1", "q 7"]),
        (("filtered",), ["q 3"]),
        (("empty",), ["q 5"]),
        (("unreadable",), ["q 5"]),
        (("refused", "unreadable", "filtered"), ["q 1", "q 3", "q 5", "q 7"]),
        ((), []),
    ],
)
def test_only_answers_of_the_outcome_are_asked(refresh, store, outcomes, asked):
    name, found = refresh(*outcomes)
    assert found == asked and statistics(store)["Exchange"] == 10 + len(asked)
    rows = read_trials(store, get_run(store, name).id, "count")
    assert rows["response"].str.contains("better").sum() == len(asked)
    assert sum(manifest(store, name).renewed.values()) == len(asked)
    assert manifest(store, name).refresh == outcomes


def test_chosen_answers_are_told_with_the_numbers(refresh, store, catalogue):
    name, _ = refresh("refused", "empty")
    scores = score(catalogue, store, name)
    assert all(Caveat.SELECTED in estimate.caveats for found in scores.estimates.values() for estimate in found)
    assert manifest(store, name).renewed == {"empty": 1, "refused": 2}
    assert any("3 answers" in warning for warning in warnings_of(scores))
    assert {"empty": 1, "refused": 2} in provenance(scores, store).values()


def test_later_run_that_uses_them_tells_it_too(refresh, store, catalogue):
    refresh("refused")
    name, asked = refresh()
    assert asked == [] and manifest(store, name).renewed == {"refused": 2} and manifest(store, name).refresh == ()
    assert Caveat.SELECTED in score(catalogue, store, name).estimates["mean"][0].caveats


def test_refreshing_all_chooses_none(refresh, store, catalogue):
    refresh("refused")
    name, asked = refresh(mode="refresh")
    assert len(asked) == 10 and manifest(store, name).renewed == {}
    assert Caveat.SELECTED not in score(catalogue, store, name).estimates["mean"][0].caveats


def test_earlier_run_keeps_its_answers(refresh, store, catalogue):
    before = get_run(store, "latest")
    numbers = score(catalogue, store, before.name).estimates
    refresh("refused", "unreadable")
    assert get_run(store, before.name) == before and score(catalogue, store, before.name).estimates == numbers


def test_answer_that_stays_so_is_asked_once(refresh):
    FakeModel.script = unusable
    assert refresh("refused")[1] == ["q 1", "q 7"]


def test_prompt_of_several_trials_is_asked_once(refresh, store):
    name, asked = refresh("refused", n=30, distinct=10)
    assert asked == ["q 1", "q 7"]
    assert read_trials(store, get_run(store, name).id, "count")["response"].str.contains("better").sum() == 6
    assert manifest(store, name).renewed == {"refused": 6}


def test_trial_that_was_read_at_last_is_left_alone(refresh, store):
    FakeModel.script = unusable
    refresh(n=10, max_attempts=2)  # the second attempt at q 5 is empty too
    FakeModel.script = lambda request, seen: Generation(text="better")
    _, asked = refresh("unreadable", max_attempts=2)
    assert asked == ["q 5"]
    assert refresh("unreadable", max_attempts=2)[1] == []


@pytest.mark.parametrize(("mode", "outcomes"), [("use", ("refused",)), ("refresh", ())])
def test_resumed_run_asks_only_what_it_has_not_asked_anew(refresh, store, mode, outcomes):
    FakeModel.script = lambda request, seen: AuthenticationError("no") if text_of(request) == "q 7" else None
    with pytest.raises(AuthenticationError):
        refresh(*outcomes, mode=mode)
    begun = sorted(FakeModel.made[-1].asked)
    name = get_run(store, "latest").name
    FakeModel.script = None
    _, asked = refresh(*outcomes, mode=mode, name=name)
    wanted = [f"q {number}" for number in ((1, 7) if outcomes else range(10))]
    assert "q 7" in asked and sorted({*begun, *asked}) == wanted
    assert statistics(store)["Exchange"] == 10 + len(wanted)
    assert refresh(*outcomes, mode=mode, name=name)[1] == []


def test_answer_that_fails_is_no_answer(refresh, store):
    FakeModel.script = lambda request, seen: AuthenticationError("no")
    with pytest.raises(AuthenticationError):
        refresh("filtered")
    assert statistics(store)["Exchange"] == 10


def test_merged_store_still_tells(refresh, store, tmp_path):
    refresh("refused")
    with Store(tmp_path / "other.db") as other:
        merge(other, store)
        merge(other, store)
        study = catalogue_run(other)
        assert manifest(other, study).renewed == {"refused": 2}


def catalogue_run(store):
    """Run the study on another store, which has all answers."""
    from fakes import fake_catalogue

    catalogue = fake_catalogue()
    study = catalogue.study("count", {"subject": "fake"}, {"n": 10})
    return asyncio.run(execute(catalogue, study, store, RunOptions(mode="replay")))


def test_pruned_run_takes_its_marks_along(refresh, store):
    name, _ = refresh("refused")
    prune(store, get_run(store, name), PruneOptions())
    assert statistics(store)["Exchange"] == 10


def test_other_modes_and_outcomes_are_refused():
    with raises_code(UsageError, "run.refresh", "replay", "refused"):
        RunOptions(mode="replay", refresh=("refused",))
    with raises_code(UnknownNameError, "unknown-outcome", "unreadable"):
        RunOptions(refresh=("unread",))
