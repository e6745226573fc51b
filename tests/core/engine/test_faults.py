"""What happens when an endpoint fails: the adapter `openai` in a whole run, before a server that does as told."""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from fakes import fake_catalogue

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import AuthenticationError, HaltedError
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, get_run, read_trials, statistics
from prejudge.core.store.bulk import table_of
from prejudge.core.store.tables import Attempt

pytest.importorskip("openai", reason="the extra 'openai' is not installed")
pytest.importorskip("aiohttp", reason="the extra 'openai' is not installed")

from prejudge.adapters.openai.adapter import OpenAIApi
from prejudge.testing import ChaosServer, Reply, raises_code
from prejudge.testing.chaos.tiny import chat, problem


@pytest.fixture(scope="module")
def _server():
    with ChaosServer() as server:
        yield server


@pytest.fixture
def server(_server):
    _server.clear()
    return _server


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda self, errors, retries: 0.0)
    monkeypatch.setattr("prejudge.core.engine.limiter.FIRST_SECONDS", 0.01)
    monkeypatch.setattr("prejudge.core.engine.limiter.SILENT_SECONDS", 1.0)


def perform(store, url, n=1, **settings):
    """Run n questions against an endpoint, and return the run."""
    fakes = fake_catalogue()
    settings = {"model": "tiny", "base_url": url, "api_key_env": "", "timeout_seconds": 5.0, **settings}
    models = {"tiny": ModelEntry(adapter="openai", settings=settings)}
    catalogue = Catalogue(type(fakes.registry)(models=models, studies=fakes.registry.studies), fakes.plugins)
    catalogue.plugins.offers["adapter"]["openai"] = Registered(Plugged("openai", OpenAIApi), "tests")
    study = catalogue.study("count", {"subject": "tiny"}, {"n": n})
    asyncio.run(execute(catalogue, study, store, RunOptions()))
    return get_run(store, "latest")


def decisions(store):
    """Return the decisions that stand in the store."""
    with store.engine.connect() as connection:
        return [row[0] for row in connection.execute(sa.select(table_of(Attempt).c.decision))]


class Fault(NamedTuple):
    """What goes wrong, how it is taken, and how often the server is asked for one trial if it goes on and on."""

    answer: Reply
    decision: str
    asked: int


FAULTS = {
    "429": Fault(Reply(429, problem("rate_limit_exceeded")), "rate_limit", 13),
    "429-retry-after": Fault(Reply(429, problem(None), {"Retry-After": "0.05"}), "rate_limit", 13),
    "408": Fault(Reply(408, problem(None)), "transient", 7),
    "500": Fault(Reply(500, problem(None)), "transient", 7),
    "502-page": Fault(Reply(502, "<html>bad gateway</html>", content_type="text/html"), "transient", 7),
    "503": Fault(Reply(503, problem(None)), "transient", 7),
    "late": Fault(Reply(body=chat("late"), delay=0.7), "transient", 7),
    "cut": Fault(Reply(way="cut"), "transient", 7),
    "half": Fault(Reply(body=chat("x" * 2000), way="half"), "transient", 7),
    "bad-json": Fault(Reply(body='{"choices": ['), "transient", 7),
    "no-answer": Fault(Reply(body={"hello": 1}), "transient", 7),
    "wrong-type": Fault(Reply(body="<html>log in</html>", content_type="text/html"), "transient", 7),
    "400": Fault(Reply(400, problem("context_length_exceeded")), "permanent", 1),
    "404": Fault(Reply(404, problem("model_not_found")), "permanent", 1),
    "redirect": Fault(Reply(302, b"", {"Location": "http://127.0.0.1:9/"}), "permanent", 1),
}
STOPS = {
    "quota": Reply(429, problem("insufficient_quota")),
    "401": Reply(401, problem("invalid_api_key")),
    "403": Reply(403, problem("access_terminated")),
    "402": Reply(402, problem(None)),
}


@pytest.mark.parametrize("name", [name for name in FAULTS if FAULTS[name].decision != "permanent"])
def test_fault_that_passes_costs_one_more_request(store, server, name):
    server.plan = [FAULTS[name].answer]
    run = perform(store, server.url, timeout_seconds=0.5 if name == "late" else 5.0)
    assert len(server.seen) == 2
    assert decisions(store) == [FAULTS[name].decision]
    assert read_trials(store, run.id, "count")["status"].to_list() == ["ok"]


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "late"])
def test_fault_that_stays_fails_the_trial(store, server, name, monkeypatch):
    monkeypatch.setattr("prejudge.core.engine.pace.SLOWEST", 200.0)
    server.play(FAULTS[name].answer)
    run = perform(store, server.url)
    assert len(server.seen) == FAULTS[name].asked
    assert decisions(store) == [FAULTS[name].decision] * FAULTS[name].asked
    assert run.state == "finished"
    assert read_trials(store, run.id, "count")["status"].to_list() == [None]


