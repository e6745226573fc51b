"""Budgets: a run stops at what it may spend, loses no answer, and goes on where it stopped."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from fakes import FakeModel, fake_catalogue, text_of

from prejudge import Settings, run
from prejudge.core.catalogue.prices import Prices
from prejudge.core.catalogue.registry import ModelEntry, parse_registry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli import main
from prejudge.core.contracts.errors import BudgetError, PermanentError, TransientError, UsageError
from prejudge.core.contracts.records import Drawing, Generation, Usage
from prejudge.core.engine.budget import Budget, Caps, Hold, Spending, ensure_priced
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, get_run, statistics
from prejudge.testing import raises_code

PRICES = Prices(input=1000.0, output=2000.0)
"""An answer of 7 and 3 tokens costs 0.013 USD."""


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def catalogue(catalogue, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda self, errors, retries: 0.0)
    FakeModel.script = lambda request, seen: Generation(
        text=text_of(request).upper(), usage=Usage(input_tokens=7, output_tokens=3)
    )
    made = fake_catalogue()
    models = made.registry.models | {
        "priced": ModelEntry(adapter="fake", settings={"model": "priced"}, prices=PRICES),
        "wide": ModelEntry(adapter="fake", settings={"model": "wide", "concurrency": 32, "batch": 1}, prices=PRICES),
    }
    registry = type(made.registry)(models=models, studies=made.registry.studies)
    return Catalogue(registry, made.plugins)


def perform(catalogue, store, caps, model="priced", name=None, **options):
    study = catalogue.study("count", {"subject": model}, {"n": 100, **options})
    return asyncio.run(execute(catalogue, study, store, RunOptions(caps=caps, name=name)))


def counts(store):
    return json.loads(get_run(store, "latest").manifest)["stages"]["count"]["counts"]


def test_requests_stop_exactly_at_the_limit(catalogue, store):
    with raises_code(BudgetError, "budget-spent", "--max-requests 30"):
        perform(catalogue, store, Caps(requests=30))
    assert len(FakeModel.made[-1].asked) == 30
    assert statistics(store)["Exchange"] == 30
    assert get_run(store, "latest").state == "interrupted"


@pytest.mark.parametrize("model", ["priced", "wide"])
def test_tokens_stop_within_a_batch_of_the_limit(catalogue, store, model):
    FakeModel.delay = 0.002
    with raises_code(BudgetError, "budget-spent", "--max-tokens 505"):
        perform(catalogue, store, Caps(tokens=505), model)
    spent = 10 * len(FakeModel.made[-1].asked)
    assert 505 <= spent <= 505 + 10 * FakeModel.made[-1].limits.batch_items
    assert counts(store)["input_tokens"] + counts(store)["output_tokens"] == spent


@pytest.mark.parametrize("model", ["priced", "wide"])
def test_cost_stops_within_a_batch_of_the_limit(catalogue, store, model):
    FakeModel.delay = 0.002
    with raises_code(BudgetError, "budget-spent", "--max-cost", "0.5", "USD"):
        perform(catalogue, store, Caps(cost=0.5), model)
    batch = 0.013 * FakeModel.made[-1].limits.batch_items
    assert 0.5 <= counts(store)["cost"] <= 0.5 + batch
    assert counts(store)["cost"] == pytest.approx(0.013 * counts(store)["asked"])


def test_run_goes_on_where_the_budget_stopped_it(catalogue, store):
    with pytest.raises(BudgetError):
        perform(catalogue, store, Caps(requests=30))
    stopped = get_run(store, "latest").name
    with pytest.raises(BudgetError):
        perform(catalogue, store, Caps(requests=30), name=stopped)
    perform(catalogue, store, Caps(), name=stopped)
    asked = [text for model in FakeModel.made for text in model.asked]
    assert len(asked) == len(set(asked)) == 100
    assert get_run(store, stopped).state == "finished"


def test_budget_that_suffices_changes_nothing(catalogue, store):
    perform(catalogue, store, Caps(requests=100, tokens=1000, cost=1.3001))
    assert counts(store)["asked"] == 100 and get_run(store, "latest").state == "finished"


def test_failed_requests_count_as_requests(catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError("no")
    with pytest.raises(BudgetError):
        perform(catalogue, store, Caps(requests=15))
    assert len(FakeModel.made[-1].asked) == 15


def test_retries_count_as_requests(catalogue, store):
    FakeModel.script = lambda request, seen: TransientError("cut")
    with pytest.raises(BudgetError):
        perform(catalogue, store, Caps(requests=30))
    assert len(FakeModel.made[-1].asked) == 30


def test_cached_answers_cost_nothing(catalogue, store):
    perform(catalogue, store, Caps())
    perform(catalogue, store, Caps(requests=1, tokens=1, cost=0.0001))
    assert counts(store)["cached"] == 100 and counts(store)["cost"] == 0


def test_windows_all_stop(catalogue, store, monkeypatch):
    monkeypatch.setattr("prejudge.core.engine.windows.WINDOW", 20)
    with pytest.raises(BudgetError):
        perform(catalogue, store, Caps(requests=33))
    assert statistics(store)["Exchange"] == 33


def test_cost_of_a_model_without_prices_is_unknown(catalogue, store):
    perform(catalogue, store, Caps(), "fake")
    assert counts(store)["cost"] is None


def test_cost_limit_without_prices_is_refused_before_anything_is_asked(catalogue, store):
    with raises_code(UsageError, "budget.no-price", "'fake'"):
        perform(catalogue, store, Caps(cost=1.0), "fake")
    assert statistics(store)["Run"] == 0


def test_limit_on_cost_accepts_a_model_that_costs_nothing():
    ensure_priced(Caps(cost=1.0), {"mine": Prices(request=0)})


@pytest.mark.parametrize("caps", [{"requests": 0}, {"tokens": -1}, {"cost": 0.0}, {"cost": float("nan")}])
def test_limit_that_lets_nothing_through_is_refused(caps):
    with raises_code(UsageError, "budget.value"):
        Caps(**caps)


def test_guess_holds_back_until_the_first_answer_tells():
    async def work():
        budget = Budget(Caps(tokens=1000))
        held = await budget.reserve("chat", 1, lambda: Spending(1, 900.0))
        second = asyncio.create_task(budget.reserve("chat", 1, lambda: Spending(1, 900.0)))
        await asyncio.sleep(0)
        waited = not second.done()
        budget.settle("chat", held, Spending(1, 10.0), 1, Spending(1, 10.0))
        return waited, await second

    assert asyncio.run(work()) == (True, Hold(Spending(1, 10.0), Spending(1, 900.0)))


def test_prices_of_every_kind_add_up():
    prices = Prices(input=2.0, output=4.0, request=0.5, image=0.25)
    assert prices.cost(1_000_000, 500_000, requests=2, images=1) == pytest.approx(2 + 2 + 1 + 0.25)


@pytest.mark.parametrize(("price", "cost"), [(None, 10 * 2.0), (0.5e6, 6 * 2.0 + 4 * 0.5), (0.0, 6 * 2.0)])
def test_cached_tokens_are_priced_once(price, cost):
    """Ten tokens read, four of them cached: without a price of their own they cost what others cost."""
    assert Prices(input=2e6, cached_input=price).cost(10, 0, cached_tokens=4) == pytest.approx(cost)


def test_endpoint_that_counts_more_cached_tokens_than_it_read_gives_nothing_back():
    assert Prices(input=2e6, cached_input=0.5e6).cost(10, 0, cached_tokens=99) == pytest.approx(5.0)


def test_run_pays_for_cached_tokens_and_for_reasoning_once(catalogue, store):
    """The tokens of reasoning are among the output; the budget stops by what was paid."""
    used = Usage(input_tokens=100, output_tokens=50, reasoning_tokens=40, cached_tokens=60)
    FakeModel.script = lambda request, seen: Generation(text="YES", reasoning="hm", usage=used)
    catalogue.registry.models["priced"] = ModelEntry(
        adapter="fake", settings={"model": "priced"}, prices=Prices(input=1e6, output=2e6, cached_input=0.5e6)
    )
    perform(catalogue, store, Caps(cost=100_000.0), n=10)
    known = counts(store)
    assert known["cost"] == pytest.approx(10 * (40 * 1.0 + 60 * 0.5 + 50 * 2.0))
    assert (known["input_tokens"], known["output_tokens"], known["cached_tokens"]) == (1000, 500, 600)
    with raises_code(BudgetError, "budget-spent"):
        perform(catalogue, store, Caps(cost=1000.0), n=100, words=("r",))
    assert counts(store)["asked"] < 30
    assert counts(store)["cost"] < 1000 + 4 * 170


def test_no_price_is_not_a_price_of_zero():
    assert Prices().cost(1000, 1000) is None
    assert Prices(request=0).cost(1000, 1000) == 0


def test_prices_are_read_from_the_registry():
    text = '[models.x]\nadapter = "openai"\nprices = { input = 0.15, output = 0.6 }'
    assert parse_registry(text, "r").models["x"].prices == Prices(input=0.15, output=0.6)


def test_misspelt_price_offers_the_nearest():
    with raises_code(UsageError, "unknown-key", "'output'"):
        parse_registry('[models.x]\nadapter = "openai"\nprices = { ouput = 0.6 }', "r")


def test_negative_price_is_refused():
    with raises_code(UsageError, "registry.entry"):
        parse_registry('[models.x]\nadapter = "openai"\nprices = { output = -1.0 }', "r")


def test_drawn_image_is_paid_for(catalogue, store):
    FakeModel.script = lambda request, seen: Drawing(image="0" * 64)
    catalogue.registry.models["priced"] = ModelEntry(
        adapter="fake", settings={"model": "priced"}, prices=Prices(image=0.04)
    )
    perform(catalogue, store, Caps(), n=5)
    assert counts(store)["cost"] == pytest.approx(0.2)


def test_command_line_stops_and_resumes(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def prejudge(*words):
        monkeypatch.setattr(sys, "argv", ["prejudge", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capfd.readouterr()

    code, said = prejudge("run", "bistereo-pairs", "--model", "simulated-fair", "-q", "--max-requests", "100")
    assert code == 3
    assert "--max-requests 100" in said.err
    with Store("prejudge.db", writable=False) as opened:
        name = get_run(opened, "latest").name
        assert f"prejudge resume {name}" in said.err
        assert get_run(opened, name).state == "interrupted"
    assert prejudge("resume", name, "-q", "--max-requests", "150")[0] == 3
    with Store("prejudge.db", writable=False) as opened:
        assert statistics(opened)["Exchange"] == 250


def test_budget_from_python(tmp_path):
    settings = Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path), max_requests=50)
    with raises_code(BudgetError, "budget-spent", "50 requests"):
        run("bistereo-pairs", "simulated-fair", settings)
    with raises_code(UsageError, "budget.value"):
        Settings(max_tokens=0)


NONSENSE = {
    "none": Usage(),
    "negative": Usage(input_tokens=-500, output_tokens=-9),
    "input-only": Usage(input_tokens=7),
    "huge": Usage(input_tokens=2 * 10**9, output_tokens=3),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_budget_holds_where_an_endpoint_counts_nothing(catalogue, store, name):
    """A prompt of 3 or 4 characters is a token, an answer is guessed as 256: 0.513 USD each."""
    FakeModel.script = lambda request, seen: Generation(text="YES", usage=NONSENSE[name])
    with raises_code(BudgetError, "budget-spent"):
        perform(catalogue, store, Caps(cost=5.0))
    assert 5.0 / 0.52 <= len(FakeModel.made[-1].asked) <= 5.0 / 0.51 + 4
    assert counts(store)["estimated"] == len(FakeModel.made[-1].asked)
    assert any("estimated" in note for note in json.loads(get_run(store, "latest").manifest)["notes"])


def test_credible_counts_are_not_estimated(catalogue, store):
    perform(catalogue, store, Caps(cost=50.0))
    assert counts(store)["estimated"] == 0
    assert counts(store)["cost"] == pytest.approx(100 * 0.013)
