"""A run that is taken up again keeps what it recorded before."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from fakes import CountOptions, CountProbe, FakeModel, MeanLength, text_of

from prejudge.core.catalogue.instrument import EveryOption
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.contracts import Options
from prejudge.core.contracts.errors import AuthenticationError, PermanentError, UsageError
from prejudge.core.contracts.estimates import Estimate
from prejudge.core.engine.manifest import Manifest, StageRecord, add_up, as_made
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import measure_frame, score
from prejudge.core.store import get_run
from prejudge.core.store.reading import model_names
from prejudge.testing import raises_code


@pytest.fixture
def slow_clock(monkeypatch):
    """Let a second pass at every look at the clock, so that a time that was written anew is another."""
    clock = iter(range(1_000, 100_000))
    monkeypatch.setattr("prejudge.core.store.store.time.time", lambda: float(next(clock)))


def resume(catalogue, store, name):
    study = catalogue.study("count", {"subject": "fake"}, {"n": 10})
    asyncio.run(execute(catalogue, study, store, RunOptions(name=name)))
    return get_run(store, name)


def counts(run):
    return msgspec.json.decode(run.manifest, type=Manifest).stages["count"].counts


def test_resuming_a_finished_run_changes_nothing(run_study, catalogue, store, slow_clock):
    name, _ = run_study(n=10)
    before = get_run(store, name)
    assert resume(catalogue, store, name) == before


def test_resuming_with_something_to_ask_moves_the_end(run_study, catalogue, store, slow_clock):
    name, _ = stopped(run_study, store)
    before = get_run(store, name)
    after = resume(catalogue, store, name)
    assert after.state == "finished" and after.started == before.started and after.finished > before.finished


def stopped(run_study, store):
    """Return the name of a run that a refused key stopped after some answers."""
    FakeModel.script = lambda request, seen: AuthenticationError("no") if text_of(request) == "q 9" else None
    with pytest.raises(AuthenticationError):
        run_study(n=10)
    FakeModel.script = None
    run = get_run(store, "latest")
    return run.name, counts(run)["asked"]


def test_what_was_asked_before_is_added_up(run_study, catalogue, store):
    name, asked = stopped(run_study, store)
    after = counts(resume(catalogue, store, name))
    assert 0 < asked < 10
    assert (after["asked"], after["cached"], after["trials"]) == (10, 0, 10)


def test_answers_of_other_runs_stay_cached(run_study, catalogue, store):
    run_study(n=4)
    name, _ = run_study(n=10)
    after = counts(resume(catalogue, store, name))
    assert (after["asked"], after["cached"]) == (6, 4)


def change(catalogue, **settings):
    """Change the entry of the model in the registry."""
    entry = catalogue.registry.models["fake"]
    catalogue.registry.models["fake"] = msgspec.structs.replace(entry, settings={**entry.settings, **settings})


def test_a_model_that_changed_since_is_refused_before_it_is_asked(run_study, catalogue, store):
    name, _ = stopped(run_study, store)
    before, made = get_run(store, name), len(FakeModel.made)
    change(catalogue, model="another")
    with raises_code(UsageError, "run.other-model") as caught:
        resume(catalogue, store, name)
    assert caught.value.fields == {"role": "subject", "changed": ("model",)}
    assert get_run(store, name) == before
    assert [(model.closed, model.asked) for model in FakeModel.made[made:]] == [(True, [])]
    change(catalogue, model="fake")
    assert resume(catalogue, store, name).state == "finished"


def test_a_complete_run_is_not_asked_anew_of_another_model(run_study, catalogue, store, slow_clock):
    name, _ = run_study(n=10)
    before, made = get_run(store, name), len(FakeModel.made)
    change(catalogue, model="another")
    assert resume(catalogue, store, name) == before
    assert not any(model.asked for model in FakeModel.made[made:])


def test_a_finished_run_that_lacks_answers_is_refused_too(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError("no") if text_of(request) == "q 9" else None
    name, _ = run_study(n=10)
    FakeModel.script = None
    change(catalogue, model="another")
    with raises_code(UsageError, "run.other-model"):
        resume(catalogue, store, name)
    change(catalogue, model="fake")
    assert counts(resume(catalogue, store, name))["failed"] == 0


def test_what_is_no_identity_may_change(run_study, catalogue, store):
    name, asked = stopped(run_study, store)
    change(catalogue, concurrency=7, batch=1)
    after = counts(resume(catalogue, store, name))
    assert 0 < asked < 10 and (after["asked"], after["cached"]) == (10, 0)


@pytest.mark.parametrize(
    ("before", "now", "cost"),
    [
        ((3, 0.5), (2, 0.25), 0.75),
        ((3, None), (2, 0.25), None),
        ((0, None), (2, 0.25), 0.25),
        ((3, 0.5), (0, None), 0.5),
    ],
)
def test_cost_and_tokens_are_unknown_if_a_part_of_them_is(before, now, cost):
    keys = ("cost", "input_tokens", "output_tokens")
    parts = [StageRecord(5, {"asked": asked} | dict.fromkeys(keys, count)) for asked, count in (before, now)]
    counts = add_up({"s": parts[0]}, "s", parts[1]).counts
    assert [counts[key] for key in keys] == [cost] * 3


@pytest.mark.parametrize(
    ("recorded", "chosen", "options"),
    [({"n": 4}, {}, {"n": 4}), ({"n": 4}, {"n": 6}, {"n": 6}), ({"gone": 1}, {}, {}), ({}, {}, {})],
)
def test_a_run_has_the_options_of_its_time(run_study, catalogue, store, recorded, chosen, options):
    name, _ = run_study(n=10)
    made = msgspec.json.decode(get_run(store, name).manifest, type=Manifest)
    study = catalogue.study("count", {"subject": "fake"}, chosen)
    made = msgspec.structs.replace(made, study=study, options=EveryOption(recorded, {}))
    assert as_made(catalogue, made).options == options


def measured(default):
    """Return a study's probe and metric of a version in which `n` and `scale` have this default."""

    class Counting(CountOptions, frozen=True, kw_only=True):
        n: int = default

    class Scale(Options, frozen=True, kw_only=True):
        scale: int = default

    class Probe(CountProbe):
        options = Counting

    class Scaled(MeanLength):
        options = Scale

        def compute(self, observations, options):
            return [Estimate(metric="scale", group={}, value=options.scale, n=observations.height)]

    return {"probe": Plugged("count", Probe), "metric": Plugged("mean", Scaled)}


