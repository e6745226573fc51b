"""The table at the end of `doctor MODEL`: which studies a model can answer, how, and in what time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.catalogue.prices import Prices
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.abilities import CHAT, NO_TEMPLATE, OPERATIONS
from prejudge.core.contracts.adapter import Identity, Limits, ModelAdapter, RemoteEndpoint
from prejudge.core.contracts.probe import count_trials
from prejudge.core.contracts.records import (
    Generate,
    Generation,
    Likelihood,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
    TokenScores,
    Usage,
)
from prejudge.core.doctor.model import BLIND, SEES, Check, examine
from prejudge.core.doctor.pace import Estimated, Pace, Timed, estimate_stage, work_of
from prejudge.core.doctor.studies import NO, UNKNOWN, UNLIKELY, YES, study_rows

ABOUT_IMAGES = {"dora-i2t"}


FEW = ("bistereo-nli", "bistereo-pairs", "crows-pairs", "dora-i2t", "dora-t2i", "dora-t2t", "subtle-sai")


def loaded(file=None):
    """Return a catalogue with some studies, so that its table is soon made."""
    catalogue = Catalogue.load(file)
    studies = {name: entry for name, entry in catalogue.registry.studies.items() if name in FEW}
    return Catalogue(msgspec.structs.replace(catalogue.registry, studies=studies), catalogue.plugins)


@pytest.fixture(scope="module")
def catalogue():
    return loaded()


def rows(catalogue, adapter=None, checks=(), model="simulated-fair"):
    timed = Timed(adapter or Simulated(SimulatedOptions()))
    return {row.study: row for row in study_rows(catalogue, model, timed, list(checks))}


def test_every_study_of_the_registry_has_a_row(catalogue):
    table = rows(catalogue)
    assert [*table] == sorted(catalogue.registry.studies)
    assert {row.able for name, row in table.items() if name != "crows-pairs"} == {YES}
    assert "role 'drawer'" in table["dora-i2t"].takes
    assert table["crows-pairs"].able == UNKNOWN and "--data" in table["crows-pairs"].how


def test_model_that_cannot_is_told_why(catalogue):
    table = rows(catalogue, model="lexicon")
    assert table["dora-t2i"].able == NO and "draw" in table["dora-t2i"].how
    assert table["bistereo-nli"].able == YES


def test_model_that_sees_no_images_answers_no_study_about_images(catalogue):
    table = rows(catalogue, checks=[Check(f"generate: {SEES}", "skip", f"{BLIND}: both red")])
    assert {name for name, row in table.items() if row.able == NO} == ABOUT_IMAGES


def test_image_check_that_is_not_clear_is_said_to_be_unknown(catalogue):
    table = rows(catalogue, checks=[Check(f"generate: {SEES}", "fail", "TransientError: away")])
    assert all(table[name].able == UNKNOWN for name in ABOUT_IMAGES) and table["dora-t2t"].able == YES


def test_operation_whose_checks_fail_is_said_to_be_unknown(catalogue):
    table = rows(catalogue, checks=[Check("generate: the model answers", "fail", "an empty answer")])
    assert table["dora-t2t"].able == UNKNOWN and "an empty answer" in table["dora-t2t"].how
    assert table["bistereo-pairs"].able == YES


def test_base_model_is_told_to_be_asked_by_likelihood(catalogue, tmp_path):
    file = tmp_path / "registry.toml"
    file.write_text(
        '[models.base]\nadapter = "openai"\n'
        'settings = { model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = "", likelihood = "echo" }\n'
    )
    base = Simulated(SimulatedOptions())
    base._lacks = {CHAT: NO_TEMPLATE}
    table = rows(loaded(str(file)), base, model="base")
    assert table["bistereo-nli"].able == YES and "--set asking=likelihood" in table["bistereo-nli"].how
    assert "--set asking=likelihood" in table["subtle-sai"].how
    # Opponent: the three questions without content, which come first, were taken for the study.
    assert "58,224 requests" in table["bistereo-nli"].takes
    assert {name for name, row in table.items() if row.able == UNLIKELY} == {"dora-i2t", "dora-t2t"}
    chat = rows(loaded(str(file)), model="base")
    assert "asking=generate" in chat["bistereo-nli"].how and chat["subtle-sai"].able == YES


def test_study_of_another_package_that_raises_is_said_to_be_unknown(catalogue, monkeypatch):
    monkeypatch.setattr("prejudge.core.doctor.studies.fit_of", lambda *_: 1 / 0)
    assert {row.able for row in rows(catalogue).values()} == {UNKNOWN}


class Clock:
    """Time that passes only where a model takes it."""

    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.mark.parametrize(
    ("seconds", "requests", "each"),
    [(7200.0, 3600, "2 s each"), (36.0, 3600, "10 ms each"), (7200.0, 12, "10 minutes each"), (None, 5, "5 requests)")],
)
def test_time_is_of_the_study_and_of_each_answer(seconds, requests, each):
    assert each in Estimated(requests=requests, seconds=seconds).words


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr("prejudge.core.doctor.pace.time", Clock())


class Slow(ModelAdapter):
    """Takes a tenth of a second per call."""

    identity = Identity(adapter="slow", version="1", model="m")

    async def generate_batch(self, requests):
        Clock.now += 0.1
        return [Generation(text="a", usage=Usage(input_tokens=3, output_tokens=10))] * len(requests)

    async def pseudo_likelihood_batch(self, requests):
        Clock.now += 0.1
        return [TokenScores(log_probability=-1.0, count=1)] * len(requests)


def question(tokens=10):
    return Generate(messages=(Message("user", (Text("word " * 8),)),), sampling=Sampling(max_tokens=tokens))


def timed(model, *calls):
    adapter = Timed(model)
    for requests in calls:
        asyncio.run(adapter.answer(requests))
    return adapter


def test_first_call_loads_weights_and_is_not_counted():
    adapter = timed(Slow(), [question()], [question()] * 4, [PseudoLikelihood(text="a")])
    pace = adapter.paces["generate"]
    assert pace.requests == 4 and pace.seconds == pytest.approx(0.1)
    assert pace.work == pytest.approx(4 * (10 + 0.1 * 10), rel=0.01)
    assert adapter.paces["pseudo_likelihood"].requests == 1


def test_endpoint_is_as_fast_as_its_concurrency_allows():
    class Remote(Slow):
        endpoint, limits = RemoteEndpoint(name="e"), Limits(concurrency=8)

    pace = timed(Remote(), [question()], [question()] * 2).paces["generate"]
    assert pace.seconds == pytest.approx(0.1 / 4)
    alone = timed(Remote(), [question()], [question()]).paces["generate"]
    assert alone.seconds == pytest.approx(0.1)


def test_prompt_of_many_continuations_is_read_once():
    one, two = (Likelihood(prompt="a" * 400, continuations=("b",) * n) for n in (1, 2))
    assert work_of(one) < work_of(two) < 1.2 * work_of(one)


def stage_of(catalogue, name):
    return catalogue.instrument(catalogue.study(name, {"subject": "simulated-fair"}, {})).every_stage()[0]


def test_time_is_in_proportion_to_requests_and_their_tokens(catalogue):
    stage = stage_of(catalogue, "subtle-sai")
    adapter = Timed(Slow())
    adapter.paces["generate"] = Pace(requests=10, seconds=10.0, work=240.0)
    estimate = estimate_stage(stage, adapter, Prices(input=1.0, output=2.0), more=False)
    works = [work_of(trial.request) for trial in stage.trials({})]
    assert estimate.requests == count_trials(stage, {}) == len(works) == 5466
    assert estimate.seconds == pytest.approx(sum(works) * 10 / 240, rel=0.05)
    assert estimate.cost == pytest.approx(298_078 / 1e6 + 2 * 174_912 / 1e6, rel=0.05)
    assert "about" in estimate.words and "5,466 requests" in estimate.words


def test_known_rate_limit_is_the_least_time(catalogue):
    class Limited(Slow):
        limits = Limits(requests_per_minute=60)

    adapter = Timed(Limited())
    adapter.paces["generate"] = Pace(requests=10, seconds=0.001, work=240.0)
    assert estimate_stage(stage_of(catalogue, "subtle-sai"), adapter, Prices(), more=False).seconds == 5466


def test_time_of_what_was_not_measured_is_not_known(catalogue):
    estimate = estimate_stage(stage_of(catalogue, "bistereo-pairs"), Timed(Slow()), Prices(), more=True)
    assert estimate.seconds is None and "not known" in estimate.words and "first stage" in estimate.words


def test_timed_model_is_the_model():
    model = Simulated(SimulatedOptions())
    adapter = Timed(model)
    checks = asyncio.run(examine(adapter))
    assert adapter.identity == model.identity and not [check for check in checks if check.verdict == "fail"]
    assert {*adapter.paces} <= {*OPERATIONS.values()} and adapter.paces["generate"].known
