"""A stage that is asked in batches has the answers, counts and estimates of one that is asked by single calls."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest
from fakes import CountOptions, FakeModel, text_of
from provider import Killed, Provider

from prejudge.core.contracts.adapter import RemoteEndpoint
from prejudge.core.contracts.batch import BatchLimits
from prejudge.core.contracts.errors import (
    AuthenticationError,
    BudgetError,
    HaltedError,
    PendingError,
    PermanentError,
    RateLimitError,
    TransientError,
    UnfitError,
)
from prejudge.core.contracts.records import Generation, Usage
from prejudge.core.engine.batch import manager
from prejudge.core.engine.batch.options import BatchOptions
from prejudge.core.engine.budget import Caps
from prejudge.core.engine.manifest import Manifest, manifest_of
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.estimates_frame import estimates_frame
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, list_runs, read_failures, read_trials
from prejudge.core.store.batches import Batches
from prejudge.core.store.checks import Checks
from prejudge.testing import raises_code

EVERY_STORE = True
QUICK = BatchOptions(poll_seconds=0.001, sentinel=0, only=True)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda *_: 0.0)
    monkeypatch.setattr(manager, "FULL_SECONDS", 0.0)


@pytest.fixture
def provider(monkeypatch):
    made = Provider()
    monkeypatch.setattr(FakeModel, "batch_api", made, raising=False)
    return made


@pytest.fixture
def run(catalogue, store, provider):
    """Return a function that runs the study `count` in batches."""

    def run(name=None, batch=QUICK, n=10, **more):
        study = catalogue.study("count", {"subject": "fake"}, {"n": n, **more.pop("study", {})})
        options = RunOptions(name=name, batch=batch, **more)
        return asyncio.run(execute(catalogue, study, store, options))

    return run


def manifest(store, name="latest"):
    return manifest_of(get_run(store, name))


def counts(store, name="latest"):
    return manifest(store, name).stages["count"].counts


def states(store):
    book = Batches(store)
    total = Counter()
    for row in book.all():
        total.update(book.counts(row.id))
    return dict(total), [row.state for row in book.all()]


def sound(store):
    assert list(Checks(store).problems()) == []
    with store.engine.connect() as connection:
        for table in ("claim", "worker"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 0


def texts(store, name):
    return read_trials(store, get_run(store, name).id, "count").select("trial", "status", "response")


def same_as_single(catalogue, store, name, tmp_path, **options):
    """Check the trials and estimates of a run against one that asks by single calls into another store."""
    with Store(tmp_path / "single.db") as other:
        study = catalogue.study("count", {"subject": "fake"}, options)
        single = asyncio.run(execute(catalogue, study, other, RunOptions()))
        assert texts(store, name).select("trial", "status").equals(texts(other, single).select("trial", "status"))
        frames = [
            estimates_frame(score(catalogue, s, n).estimates["mean"]) for s, n in ((store, name), (other, single))
        ]
        assert frames[0].equals(frames[1])


def test_batch_gives_what_single_calls_give(run, catalogue, store, provider, tmp_path):
    name = run(n=25)
    assert not FakeModel.made[-1].calls
    assert len(provider.batches) == 1 and set(provider.paid.values()) == {1} and len(provider.paid) == 25
    assert {k: counts(store)[k] for k in ("trials", "asked", "cached", "failed", "refused")} == {
        "trials": 25, "asked": 25, "cached": 0, "failed": 0, "refused": 0,
    }  # fmt: skip
    assert (counts(store)["input_tokens"], counts(store)["output_tokens"]) == (125, 50)
    record = manifest(store).stages["count"].batch
    assert record.batches == {"batch-0": "ended"} and record.answers == 25 and record.sentinel is None
    same_as_single(catalogue, store, name, tmp_path, n=25)
    sound(store)


def test_answers_are_shared_both_ways(run, run_study, store, provider):
    run(n=5)
    _, model = run_study(n=8)
    assert model.asked == [f"q {i}" for i in range(5, 8)]
    run(n=10)
    assert len(provider.paid) == 7 and counts(store)["cached"] == 8 and counts(store)["asked"] == 2


def test_requests_are_split_by_items_and_by_bytes(run, provider):
    run(n=10, batch=msgspec.structs.replace(QUICK, items=4))
    assert [len(held.lines) for held in provider.batches.values()] == [4, 4, 2]
    provider.limits = BatchLimits(items=1000, bytes=1000)
    run(n=30)
    assert len(provider.batches) > 5 and len(provider.paid) == 30


def test_equal_requests_are_handed_in_once(run, store, provider):
    run(n=12, study={"distinct": 3})
    assert len(provider.paid) == 3 and counts(store)["trials"] == 12


def test_unreadable_answers_are_asked_again_in_a_further_batch(run, store, provider):
    provider.items = lambda name, request, tried: (
        Generation(text="") if request.attempt < 1 and "3" in text_of(request) else None
    )
    run(n=10, study={"max_attempts": 3})
    assert [len(held.lines) for held in provider.batches.values()] == [10, 1]
    assert counts(store)["asked"] == 11 and counts(store)["failed"] == 0


def test_refusals_are_answers(run, store, provider):
    provider.items = lambda name, request, tried: (
        Generation(text="no", status="refused") if text_of(request) == "q 3" else None
    )
    run(n=10)
    assert counts(store)["refused"] == 1 and states(store)[0] == {"ok": 9, "refused": 1}


def test_what_expired_is_asked_in_a_further_batch_and_the_rest_is_kept(run, store, provider, catalogue, tmp_path):
    provider.on_submit = lambda held: setattr(held, "end", "expired" if len(provider.batches) == 1 else "ended")
    provider.items = lambda name, request, tried: "expired" if tried == 0 and int(text_of(request)[2:]) >= 5 else None
    name = run(n=10)
    assert set(provider.paid.values()) == {1} and len(provider.paid) == 10
    assert states(store)[0] == {"ok": 10, "expired": 5} and counts(store)["retried"] == 5
    assert manifest(store).stages["count"].batch.batches == {"batch-0": "expired", "batch-1": "ended"}
    same_as_single(catalogue, store, name, tmp_path, n=10)


def test_what_always_expires_is_given_up(run, store, provider):
    provider.items = lambda name, request, tried: "expired" if text_of(request) == "q 1" else None
    run(n=4)
    assert len(provider.batches) == 3 and counts(store)["failed"] == 1
    assert list(read_failures(store, get_run(store, "latest").id).values()) == ["expired"]


def test_what_fails_for_good_is_asked_once(run, store, provider):
    provider.items = lambda name, request, tried: "wrong" if text_of(request) == "q 1" else None
    run(n=4)
    assert len(provider.batches) == 1 and counts(store)["failed"] == 1 and states(store)[0] == {"ok": 3, "errored": 1}


def test_request_that_cannot_be_written_fails_alone(run, store, provider, monkeypatch):
    encode = Provider.encode

    async def refuse(self, name, request):
        if text_of(request) == "q 1":
            raise PermanentError("no image")
        return await encode(self, name, request)

    monkeypatch.setattr(Provider, "encode", refuse)
    run(n=4)
    assert counts(store)["failed"] == 1 and counts(store)["asked"] == 3
    assert list(read_failures(store, get_run(store, "latest").id).values()) == ["no image"]


def test_missing_doubled_and_foreign_results_are_told(run, store, provider):
    def twist(lines):
        if len(provider.batches) > 1:
            return lines
        other = lines[0]._replace(name="f" * 64)
        return [
            *lines[1:],
            lines[2],
            other,
            lines[3]._replace(name=""),
        ]

    provider.twist = twist
    run(n=6)
    notes = " ".join(manifest(store).stages["count"].batch.notes)
    assert all(word in notes for word in ("twice", "belong to no request", "cannot be read", "missing"))
    assert counts(store)["failed"] == 0 and len(provider.batches) == 2
    sound(store)


@pytest.mark.parametrize("order", [1, -1])
def test_results_that_contradict_each_other_do_not_count(run, store, provider, order):
    """Whichever comes first: another answer, and an answer where the other says that it expired."""

    def twist(lines):
        if len(provider.batches) > 1:
            return lines
        other = lines[2]._replace(body=b'{"answer": {"text": "another"}}')
        return [*lines, other, lines[3]._replace(body=b'{"error": "expired"}')][::order]

    provider.twist = twist
    run(n=6)
    assert states(store)[0] == {"ok": 6, "errored": 2} and counts(store)["failed"] == 0
    assert len(provider.batches) == 2 and counts(store)["retried"] == 2
    assert "another" not in str(texts(store, "latest")["response"].to_list())
    assert any("contradict" in note for note in manifest(store).stages["count"].batch.notes)
    sound(store)


def test_one_answer_written_in_two_ways_counts_once(run, store, provider):
    provider.twist = lambda lines: [*lines, *(line._replace(body=line.body + b" ") for line in lines)]
    run(n=6)
    assert states(store)[0] == {"ok": 6} and len(provider.batches) == 1 and counts(store)["failed"] == 0


def test_results_that_always_contradict_each_other_are_given_up(run, store, provider):
    provider.twist = lambda lines: [*lines, lines[0]._replace(body=b'{"answer": {"text": "another"}}')]
    run(n=1)
    assert counts(store)["failed"] == 1 and len(provider.batches) == 3


def test_results_that_are_not_whole_are_read_again(run, store, provider, monkeypatch):
    whole = Provider._status
    monkeypatch.setattr(
        Provider,
        "_status",
        lambda self, name: msgspec.structs.replace(whole(self, name), answered=len(self.batches[name].lines)),
    )
    provider.twist = lambda lines: lines[:4] if provider.calls["results"] < 3 else lines
    run(n=6)
    assert provider.calls["results"] == 3 and len(provider.batches) == 1
    provider.twist = lambda lines: lines[:2]
    with pytest.raises(HaltedError) as raised:
        run(n=12)
    assert raised.value.code == "batch.incomplete" and states(store)[0] == {"ok": 8, "open": 4}
    provider.twist = lambda lines: lines
    run(name=get_run(store, "latest").name, n=12)
    assert len(provider.batches) == 2 and set(provider.paid.values()) == {1}


def test_file_that_is_refused_stops_the_run_and_costs_nothing(run, store, provider):
    def refuse(held):
        held.end, held.problem = "invalid", "line 3 is wrong."

    provider.on_submit = refuse
    with pytest.raises(HaltedError) as raised:
        run()
    assert raised.value.code == "batch.refused" and "line 3 is wrong." in str(raised.value)
    assert states(store) == ({"errored": 10}, ["collected"]) and not provider.charged
    provider.on_submit = lambda held: None
    run(name=get_run(store, "latest").name)
    assert len(provider.paid) == 10


def test_batch_waits_for_room_in_the_queue(run, store, provider):
    def fill(held):
        held.end = "full" if len(provider.batches) <= 3 else "ended"

    provider.on_submit = fill
    run(n=5)
    assert len(provider.batches) == 4 and len({held.mark for held in provider.batches.values()}) == 4
    assert set(provider.paid.values()) == {1} and provider.calls["upload"] == 1


@pytest.mark.parametrize("marks", [True, False])
def test_answer_lost_after_the_batch_was_taken_is_found_again(run, store, provider, marks):
    provider.marks = marks

    def fail(step):
        if step == "submit" and provider.calls["submit"] == 1:
            raise TransientError("500")

    provider.after = fail
    run(n=5)
    assert len(provider.batches) == 1 and provider.calls["submit"] == 1 and len(provider.paid) == 5


def test_refusal_to_take_a_batch_is_tried_again(run, provider):
    def fail(step):
        if step == "submit" and provider.calls["submit"] < 4:
            raise RateLimitError("429") if provider.calls["submit"] < 3 else TransientError("503")

    provider.before = fail
    run(n=5)
    assert provider.calls["submit"] == 4 and len(provider.batches) == 1


def test_refused_key_stops_the_run_with_nothing_handed_in(run, store, provider):
    def fail(step):
        raise AuthenticationError("no")

    provider.before = fail
    with pytest.raises(AuthenticationError):
        run(n=5)
    assert states(store)[0] == {"open": 5}
    provider.before = lambda step: None
    run(n=5)
    assert len(provider.paid) == 5 and set(provider.paid.values()) == {1}


def test_lost_batch_stops_and_is_asked_again_by_the_next_command(run, store, provider):
    def lose(held):
        held.gone = len(provider.batches) == 1

    provider.on_submit = lose
    with pytest.raises(HaltedError) as raised:
        run(n=5)
    assert raised.value.code == "batch.lost" and states(store) == ({"lost": 5}, ["lost"])
    assert provider.calls["status"] == 3
    run(name=get_run(store, "latest").name, n=5)
    assert len(provider.batches) == 2


def test_run_can_be_left_and_taken_up_again(run, catalogue, store, provider, tmp_path):
    provider.polls = 3
    leave = msgspec.structs.replace(QUICK, wait=False)
    for _ in range(3):
        with pytest.raises(PendingError):
            run(name="mine", n=5, batch=leave)
    assert get_run(store, "mine").state == "interrupted" and len(provider.batches) == 1
    run(name="mine", n=5, batch=leave)
    assert len(provider.batches) == 1 and counts(store, "mine")["asked"] == 5
    assert manifest(store).stages["count"].batch.answers == 5
    same_as_single(catalogue, store, "mine", tmp_path, n=5)


def test_same_command_takes_up_what_another_run_handed_in(run, store, provider):
    provider.polls = 5
    with pytest.raises(PendingError):
        run(n=5, batch=msgspec.structs.replace(QUICK, wait=False))
    name = run(n=5)
    assert len(provider.batches) == 1 and len(list_runs(store)) == 2
    assert manifest(store, name).stages["count"].batch.answers == 5


def test_single_calls_do_not_ask_what_a_batch_holds(run, run_study, store, provider):
    provider.polls = 9
    with pytest.raises(PendingError):
        run(n=5, batch=msgspec.structs.replace(QUICK, wait=False))
    with pytest.raises(HaltedError) as raised:
        run_study(n=8)
    assert raised.value.code == "batch.holds"
    assert not set(FakeModel.made[-1].asked) & {f"q {i}" for i in range(5)}


def test_cancelled_batch_keeps_what_was_answered(run, store, provider):
    provider.on_submit = lambda held: setattr(held, "end", "cancelled")
    provider.items = lambda name, request, tried: "cancelled" if tried == 0 and int(text_of(request)[2:]) >= 3 else None
    with pytest.raises(HaltedError) as raised:
        run(n=8)
    assert raised.value.code == "batch.cancelled" and states(store)[0] == {"ok": 3, "cancelled": 5}
    provider.on_submit = lambda held: None
    run(name=get_run(store, "latest").name, n=8)
    assert set(provider.paid.values()) == {1} and len(provider.paid) == 8


def test_batch_that_was_not_handed_in_can_be_withdrawn(run, store, provider):
    def end(met):
        raise Killed

    provider.before = end
    with pytest.raises(Killed):
        run(n=4)
    book = Batches(store)
    (row,) = book.all(only_open=True)
    assert len(book.withdraw(row.id)) == 4 and not book.all(only_open=True)
    provider.before, provider.after = provider.after, end
    with pytest.raises(Killed):
        run(n=4)
    (row,) = book.all(only_open=True)
    book.advance(row.id, tried=1.0)
    assert book.withdraw(row.id) is None


STEPS = [(when, step) for step in ("upload", "submit", "status") for when in ("before", "after")]


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize(("when", "step"), [*STEPS, ("before", "results")])
def test_process_that_ends_at_a_step_is_taken_up(run, catalogue, store, provider, tmp_path, when, step, marks):
    provider.marks = marks

    def end(met):
        if met == step:
            raise Killed

    setattr(provider, when, end)
    with pytest.raises(Killed):
        run(n=10, name="mine", batch=msgspec.structs.replace(QUICK, items=4))
    setattr(provider, when, lambda met: None)
    run(n=10, name="mine", batch=msgspec.structs.replace(QUICK, items=4))
    assert len(provider.batches) == 3 and set(provider.paid.values()) == {1} and len(provider.paid) == 10
    same_as_single(catalogue, store, "mine", tmp_path, n=10)
    sound(store)


def test_process_that_ends_while_it_collects_stores_nothing_twice(run, store, provider, monkeypatch):
    monkeypatch.setattr(manager, "PART", 3)
    settle, calls = Batches.settle, []

    def end(self, number, results):
        calls.append(number)
        if len(calls) == 2:
            raise Killed
        return settle(self, number, results)

    monkeypatch.setattr(Batches, "settle", end)
    with pytest.raises(Killed):
        run(n=10, name="mine", mode="refresh")
    assert states(store)[0] == {"ok": 3, "open": 7}
    run(n=10, name="mine", mode="refresh")
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*), max(generation) FROM exchange").one() == (10, 0)
    assert len(provider.batches) == 1


def test_process_that_ends_after_its_last_result_leaves_no_open_batch(run, store, provider, monkeypatch):
    def end(self, *_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Batches, "close", end)
        with pytest.raises(Killed):
            run(n=6, name="mine")
    assert states(store) == ({"ok": 6}, ["ended"])
    run(n=6, name="mine")
    assert states(store) == ({"ok": 6}, ["collected"]) and len(provider.batches) == 1


def test_provider_out_of_reach_for_a_while_is_waited_for(run, provider, monkeypatch):
    def fail(step):
        if step == "status" and provider.calls["status"] < 20:
            raise TransientError("no network", code="endpoint.unreachable")

    provider.before = fail
    run(n=4)
    assert len(provider.batches) == 1 and provider.calls["status"] >= 20
    monkeypatch.setattr(manager, "DARK_SECONDS", 0.0)
    provider.calls["status"] = 0
    with pytest.raises(HaltedError) as raised:
        run(n=8)
    assert raised.value.code == "batch.provider"


def test_first_empty_answer_of_an_endpoint_is_asked_once_more(run, store, provider, monkeypatch):
    monkeypatch.setattr(FakeModel, "endpoint", RemoteEndpoint(name="somewhere"))
    empty = Generation(text="", usage=Usage(input_tokens=5, output_tokens=0))
    provider.items = lambda name, request, tried: empty if text_of(request) == "q 1" else None
    run(n=4)
    assert [len(held.lines) for held in provider.batches.values()] == [4, 1]
    assert counts(store)["asked"] == 4 and counts(store)["retried"] == 1


def test_refresh_asks_anew_in_a_batch(run, store, provider):
    run(n=4)
    provider.items = lambda name, request, tried: Generation(text="new")
    run(n=4, mode="refresh")
    assert len(provider.batches) == 2
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*), max(generation) FROM exchange").one() == (8, 1)
    assert "new" in texts(store, "latest")["response"][0]
    sound(store)


def test_refresh_of_an_outcome_marks_the_answers(run, store, provider):
    provider.items = lambda name, request, tried: Generation(text="" if "q 1" in text_of(request) else "x")
    run(n=3)
    provider.items = lambda name, request, tried: Generation(text="now")
    run(n=3, refresh=("unreadable",))
    assert [len(held.lines) for held in provider.batches.values()] == [3, 1]
    assert manifest(store).renewed == {"unreadable": 1}


def test_budget_holds_before_a_batch_is_handed_in(run, store, provider):
    with pytest.raises(BudgetError):
        run(n=10, name="mine", caps=Caps(requests=4))
    assert [len(held.lines) for held in provider.batches.values()] == [4]
    with pytest.raises(BudgetError):
        run(n=10, name="mine", caps=Caps(requests=4))
    run(n=10, name="mine", caps=Caps(requests=2))
    assert len(provider.paid) == 10 and set(provider.paid.values()) == {1}


def test_replay_hands_in_nothing(run, store, provider):
    run(n=4)
    run(n=4, mode="replay")
    assert len(provider.batches) == 1


def test_all_items_that_fail_stop_the_run(run, provider):
    provider.items = lambda name, request, tried: "wrong"
    with pytest.raises(HaltedError) as raised:
        run(n=30)
    assert raised.value.code == "run.all-failing"


def test_model_without_batches_is_refused_before_anything_is_asked(catalogue, store):
    study = catalogue.study("count", {"subject": "fake"}, {"n": 3})
    with pytest.raises(Exception) as raised:
        asyncio.run(execute(catalogue, study, store, RunOptions(batch=QUICK)))
    assert raised.value.code == "batch.none" and not list_runs(store)


def test_counts_of_the_options_are_known():
    assert CountOptions().n == 10 and msgspec.json.decode(msgspec.json.encode(QUICK), type=BatchOptions) == QUICK
    assert Manifest.__struct_fields__.index("batch")


FIRST_CALLS = BatchOptions(poll_seconds=0.001, sentinel=0)


def test_first_trials_are_single_calls_and_none_is_asked_twice(run, store, provider):
    run(batch=FIRST_CALLS, n=200)
    single = FakeModel.made[-1].asked
    assert 10 <= len(single) <= 50 and len(provider.paid) == 200 - len(single)
    assert (counts(store)["asked"], counts(store)["cached"]) == (200, 0)


def test_unfit_model_stops_before_anything_is_handed_in(run, provider):
    FakeModel.script = lambda request, seen: Generation(text="")
    try:
        with raises_code(UnfitError, "run.unfit"):
            run(batch=FIRST_CALLS, n=200)
    finally:
        FakeModel.script = None
    assert not provider.batches and len(FakeModel.made[-1].asked) <= 20
