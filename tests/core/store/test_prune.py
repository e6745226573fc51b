"""Pruning a run removes what only it used, and nothing else."""

from __future__ import annotations

import sqlalchemy as sa
from fakes import FakeModel, ask

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, encode_response, identity_digest, request_key
from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.records import Generation
from prejudge.core.scoring.score import score
from prejudge.core.store import NewExchange, NewTrial, get_run, list_runs, statistics
from prejudge.core.store.checks import Checks
from prejudge.core.store.prune import PruneOptions, prune, vacuum, would_go
from prejudge.core.store.tables import StoreTable
from prejudge.testing import raises_code

EVERY_STORE = True
LONG = "a text that is repeated by many requests, and long enough to be stored once in the table of parts"


def remove(store, name, **options):
    return prune(store, get_run(store, name), PruneOptions(**options))


def parts(store):
    with store.engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(StoreTable.metadata.tables["part"]))


def left(store):
    counts = statistics(store)
    return {name: counts[name] for name in ("Exchange", "Run", "RunTrial", "Attempt", "Blob")}


def test_run_goes_with_all_that_only_it_used(run_study, store):
    name, _ = run_study(n=5)
    going = would_go(store, get_run(store, name), PruneOptions())
    assert going == remove(store, name) and (going.trials, going.exchanges) == (5, 5) and going.size > 500
    assert not any(left(store).values()) and statistics(store)["Model"] == 0


def test_looking_removes_nothing(run_study, store):
    name, _ = run_study(n=5)
    before = left(store)
    would_go(store, get_run(store, name), PruneOptions(unused=True))
    assert left(store) == before


def test_what_another_run_uses_stays(run_study, store, catalogue):
    small, _ = run_study(n=3)
    large, _ = run_study(n=5)
    before = score(catalogue, store, small).estimates
    assert remove(store, large).exchanges == 2 and statistics(store)["Model"] == 1
    assert left(store)["Exchange"] == 3 and score(catalogue, store, small).estimates == before


def test_attempts_that_led_to_an_answer_go_with_it(run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="") if request.attempt < 2 else None
    name, _ = run_study(n=2, max_attempts=4)
    assert left(store)["Exchange"] == 6 and remove(store, name).exchanges == 6


def test_attempts_that_led_to_another_runs_answer_stay(run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="") if request.attempt < 2 else None
    one, _ = run_study(n=2, max_attempts=2)
    other, _ = run_study(n=2, max_attempts=4)
    assert remove(store, one).exchanges == 0
    again, model = run_study(n=2, max_attempts=4)
    assert model.asked == []


def test_exchanges_no_run_uses_stay_unless_asked_for(run_study, store):
    identity = Identity(adapter="fake", version="1", model="m")
    request = encode({"type": "embed", "text": "left over"})
    key = request_key(identity_digest(identity), request)
    answer = encode_response(Generation(text="x"))
    store.add_exchanges([NewExchange(key, store.ensure_model(identity), "embed", request, answer, "ok", 0, 0, 0.0)])
    one, _ = run_study(n=2)
    other, _ = run_study(n=3)
    assert remove(store, other).exchanges == 1 and left(store)["Exchange"] == 3
    assert remove(store, one, unused=True).exchanges == 3


def test_images_go_with_the_last_exchange_that_names_them(run_study, store):
    kept = [store.keep(text, "image/png") for text in (b"one", b"both")]
    names = [run_study(n=2, words=(word,))[0] for word in "ab"]
    with store.engine.begin() as connection:
        for number, image in enumerate([kept[0], kept[1], kept[1]], start=1):
            text = f'{{"image":"{image}","type":"drawing"}}'
            connection.execute(sa.text("UPDATE exchange SET response = :r WHERE id = :i"), {"r": text, "i": number})
    assert remove(store, names[0]).images == 1 and store.blob(kept[1]) == b"both"
    assert remove(store, names[1]).images == 1 and left(store)["Blob"] == 0


def add_run(store, name, samples):
    """Record a run that asked one long text for these samples."""
    identity = Identity(adapter="fake", version="1", model="m")
    model, number = store.ensure_model(identity), store.begin_run(name, "s", b"{}")
    answer, rows = encode_response(Generation(text="x")), []
    for sample in samples:
        request = encode(ask(LONG, sample=sample))
        key = request_key(identity_digest(identity), request)
        rows.append(NewExchange(key, model, "generate", request, answer, "ok", 0, 0, 0.0))
    found = store.add_exchanges(rows)
    trials = enumerate(found.items())
    store.add_trials([NewTrial(number, "s", i, str(i), "{}", key, answer) for i, (key, answer) in trials])
    store.end_run(number, "finished", b"{}")


def test_parts_go_with_their_last_request(store):
    add_run(store, "one", [0, 1, 2])
    add_run(store, "other", [2, 3, 4])
    assert parts(store) == 1 and remove(store, "one")[2:5] == (2, 0, 0)
    assert not list(Checks(store).problems()) and remove(store, "other").parts == 1 and parts(store) == 0


def test_open_store_forgets_parts_that_went(store):
    add_run(store, "one", [0, 1])
    remove(store, "one")
    add_run(store, "two", [5])
    assert not list(Checks(store).problems())


def test_no_run_goes_while_one_is_running(run_study, store):
    name, _ = run_study(n=2)
    running = store.begin_run("other", "count", b"{}")
    with raises_code(UsageError, "run.running"):
        remove(store, name, killed=True)
    store.holds.forget()  # as if the process that works on it were killed
    with raises_code(UsageError, "run.running", "--killed"):
        remove(store, name)
    assert left(store)["Exchange"] == 2
    remove(store, name, killed=True)
    store.end_run(running, "interrupted", b"{}")
    remove(store, "other")
    assert list_runs(store) == []


def test_more_trials_go_than_one_look_up_finds(run_study, store, few_at_once):
    FakeModel.script = None
    run_study(n=20)
    own = 2 * few_at_once
    name, _ = run_study(n=own + 20)
    going = remove(store, name)
    vacuum(store)
    assert (going.trials, going.exchanges) == (own + 20, own) and left(store)["Exchange"] == 20
    assert not list(Checks(store).problems())
