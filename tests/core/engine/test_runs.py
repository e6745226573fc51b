"""A run: planned once, asked once, recorded in order, resumable."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from fakes import CountStage, FakeModel, ask, text_of

from prejudge.core.contracts import StageRules, Trial
from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.canonical import encode_response
from prejudge.core.contracts.errors import (
    AuthenticationError,
    PermanentError,
    PluginError,
    RateLimitError,
    ReplayMissError,
    TransientError,
    UnknownNameError,
    UnsupportedOperationError,
    UsageError,
)
from prejudge.core.contracts.records import Generation, Usage
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.engine.scheduler import Scheduler
from prejudge.core.scoring.score import score
from prejudge.core.store import get_run, read_failures, read_trials, statistics
from prejudge.testing import raises_code

EVERY_STORE = True


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda self, errors, retries: 0.0)


def counts(store, name):
    return json.loads(get_run(store, name).manifest)["stages"]["count"]["counts"]


@pytest.mark.parametrize(
    ("usage", "counted"),
    [(Usage(), (None, None)), (Usage(input_tokens=7), (70, 0)), (Usage(input_tokens=7, output_tokens=3), (70, 30))],
)
def test_tokens_that_a_model_does_not_count_are_unknown(run_study, store, usage, counted):
    FakeModel.script = lambda request, seen: Generation(text="X", usage=usage)
    first, _ = run_study(n=10)
    assert (counts(store, first)["input_tokens"], counts(store, first)["output_tokens"]) == counted
    again, _ = run_study(n=10)
    assert (counts(store, again)["input_tokens"], counts(store, again)["asked"]) == (0, 0)


def test_run_answers_every_trial(run_study, store):
    name, model = run_study(n=25)
    trials = read_trials(store, get_run(store, name).id, "count")
    assert trials["trial"].to_list() == [f"t{i}" for i in range(25)]
    assert trials["status"].to_list() == ["ok"] * 25
    assert len(model.asked) == 25 and model.closed


def test_second_run_asks_nothing(run_study, store):
    run_study(n=25)
    name, model = run_study(n=25)
    assert model.asked == []
    assert counts(store, name)["cached"] == 25 and counts(store, name)["asked"] == 0


def test_equal_requests_are_asked_once(run_study, store):
    name, model = run_study(n=40, distinct=7)
    assert sorted(model.asked) == sorted(f"q {i}" for i in range(7))
    assert read_trials(store, get_run(store, name).id, "count")["status"].to_list() == ["ok"] * 40


def test_equal_requests_in_two_windows_are_asked_once(run_study, monkeypatch):
    monkeypatch.setattr("prejudge.core.engine.windows.WINDOW", 5)
    FakeModel.delay = 0.01
    _, model = run_study(n=40, distinct=5)
    assert len(model.asked) == 5


def test_other_model_is_asked_anew(run_study):
    run_study("fake")
    _, model = run_study("other")
    assert len(model.asked) == 10


def test_calls_stay_within_limits(run_study):
    FakeModel.delay = 0.005
    _, model = run_study(n=60)
    assert model.most_busy == 2
    assert max(len(call) for call in model.calls) == 4


def test_replay_counts_misses(run_study):
    run_study(n=10)
    with raises_code(ReplayMissError, "replay-miss", "5 of 15"):
        run_study(n=15, mode="replay")
    assert FakeModel.made[-1].asked == []


def test_replay_of_known_answers_needs_no_call(run_study, store):
    run_study(n=10)
    name, model = run_study(n=10, mode="replay")
    assert model.asked == [] and get_run(store, name).state == "finished"


def test_refresh_asks_anew_and_keeps_old_answers(run_study, store, catalogue):
    first, _ = run_study(n=6, distinct=3)
    FakeModel.script = lambda request, seen: Generation(text="changed answer")
    second, model = run_study(n=6, distinct=3, mode="refresh")
    assert len(model.asked) == 3
    assert statistics(store)["Exchange"] == 6
    means = [score(catalogue, store, name).estimates["mean"][0].value for name in (first, second)]
    assert means == [3.0, 14.0]


def test_permanent_error_fails_the_trial_only(run_study, store):
    FakeModel.script = lambda request, seen: PermanentError("too long") if text_of(request) == "q 3" else None
    name, model = run_study()
    run = get_run(store, name)
    assert read_trials(store, run.id, "count")["status"].null_count() == 1
    assert list(read_failures(store, run.id).values()) == ["too long"]
    assert model.asked.count("q 3") == 1
    assert counts(store, name)["failed"] == 1


@pytest.mark.parametrize("error", [TransientError("cut"), RateLimitError("slow down", retry_after=0.0)])
def test_passing_error_is_asked_again(run_study, store, error):
    FakeModel.script = lambda request, seen: error if text_of(request) == "q 3" and seen < 3 else None
    name, model = run_study()
    assert model.asked.count("q 3") == 4
    assert counts(store, name) | {"failed": 0, "asked": 10, "retried": 3} == counts(store, name)


def test_passing_error_is_given_up_in_the_end(run_study, store):
    FakeModel.script = lambda request, seen: TransientError("cut") if text_of(request) == "q 3" else None
    name, model = run_study()
    assert model.asked.count("q 3") == RetryPolicy().max_retries + 1
    assert counts(store, name)["failed"] == 1


def test_failed_trial_is_asked_again_by_the_next_run(run_study, store):
    FakeModel.script = lambda request, seen: PermanentError("no") if text_of(request) == "q 3" else None
    run_study()
    FakeModel.script = None
    name, model = run_study()
    assert model.asked == ["q 3"] and counts(store, name)["failed"] == 0


def test_refused_key_stops_the_run(run_study, store):
    FakeModel.script = lambda request, seen: AuthenticationError("the key was refused")
    with raises_code(AuthenticationError, "authentication", "refused"):
        run_study(n=500)
    assert len(FakeModel.made[-1].calls) < 10
    assert FakeModel.made[-1].closed
    assert get_run(store, "latest").state == "failed"


@pytest.mark.parametrize(
    "bug", [KeyError("bug"), RecursionError("deep"), ValueError("9" * 5000)], ids=lambda e: type(e).__name__
)
def test_bug_in_an_adapter_is_a_failure_of_its_request(run_study, store, catalogue, bug):
    FakeModel.script = lambda request, seen: bug if text_of(request) == "q 9" else None
    name, _ = run_study()
    assert get_run(store, "latest").state == "finished"
    observed = score(catalogue, store, name).last
    assert observed.filter(status="failed")["number"].to_list() == [9]
    assert type(bug).__name__ in observed.filter(status="failed")["reason"][0]


@pytest.mark.parametrize("wrong", ["words", 3, Generation], ids=str)
def test_answer_that_is_none_fails(run_study, store, catalogue, wrong):
    FakeModel.script = lambda request, seen: wrong if text_of(request) == "q 9" else None
    name, _ = run_study()
    assert score(catalogue, store, name).last.filter(status="failed")["number"].to_list() == [9]


def test_unreadable_answer_is_asked_again(run_study, store, catalogue):
    FakeModel.script = lambda request, seen: Generation(text="") if request.attempt < 2 else None
    name, model = run_study(n=3, max_attempts=4)
    assert len(model.asked) == 9
    assert score(catalogue, store, name).last["status"].to_list() == ["ok"] * 3


def test_answer_in_memory_is_not_read_back(run_study, store, monkeypatch):
    read = []
    responses = store.responses
    monkeypatch.setattr(store, "responses", lambda numbers: read.extend(numbers) or responses(numbers))
    schedulers = keep_schedulers(monkeypatch)
    FakeModel.script = lambda request, seen: Generation(text="") if request.attempt < 1 else None
    run_study(n=3, max_attempts=4)
    assert read == [] and schedulers[-1].fresh == {}
    # Whether the model can do the task is judged from what was answered before, which would be read too.
    run_study(n=5, max_attempts=2, told=RunOptions(accept_unfit=True))
    assert len(read) == 3, "only the first answers of before: none of the new ones, and none that is the last anyway"


def test_answer_of_another_process_is_read_where_it_came_first(run_study, store, catalogue, monkeypatch):
    """What counts is the answer that the store kept."""
    add, done = store.add_exchanges, []

    def late(rows, **options):
        for row in rows if not done else ():
            add([row._replace(response=encode_response(Generation(text="good")))])
        done.append(len(rows))
        return add(rows, **options)

    monkeypatch.setattr(store, "add_exchanges", late)
    FakeModel.script = lambda request, seen: Generation(text="")
    name, model = run_study(n=1, max_attempts=2)
    assert len(model.asked) == 1 and score(catalogue, store, name).last["length"].to_list() == [4]


def keep_schedulers(monkeypatch):
    """Return a list that gets every scheduler of a run."""
    made = []
    monkeypatch.setattr(
        "prejudge.core.engine.stage_run.Scheduler", lambda **parts: made.append(Scheduler(**parts)) or made[-1]
    )
    return made


def test_answer_that_stays_unreadable_is_counted(run_study, store, catalogue):
    FakeModel.script = lambda request, seen: Generation(text="") if text_of(request) == "q 1" else None
    name, model = run_study(n=3, max_attempts=2)
    observed = score(catalogue, store, name).last
    assert model.asked.count("q 1") == 2
    assert observed["status"].to_list() == ["ok", "unreadable", "ok"]
    assert observed["reason"].to_list() == [None, "empty", None]
    assert observed["length"].to_list() == [3, None, 3]


@pytest.mark.parametrize(("again", "asked"), [(("unreadable",), 1), (("unreadable", "refused"), 3)])
def test_refusal_is_asked_again_only_where_a_stage_says_so(run_study, store, catalogue, monkeypatch, again, asked):
    refusal = Generation(text="I will not.", status="refused")
    FakeModel.script = lambda request, seen: refusal if text_of(request) == "q 1" else None
    monkeypatch.setattr(CountStage, "rules", StageRules(again=again))
    name, model = run_study(n=3, max_attempts=3)
    assert model.asked.count("q 1") == asked
    observed = score(catalogue, store, name).last
    assert observed["status"].to_list() == ["ok", "refused", "ok"]
    assert observed["first"].to_list() == ["ok", "refused", "ok"]
    assert model.asked.count("q 1") == asked, "`score` asks nothing"


def test_first_status_of_what_was_answered_later(run_study, store, catalogue, monkeypatch):
    """Also by `score`, from the store; an answer that could not be read was unreadable."""
    given = {"q 0": Generation(text=""), "q 1": Generation(text="No.", status="refused")}
    FakeModel.script = lambda request, seen: given.get(text_of(request)) if request.attempt == 0 else None
    monkeypatch.setattr(CountStage, "rules", StageRules(again=("unreadable", "refused")))
    name, _ = run_study(n=3, max_attempts=3)
    observed = score(catalogue, store, name).last
    assert observed["status"].to_list() == ["ok"] * 3
    assert observed["first"].to_list() == ["unreadable", "refused", "ok"]


def test_samples_of_one_prompt_share_its_key(run_study, store, catalogue, monkeypatch):
    """Whatever the factors are called, and also where an answer was asked for again."""

    def trials(self, earlier):
        for i in range(6):
            request = msgspec.structs.replace(ask(f"q {i // 3}"), sample=i % 3)
            yield Trial(f"t{i}", {"number": i, "parity": "odd"}, request)

    FakeModel.script = lambda request, seen: (
        Generation(text="") if request.attempt == 0 and request.sample == 2 else None
    )
    monkeypatch.setattr(CountStage, "trials", trials)
    name, _ = run_study(n=6, max_attempts=2)
    keys = score(catalogue, store, name).last["prompt_key"].to_list()
    assert keys[:3] == keys[:1] * 3 and keys[3:] == keys[3:4] * 3 and keys[0] != keys[3]


def test_refusal_is_an_answer(run_study, store, catalogue):
    refusal = Generation(text="I will not.", status="refused")
    FakeModel.script = lambda request, seen: refusal if text_of(request) == "q 1" else None
    name, _ = run_study(n=3)
    again, model = run_study(n=3)
    assert model.asked == []
    assert score(catalogue, store, again).last["status"].to_list() == ["ok", "refused", "ok"]
    assert counts(store, name)["refused"] == 1


def test_interrupted_run_is_resumed_under_its_name(catalogue, store):
    FakeModel.delay = 0.05

    async def interrupted():
        study = catalogue.study("count", {"subject": "fake"}, {"n": 100})
        task = asyncio.create_task(execute(catalogue, study, store, RunOptions()))
        while statistics(store)["Exchange"] == 0 and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    FakeModel.delay = 0.0
    stopped = get_run(store, "latest")
    kept = statistics(store)["Exchange"]
    assert stopped.state == "interrupted" and 0 < kept < 100
    study = catalogue.study("count", {"subject": "fake"}, {"n": 100})
    name = asyncio.run(execute(catalogue, study, store, RunOptions(name=stopped.name)))
    assert name == stopped.name and get_run(store, name).state == "finished"
    assert len(FakeModel.made[-1].asked) == 100 - kept
    assert read_trials(store, stopped.id, "count").height == 100


def test_role_without_a_model_is_refused(catalogue, store):
    study = catalogue.study("count", {}, {})
    with raises_code(UsageError, "study.role-missing", "--model"):
        asyncio.run(execute(catalogue, study, store, RunOptions()))


def test_unknown_names_offer_the_nearest(catalogue):
    with raises_code(UnknownNameError, "unknown-study", "'count'"):
        catalogue.study("cuont", {}, {})
    with raises_code(UnknownNameError, "unknown-model", "'other'"):
        catalogue.study("count", {"subject": "othr"}, {})


def test_wrong_metric_is_refused_before_anything_runs(catalogue, store):
    study = catalogue.study("count", {"subject": "fake"}, {})
    paired = {"needs-more": {}}
    with raises_code(UsageError, "study.metric-columns"):
        catalogue.instrument(
            type(study)(**{f: getattr(study, f) for f in study.__struct_fields__} | {"metrics": paired})
        )


def test_plugin_that_fails_is_named(catalogue, store, monkeypatch):
    study = catalogue.study("count", {"subject": "fake"}, {})
    name = asyncio.run(execute(catalogue, study, store, RunOptions()))
    monkeypatch.setattr("fakes.MeanLength.compute", lambda self, observations, options: 1 / 0)
    with raises_code(PluginError, "plugin.failed", "'tests'", "'mean'", "ZeroDivisionError"):
        score(catalogue, store, name)
    monkeypatch.setattr("fakes.CountStage.trials", lambda self, earlier: 1 / 0)
    with raises_code(PluginError, "plugin.failed", "'tests'", "'count'", "ZeroDivisionError"):
        asyncio.run(execute(catalogue, study, store, RunOptions()))


def test_model_whose_settings_lack_the_operation_is_refused_before_asking(run_study, store, monkeypatch):
    able = Abilities().without({"generate": "Set a chat template."})
    monkeypatch.setattr(FakeModel, "abilities", classmethod(lambda _, options: able))
    with raises_code(UnsupportedOperationError, "study.operation", "'generate'", "Set a chat template"):
        run_study(n=3)
    assert not any(model.asked for model in FakeModel.made) and statistics(store)["Run"] == 0