def test_another_default_changes_no_run_that_recorded_its_options(catalogue, store):
    def install(default):
        for kind, thing in measured(default).items():
            catalogue.plugins.offers[kind][thing.name] = Registered(thing, "tests")

    install(10)
    study = catalogue.study("count", {"subject": "fake"}, {})
    FakeModel.script = lambda request, seen: AuthenticationError("no") if text_of(request) == "q 9" else None
    with pytest.raises(AuthenticationError):
        asyncio.run(execute(catalogue, study, store, RunOptions(name="r")))
    FakeModel.script = None
    install(4)
    asyncio.run(execute(catalogue, study, store, RunOptions(name="r")))
    assert counts(get_run(store, "r"))["asked"] == 10
    scores = score(catalogue, store, "r")
    loaded = measure_frame(catalogue, scores.manifest, scores.last)
    for found in (scores, loaded):
        assert [(e.value, e.n) for e in found.estimates["mean"]] == [(10, 10)]
    asyncio.run(execute(catalogue, study, store, RunOptions(name="new")))
    assert [(e.value, e.n) for e in score(catalogue, store, "new").estimates["mean"]] == [(4, 4)]


@pytest.fixture
def pinned(monkeypatch):
    """Let a digest pin the files of each model, so that its name is only for people."""
    make = FakeModel.__init__

    def made(self, options):
        make(self, options)
        self.identity = msgspec.structs.replace(self.identity, digest="sha256:0", pinned=True)

    monkeypatch.setattr(FakeModel, "__init__", made)


def test_renamed_weights_keep_their_answers(run_study, catalogue, store, pinned):
    run_study(n=10)
    change(catalogue, model="renamed")
    name, model = run_study(n=10)
    assert not model.asked and counts(get_run(store, name))["cached"] == 10
    manifest = msgspec.json.decode(get_run(store, name).manifest, type=Manifest)
    assert manifest.identities["subject"].model == "renamed"
    (names,) = model_names(store).values()
    assert names == ["fake", "renamed"]


def test_run_of_renamed_weights_is_resumed(run_study, catalogue, store, pinned):
    name, asked = stopped(run_study, store)
    change(catalogue, model="renamed")
    after = counts(resume(catalogue, store, name))
    assert 0 < asked < 10 and after["asked"] == 10
