"""A sample that is asked both ways: compared, recorded, and no answer to its keys."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from itertools import product

import msgspec
import pytest
from fakes import FakeModel, text_of
from provider import Provider

from prejudge.core.contracts.errors import HaltedError, PendingError, PermanentError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.batch.options import BatchOptions
from prejudge.core.engine.batch.sentinel import EXACT, permuted
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import get_run
from prejudge.core.store.checks import Checks

OPTIONS = BatchOptions(poll_seconds=0.001, sentinel=20, only=True)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda *_: 0.0)


@pytest.fixture
def provider(monkeypatch):
    made = Provider()
    monkeypatch.setattr(FakeModel, "batch_api", made, raising=False)
    return made


@pytest.fixture
def run(catalogue, store, provider):
    def run(n=40, name=None, batch=OPTIONS, **more):
        study = catalogue.study("count", {"subject": "fake"}, {"n": n})
        return asyncio.run(execute(catalogue, study, store, RunOptions(name=name, batch=batch, **more)))

    return run


def sentinel(store, name="latest"):
    return manifest_of(get_run(store, name)).stages["count"].batch.sentinel


def asked():
    return [text for model in FakeModel.made for text in model.asked]


def test_sample_is_asked_by_single_calls_and_equal(run, store, catalogue):
    name = run()
    found = sentinel(store)
    assert (found.asked, found.compared, found.equal_texts, found.equal_outcomes) == (20, 20, 20, 20)
    assert found.greedy and not found.differs and found.distance == 0.0 and found.p is None
    assert len(set(asked())) == len(asked()) == 20
    scores = score(catalogue, store, name)
    assert not [line for line in warnings_of(scores) if "batches" in line]
    assert not any(Caveat.BATCH_DIFFERS in estimate.caveats for estimate in scores.estimates["mean"])


def test_sample_follows_from_the_keys_and_not_from_the_order(run):
    run()
    first = set(asked())
    numbers = sorted(int(text[2:]) for text in first)
    assert numbers != list(range(20)) and numbers[-1] > 25
    FakeModel.made.clear()


def test_sample_whose_batch_expired_is_compared_with_the_batch_that_answers(run, store, provider):
    provider.on_submit = lambda held: setattr(held, "end", "expired" if len(provider.batches) == 1 else "ended")
    provider.items = lambda name, request, tried: "expired" if tried == 0 else None
    FakeModel.script = lambda request, seen: Generation(text="other") if text_of(request) == "q 1" else None
    run(n=20)
    found = sentinel(store)
    assert len(provider.batches) == 2 and len(asked()) == 20
    assert (found.asked, found.compared, found.equal_texts, found.differs) == (20, 20, 19, True)


def test_run_by_single_calls_names_the_batches_that_its_answers_came_in(run, run_study, store, catalogue, provider):
    run(n=20)
    name, model = run_study(n=30)
    record = manifest_of(get_run(store, name)).stages["count"].batch
    assert len(model.asked) == 10
    assert (record.batches, record.answers, record.sentinel) == ({"batch-0": "ended"}, 20, None)
    assert any("other runs" in line for line in warnings_of(score(catalogue, store, name)))
    alone, _ = run_study(n=5, words=("other",))
    assert manifest_of(get_run(store, alone)).stages["count"].batch is None


def test_single_answers_are_no_answers_of_the_store(run, run_study, store, provider):
    FakeModel.script = lambda request, seen: Generation(text="alone")
    run()
    wanted = {"exchange": 40, "exchange WHERE response LIKE '%alone%'": 0, "batch_item WHERE single LIKE '%alone%'": 20}
    with store.engine.connect() as connection:
        for rows, count in wanted.items():
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {rows}").scalar_one() == count
    _, model = run_study(n=40)
    assert not model.calls and list(Checks(store).problems()) == []


def test_other_texts_at_temperature_0_differ_and_are_told(run, store, catalogue):
    FakeModel.script = lambda request, seen: Generation(text="other") if text_of(request) in ("q 1", "q 3") else None
    run(n=20)
    found = sentinel(store)
    assert found.differs and found.equal_texts == 18
    scores = score(catalogue, store, "latest")
    (line,) = [line for line in warnings_of(scores) if "batches" in line]
    assert "18 equal texts" in line
    assert all(Caveat.BATCH_DIFFERS in estimate.caveats for estimate in scores.estimates["mean"])


def test_stage_without_a_sample_says_so(run, store, catalogue):
    run(batch=msgspec.structs.replace(OPTIONS, sentinel=0))
    assert sentinel(store) is None and not asked()
    assert any("was not checked" in line for line in warnings_of(score(catalogue, store, "latest")))


def test_prompts_that_all_fail_are_not_handed_in(run, provider):
    FakeModel.script = lambda request, seen: PermanentError("no such field")
    with pytest.raises(HaltedError) as raised:
        run()
    assert raised.value.code == "run.all-failing" and "no such field" in str(raised.value)
    assert not provider.batches


def test_answers_that_cannot_be_read_are_not_handed_in(run, provider):
    FakeModel.script = lambda request, seen: Generation(text="")
    with pytest.raises(HaltedError) as raised:
        run()
    assert raised.value.code == "run.all-unreadable" and not provider.batches
    run(keep_going=True)
    assert len(provider.batches) == 1


def test_resumed_run_asks_its_sample_once(run, store, provider):
    provider.polls = 2
    for _ in range(2):
        with pytest.raises(PendingError):
            run(name="mine", batch=msgspec.structs.replace(OPTIONS, wait=False))
    run(name="mine")
    assert len(asked()) == 20 and sentinel(store, "mine").compared == 20


@pytest.mark.parametrize("said", ["", "other"])
def test_another_run_that_collects_the_batch_has_its_comparison(run, store, catalogue, provider, said):
    FakeModel.script = lambda request, seen: Generation(text=said) if said and text_of(request) == "q 1" else None
    provider.polls = 99
    with pytest.raises(PendingError):
        run(n=20, batch=msgspec.structs.replace(OPTIONS, wait=False))
    provider.polls = 1
    later = run(n=30, batch=OPTIONS)
    found = sentinel(store, later)
    assert len(asked()) == 30 and found.compared == found.asked == 30 and found.equal_texts == 30 - bool(said)
    scores = score(catalogue, store, later)
    assert all((Caveat.BATCH_DIFFERS in one.caveats) == bool(said) for one in scores.estimates["mean"])
    again = run(n=20)
    assert len(asked()) == 30 and sentinel(store, again).compared == 20


def test_answers_that_are_asked_anew_are_compared_anew(run, store, provider):
    run(n=20)
    FakeModel.script = lambda request, seen: Generation(text="other")
    again = run(n=20, mode="refresh", keep_going=True)
    found = sentinel(store, again)
    assert (found.asked, found.compared, found.equal_texts) == (20, 20, 0)


def expected(pairs):
    """Compute distance and p anew, with fractions and over all exchanges."""

    def distance(one, other):
        kinds = {*one, *other}
        return sum(abs(Fraction(one.count(k) - other.count(k), len(one))) for k in kinds) / 2

    found = distance(*map(list, zip(*pairs, strict=True)))
    worlds = [
        distance(*map(list, zip(*(p[::-1] if swap else p for p, swap in zip(pairs, swaps, strict=True)), strict=True)))
        for swaps in product((False, True), repeat=len(pairs))
    ]
    return float(found), float(Fraction(sum(w >= found for w in worlds), len(worlds)))


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b")] * 6 + [("a", "a")] * 2,
        [("a", "b"), ("b", "a"), ("a", "c"), ("c", "c"), ("b", "b")],
        [("a", "b"), ("a", "b"), ("b", "a"), ("c", "a"), ("a", "c"), ("a", "b"), ("c", "b")],
    ],
)
def test_p_is_that_of_all_exchanges(pairs):
    assert permuted(pairs) == pytest.approx(expected(pairs))


def test_many_pairs_are_drawn_and_agree_with_all_exchanges():
    pairs = [("a", "b")] * (EXACT + 1) + [("b", "a")] * 2
    distance, p = permuted(pairs)
    assert distance == pytest.approx(expected(pairs)[0]) and p == pytest.approx(expected(pairs)[1], abs=0.01)


def test_nothing_to_compare_has_no_p():
    assert permuted([]) == (None, None) and permuted([("a", "a")]) == (0.0, None)
