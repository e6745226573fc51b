"""The plan: requests, cached share, tokens and cost, before anything is spent."""

from __future__ import annotations

import asyncio

import pytest
from fakes import CountStage, FakeModel, ask, fake_catalogue, text_of

from prejudge.core.catalogue.prices import Prices
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import Embed, Generation, Image, Likelihood, Message, Text, Usage
from prejudge.core.engine.plan import plan
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.engine.tokens import ANSWER_TOKENS, IMAGE_TOKENS, RULE_OF_THUMB, learn, weigh
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, list_runs
from prejudge.testing import raises_code


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def catalogue(catalogue):
    made = fake_catalogue()
    prices = Prices(input=1.0, output=2.0)
    models = made.registry.models | {"priced": ModelEntry(adapter="fake", settings={"model": "priced"}, prices=prices)}
    return Catalogue(type(made.registry)(models=models, studies=made.registry.studies), made.plugins)


def study(catalogue, model="priced", **options):
    return catalogue.study("count", {"subject": model}, options)


def perform(catalogue, store, **options):
    FakeModel.script = lambda request, seen: Generation(
        text=text_of(request), usage=Usage(input_tokens=12, output_tokens=5)
    )
    asyncio.run(execute(catalogue, study(catalogue, **options), store, RunOptions()))


def test_plan_counts_each_request_once(catalogue):
    (stage,) = plan(catalogue, study(catalogue, n=40, distinct=7))
    assert (stage.trials, stage.requests, stage.cached) == (40, 7, None)


def test_plan_leaves_out_what_is_cached(catalogue, store):
    perform(catalogue, store, n=6)
    (stage,) = plan(catalogue, study(catalogue, n=10), store)
    assert (stage.trials, stage.cached, stage.requests) == (10, 6, 4)


def test_plan_asks_nothing(catalogue, store):
    plan(catalogue, study(catalogue), store)
    assert all(model.asked == [] for model in FakeModel.made)


def test_plan_guesses_tokens_from_characters(catalogue):
    (stage,) = plan(catalogue, study(catalogue, n=10))
    assert stage.input_tokens == pytest.approx(10 * len("q 0") / 4)
    assert stage.output_tokens == 10 * ANSWER_TOKENS
    assert stage.basis


def test_plan_learns_tokens_from_answers(catalogue, store):
    perform(catalogue, store, n=10)
    (stage,) = plan(catalogue, study(catalogue, n=10, words="r"), store)
    assert stage.input_tokens == pytest.approx(120)
    assert stage.output_tokens == pytest.approx(50)
    assert "last 10 answers" in stage.basis


def test_plan_learns_the_share_of_cached_tokens(catalogue, store):
    prices = Prices(input=1.0, output=2.0, cached_input=0.1)
    catalogue.registry.models["priced"] = ModelEntry(adapter="fake", settings={"model": "priced"}, prices=prices)
    FakeModel.script = lambda request, seen: Generation(
        text=text_of(request), usage=Usage(input_tokens=12, output_tokens=5, cached_tokens=9)
    )
    asyncio.run(execute(catalogue, study(catalogue, n=10), store, RunOptions()))
    (stage,) = plan(catalogue, study(catalogue, n=10, words="r"), store)
    assert stage.cost == pytest.approx(10 * (3 * 1.0 + 9 * 0.1 + 5 * 2.0) / 1e6)


def test_plan_of_learned_tokens_costs_what_the_run_costs(catalogue, store):
    perform(catalogue, store, n=10)
    (stage,) = plan(catalogue, study(catalogue, n=10, words="r"), store)
    assert stage.cost == pytest.approx((120 * 1.0 + 50 * 2.0) / 1e6)


def test_cost_without_prices_is_unknown(catalogue):
    (stage,) = plan(catalogue, study(catalogue, "fake"))
    assert stage.cost is None


def test_plan_counts_by_what_stands_for_all(catalogue, store, monkeypatch):
    def alike(stage, earlier):
        some = list(stage.trials(earlier))
        yield from ((trial, 5) for trial in some[:2])
        yield some[0], 5

    monkeypatch.setattr("fakes.CountStage.alike", alike, raising=False)
    (stage,) = plan(catalogue, study(catalogue, n=15), store)
    assert (stage.trials, stage.requests, stage.cached) == (15, 10, 0)
    assert {cell.group["parity"]: cell.units for cell in stage.cells} == {"even": 10, "odd": 5}
    assert stage.input_tokens == pytest.approx(10 * len("q 0") / 4)
    assert stage.cost == pytest.approx((stage.input_tokens * 1.0 + stage.output_tokens * 2.0) / 1e6)


def test_plan_makes_every_trial_where_some_are_answered(catalogue, store, monkeypatch):
    perform(catalogue, store, n=3)
    monkeypatch.setattr("fakes.CountStage.alike", None, raising=False)
    (stage,) = plan(catalogue, study(catalogue, n=10), store)
    assert (stage.trials, stage.cached, stage.requests) == (10, 3, 7)


def test_model_that_counts_no_tokens_teaches_nothing(catalogue, store):
    asyncio.run(execute(catalogue, study(catalogue), store, RunOptions()))
    identity = catalogue.adapter("priced").identity
    assert learn(store, identity, type(ask("q"))) == RULE_OF_THUMB


def test_weight_of_every_prompt_is_counted():
    picture = (Message("user", (Text("what?"), Image("0" * 64))),)
    assert weigh(Likelihood(prompt=picture, continuations=("a", "bc"))) == (2 * 5 + 3, 2)
    assert weigh(Embed(text="four")) == (4, 0)
    assert RULE_OF_THUMB.guess(Likelihood(prompt=picture, continuations=("a",))).input > IMAGE_TOKENS


def test_an_empty_design_is_an_error_that_says_what_is_missing(catalogue, store, monkeypatch):
    with raises_code(DataError, "study.empty", "'count'", "n = 0"):
        plan(catalogue, study(catalogue, n=0))
    monkeypatch.setattr(CountStage, "shortage", lambda self: "There is nothing to count.")
    with raises_code(DataError, "study.empty", "There is nothing to count."):
        perform(catalogue, store, n=0)
    assert list_runs(store) == []


def test_a_run_that_asked_nothing_is_not_to_be_finished(catalogue, store, monkeypatch):
    monkeypatch.setattr("prejudge.core.engine.run_record.ensure_asked", lambda *_: None)
    perform(catalogue, store, n=0)
    with raises_code(DataError, "study.empty", "prejudge plan count"):
        score(catalogue, store, list_runs(store)[0].name)


@pytest.mark.parametrize(("n", "first"), [(7, 7), (400, 50)])
def test_first_trials_are_counted_among_the_trials(catalogue, n, first):
    (stage,) = plan(catalogue, study(catalogue, n=n))
    assert (stage.first, stage.trials) == (first, n)


def test_study_by_likelihood_has_no_first_trials():
    built_in = Catalogue.load()
    assert plan(built_in, built_in.study("bistereo-tuples", {}, {}))[0].first == 0
