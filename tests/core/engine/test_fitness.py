"""The first trials of a run, and the stop of a model that cannot do the task."""

from __future__ import annotations

import asyncio

import pytest
from fakes import CountStage, FakeModel, fake_catalogue, text_of

from prejudge.core.answer import answer_of
from prejudge.core.catalogue.instrument import Instrument
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.abilities import CHAT, NO_TEMPLATE
from prejudge.core.contracts.errors import UnfitError
from prejudge.core.contracts.records import Generation
from prejudge.core.contracts.sizes import State
from prejudge.core.engine.budget import Caps
from prejudge.core.engine.ending import UNFIT, end_of
from prejudge.core.engine.fitness import AT_ONCE, base_note, first_trials
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import get_run
from prejudge.testing import raises_code

pytestmark = pytest.mark.usefixtures("catalogue")
N = 400


def perform(store, name=None, *, n=N, options=None, **study_options):
    catalogue = fake_catalogue()
    study = catalogue.study("count", {"subject": "fake"}, {"n": n, **study_options})
    asyncio.run(execute(catalogue, study, store, options or RunOptions(name=name)))
    return get_run(store, "latest")


def asked():
    return [text for model in FakeModel.made for text in model.asked]


def empty(request, seen):
    return Generation(text="", finish_reason="stop")


def number_of(request):
    return int(text_of(request).split()[1])


def test_unfit_model_is_asked_twenty_and_no_more(store):
    FakeModel.script = empty
    with raises_code(UnfitError, "run.unfit") as caught:
        perform(store)
    assert len(asked()) <= 2 * AT_ONCE
    assert str(caught.value).count("''") == 3 and "--accept-unfit" in str(caught.value)
    assert end_of(caught.value).exit_code == UNFIT == 5
    assert get_run(store, "latest").state == "interrupted"


@pytest.mark.parametrize("way", ["asking=likelihood", ""])
def test_base_model_is_told_to_be_asked_by_likelihood(store, monkeypatch, way):
    FakeModel.script = empty
    monkeypatch.setattr(FakeModel, "_lacks", {CHAT: NO_TEMPLATE})
    monkeypatch.setattr(FakeModel, "likelihood", None, raising=False)
    monkeypatch.setattr(Instrument, "by_likelihood", way)
    with raises_code(UnfitError, "run.unfit") as caught:
        perform(store)
    assert "without a chat template" in str(caught.value)
    assert ("--set asking=likelihood" in str(caught.value)) == bool(way)


def test_model_with_a_chat_template_is_not_taken_for_a_base_model(store):
    FakeModel.script = empty
    with raises_code(UnfitError, "run.unfit") as caught:
        perform(store)
    assert "chat template" not in str(caught.value)


def test_stopped_run_is_scored_as_unfit(store):
    FakeModel.script = empty
    with pytest.raises(UnfitError):
        perform(store)
    scores = score(fake_catalogue(), store, get_run(store, "latest").name)
    assert not scores.fitness[0].fit and scores.fitness[0].every.asked == len(asked())
    assert answer_of(scores).replies[0].state is State.UNFIT


def test_resumed_run_stops_for_the_stored_answers(store):
    FakeModel.script = empty
    with pytest.raises(UnfitError):
        perform(store)
    with pytest.raises(UnfitError):
        perform(store, get_run(store, "latest").name)
    assert len(asked()) <= 2 * AT_ONCE


@pytest.mark.parametrize("options", [{"accept_unfit": True}, {"keep_going": True}])
def test_unfit_model_is_asked_all_where_that_is_accepted(store, options):
    FakeModel.script = empty
    with pytest.raises(UnfitError):
        perform(store)
    name = get_run(store, "latest").name
    assert perform(store, options=RunOptions(name=name, **options)).state == "finished"
    assert len(asked()) == N


def test_first_trials_are_trials_of_the_run(store):
    run = perform(store)
    assert run.state == "finished" and len(asked()) == len(set(asked())) == N
    scores = score(fake_catalogue(), store, run.name)
    counts = scores.manifest.stages["count"].counts
    assert (counts["asked"], counts["cached"], scores.manifest.stages["count"].planned) == (N, 0, N)


def test_first_trials_are_spread_over_a_stage_without_a_design(store):
    from fakes import CountOptions

    stage = CountStage(CountOptions(n=1000))
    numbers = [trial.factors["number"] for trial in first_trials(stage, {}, 1000)]
    assert len(numbers) == 50 and numbers == sorted(numbers) and numbers[-1] >= 950


def test_model_that_fails_for_one_group_goes_on(store):
    FakeModel.script = lambda request, seen: empty(request, seen) if number_of(request) % 2 else None
    assert perform(store).state == "finished"


def test_refusals_are_answers(store):
    FakeModel.script = lambda request, seen: Generation(text="", status="refused")
    assert perform(store).state == "finished"


def test_a_last_attempt_decides(store):
    """The first answer to each prompt is empty, and the second is not."""
    FakeModel.script = lambda request, seen: empty(request, seen) if request.attempt == 0 else None
    assert perform(store, max_attempts=2).state == "finished"


def test_model_that_breaks_later_is_stopped(store):
    seen_texts = []

    def breaking(request, seen):
        seen_texts.append(text_of(request))
        return empty(request, seen) if len(seen_texts) > 60 else None

    FakeModel.script = breaking
    with raises_code(UnfitError, "run.unfit"):
        perform(store, n=2000)
    assert len(asked()) < 1000


def test_budget_includes_the_first_trials(store):
    from prejudge.core.contracts.errors import BudgetError

    with pytest.raises(BudgetError):
        perform(store, options=RunOptions(caps=Caps(requests=7)))
    assert len(asked()) == 7


def test_timed_or_replayed_run_is_not_stopped(store):
    FakeModel.script = empty
    perform(store, options=RunOptions(accept_unfit=True))
    assert perform(store, options=RunOptions(mode="replay")).state == "finished"


@pytest.mark.parametrize(("study", "way"), [("subtle-sai", "asking=likelihood"), ("dora-t2t", "")])
def test_base_model_is_told_before_anything_is_asked(study, way):
    catalogue = Catalogue.load()
    note = base_note(catalogue, catalogue.study(study, {"subject": "reference-causal-fair"}, {}))
    assert "without a chat template" in note and ("--set asking=likelihood" in note) == bool(way)
    assert not base_note(catalogue, catalogue.study(study, {"subject": "simulated-fair"}, {}))


def test_base_model_that_is_asked_by_likelihood_is_told_nothing():
    catalogue = Catalogue.load()
    asked = catalogue.study("subtle-sai", {"subject": "reference-causal-fair"}, {"asking": "likelihood"})
    assert not base_note(catalogue, asked)
