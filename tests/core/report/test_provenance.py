"""What a report says of where its numbers come from, and the examples that stand behind them."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from fakes import FakeModel

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.catalogue.instrument import EveryOption
from prejudge.core.catalogue.study import Study
from prejudge.core.contracts.errors import UnknownNameError
from prejudge.core.contracts.estimates import Example
from prejudge.core.contracts.records import Drawing, Generate, Generation, Image, Likelihood, Message, Text
from prejudge.core.engine.manifest import Manifest, StageRecord, set_settings
from prejudge.core.report import Picture, ShownExample, render
from prejudge.core.report.card import model_card
from prejudge.core.report.examples import show_examples, show_images, show_pictures
from prejudge.core.report.output import build_content
from prejudge.core.report.provenance import chosen_words, cost_words
from prejudge.core.scoring.score import score
from prejudge.testing import raises_code

STUDY = Study(name="s", probe="p", options={}, metrics={}, roles={})


@pytest.fixture
def scores(run_study, catalogue, store):
    name, _ = run_study()
    scored = score(catalogue, store, name)
    keys = tuple(scored.last["key"].to_list()[:2])
    vars(scored)["examples"] = (Example("two", {}, keys),)
    return scored


def manifest(**costs):
    stages = {name: StageRecord(1, {"cost": cost}) for name, cost in costs.items()}
    return Manifest(run="r", study=STUDY, identities={}, stages=stages, options=EveryOption({}, {}))


def test_cost_is_added_up():
    assert cost_words(manifest(one=0.25, two=0.5)).startswith("0.7500 US dollars")


def test_unknown_cost_is_named():
    assert cost_words(manifest(one=0.25, two=None)).endswith("unknown for two")
    assert cost_words(manifest(one=None)).startswith("unknown")


def test_content_names_model_time_and_design(scores, store):
    content = build_content(scores, store)
    assert content.names == {"subject": "fake"}
    assert content.when.endswith("UTC")
    assert all(word in content.methods[0].split() for word in ("count:", "10", "subject", "(fake)", "generate."))


def test_methods_name_every_option_that_was_set(scores, store):
    study = msgspec.structs.replace(
        scores.manifest.study, options={"n": 10, "data": "/home/me/own.csv"}, metrics={"mean": {"level": 0.8}}
    )
    manifest = msgspec.structs.replace(scores.manifest, study=study, data={"/home/me/own.csv": "ab12"})
    methods = build_content(msgspec.structs.replace(scores, manifest=manifest), store).methods
    assert any("n = 10, data = own.csv, mean.level = 0.8" in words for words in methods)
    plain = msgspec.structs.replace(manifest, study=msgspec.structs.replace(study, options={}, metrics={"mean": {}}))
    assert chosen_words(plain) == ""


def test_report_and_card_of_a_run_that_was_scored_again_say_so_first(scores, store):
    manifest = msgspec.structs.replace(scores.manifest, remeasured={"mean.level": 0.8})
    again = msgspec.structs.replace(scores, manifest=manifest)
    said = "Scored again with mean.level = 0.8"
    assert build_content(again, store).warnings[0].startswith(said)
    assert model_card(again).split("## Model details")[0].count(said) == 1
    assert not build_content(scores, store).warnings


def test_settings_that_were_set_are_told_from_defaults():
    made = Simulated(SimulatedOptions(strength=2.0, refusal_rate=0.0, latency_seconds=1.0))
    assert set_settings(made) == {"strength": 2.0}


def test_models_of_one_digest_are_told_apart_in_the_head(scores, store):
    identity = Simulated(SimulatedOptions(strength=2.0)).identity
    manifest = msgspec.structs.replace(
        scores.manifest, identities={"subject": identity}, settings={"subject": {"strength": 2.0, "prompt": "x" * 500}}
    )
    page = render(build_content(msgspec.structs.replace(scores, manifest=manifest), store))
    head = page.split("<nav")[0]
    assert f"{identity.digest[:20]}\u2026; strength = 2.0, prompt = xxx" in head and "x" * 100 not in head


def test_provenance_has_pace_and_every_option(scores, store):
    found = build_content(scores, store).provenance
    assert found["pace by stage"]["count"]["rate"] == "no limit met"
    assert found["every option"]["probe"]["n"] == 10 and found["every option"]["metrics"] == {"mean": {}}
    assert found["answers by stage"]["count"]["asked"] == 10


def test_example_has_what_was_asked_and_said(scores, store):
    (shown,) = show_examples(scores.examples, store, scores.run.id)
    assert [label for label, _ in shown.texts] == ["user", "answer"] * 2
    assert shown.images == ()


def test_example_has_the_answer_of_its_own_run(scores, store, run_study):
    FakeModel.script = lambda request, seen: Generation(text="changed")
    run_study(mode="refresh")
    (shown,) = show_examples(scores.examples, store, scores.run.id)
    assert all("changed" not in text for label, text in shown.texts if label == "answer")


def test_examples_can_be_left_out(scores, store):
    content = build_content(scores, store, ("examples",))
    assert content.examples == ()
    assert "left out on request" in render(content)


def test_images_can_be_left_out(scores, store):
    content = build_content(scores, store, ("images",))
    assert len(content.examples) == 1 and not content.pictures
    assert "images were left out on request" in render(content)


def test_part_that_is_none_is_refused(scores, store):
    with raises_code(UnknownNameError, "unknown-part", "images"):
        build_content(scores, store, ("imgaes",))


def test_images_of_requests_and_answers_are_named():
    seen = (Message("user", (Text("look"), Image("a"), Image("b"))),)
    nothing = Drawing(image=None)
    assert show_images(Generate(messages=seen), nothing) == [("image shown", "a"), ("image shown", "b")]
    assert show_images(Likelihood(prompt=seen, continuations=("x",)), Drawing(image="c"))[-1] == ("image drawn", "c")
    assert show_images(Likelihood(prompt="words", continuations=("x",)), nothing) == []


def test_pictures_come_from_the_store(store):
    sha256 = store.keep(b"<svg/>", "image/png")
    lost = hashlib.sha256(b"lost").hexdigest()
    shown = ShownExample(Example("e", {}, ()), (), (("image shown", sha256), ("image drawn", lost)))
    found = show_pictures([shown, shown], store)
    assert found[sha256] == Picture(problem="not a PNG, JPEG, GIF or WebP image")
    assert "has no image" in found[lost].problem