@pytest.mark.parametrize("name", STOPS)
def test_refused_account_stops_the_run(store, server, name):
    server.play(STOPS[name])
    with pytest.raises(AuthenticationError):
        perform(store, server.url, n=300, concurrency=4)
    assert len(server.seen) <= 4
    assert set(decisions(store)) == {"authentication"}
    assert get_run(store, "latest").state == "failed"


def test_key_revoked_in_mid_run_keeps_what_was_answered(store, server):
    server.plan = [Reply(body=chat("fine")) for _ in range(40)] + [Reply(401, problem("invalid_api_key"))] * 300
    with pytest.raises(AuthenticationError):
        perform(store, server.url, n=300, concurrency=4)
    assert statistics(store)["Exchange"] == 40
    assert len(server.seen) <= 44


def test_content_filter_is_an_answer(store, server):
    server.plan = [Reply(400, problem("content_filter"))]
    run = perform(store, server.url)
    assert len(server.seen) == 1 and decisions(store) == []
    assert read_trials(store, run.id, "count")["status"].to_list() == ["filtered"]


@pytest.mark.parametrize(
    "url", ["http://no-such-host.invalid/v1", "http://127.0.0.1:9/v1"], ids=["name-not-found", "nobody-listens"]
)
def test_endpoint_that_is_not_there_fails_the_trial(store, url):
    run = perform(store, url)
    assert decisions(store) == ["transient"] * 7
    assert read_trials(store, run.id, "count")["status"].to_list() == [None]


def test_endpoint_without_tls_fails_the_trial(store, server):
    run = perform(store, server.url.replace("http:", "https:"))
    assert decisions(store) == ["transient"] * 7
    assert read_trials(store, run.id, "count")["status"].to_list() == [None]
    assert server.seen == []


def test_endpoint_that_answers_nothing_stops_the_run(store, server):
    with raises_code(HaltedError, "model.silent"):
        perform(store, "http://127.0.0.1:9/v1", n=40, concurrency=16)
    assert get_run(store, "latest").state == "interrupted"
    assert statistics(store)["Attempt"] < 40


MIXED = ("429", "429-retry-after", "500", "503", "cut", "half", "bad-json", "wrong-type", "400")


def test_one_fault_in_five_loses_nothing(store, server):
    server.play(*(FAULTS[name].answer for name in MIXED), share=0.2)
    run = perform(store, server.url, n=3_000, concurrency=64)
    trials = read_trials(store, run.id, "count")
    kept = statistics(store)
    answered = trials["status"].drop_nulls().len()
    assert trials.height == 3_000
    assert kept["Exchange"] == answered
    assert len(server.seen) == kept["Exchange"] + kept["Attempt"]
    counts = decisions(store)
    assert 3_000 - answered == counts.count("permanent")
    assert kept["Attempt"] > 450


def test_error_with_status_200_is_no_answer(store, server):
    """Gateways report the failure of the provider behind them so; an answer beside it is not complete."""
    half = {**chat("half an ans"), "error": {"message": "provider overloaded", "code": 503}}
    broken = {"choices": [{"index": 0, "error": {"message": "upstream", "code": 502}}]}
    both = chat("half")
    both["choices"][0]["error"] = {"message": "upstream", "code": 502}
    server.plan = [Reply(body=half), Reply(body=broken), Reply(body=both), Reply(body=chat("whole"))]
    run = perform(store, server.url)
    assert decisions(store) == ["transient"] * 3
    assert [json.loads(r)["text"] for r in read_trials(store, run.id, "count")["response"]] == ["whole"]


def test_choices_are_taken_by_their_index(store, server):
    first, second = chat("first")["choices"][0], chat("second")["choices"][0] | {"index": 1}
    server.plan = [Reply(body={"choices": [second, first]})]
    run = perform(store, server.url)
    assert [json.loads(r)["text"] for r in read_trials(store, run.id, "count")["response"]] == ["first"]


@pytest.mark.parametrize(("tokens", "asked"), [(0, 2), (3, 1), (None, 1)], ids=["none", "some", "not-told"])
def test_empty_answer_of_no_tokens_is_asked_once_more(store, server, tokens, asked):
    empty = chat("")
    empty["usage"] = {"prompt_tokens": 7, "completion_tokens": tokens} if tokens is not None else None
    server.play(Reply(body=empty))
    perform(store, server.url)
    assert len(server.seen) == asked
    assert statistics(store)["Exchange"] == 1
