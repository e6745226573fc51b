"""Answers that join a batch in its midst are those they would be alone, whatever images the batch is about."""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("PIL")

from prejudge.adapters.hf.vlm import cache, shareable, writer
from prejudge.adapters.hf.vlm.adapter import HFVLM, HFVLMOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generate, Image, Message, Sampling, Text

from ...llava_files import QUESTIONS, make_llava, picture

PICTURES = [picture((shade * 20, 250 - shade * 20, shade * 90 % 256), (30 + shade, 40)) for shade in range(12)]
BLOBS = {hashlib.sha256(data).hexdigest(): data for data in PICTURES}


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vlm") / "tiny-llava"
    make_llava(folder)
    return folder


@pytest.fixture(autouse=True)
def abreast(monkeypatch):
    """Let a batch have as many images as on a GPU."""
    monkeypatch.setattr(writer, "ABREAST_CPU", writer.ABREAST)


def requests(count=40, *, most=3):
    """Return requests with no image, one or several, and answers of very different lengths."""
    draw, names = random.Random(4), [*BLOBS]
    return [
        Generate(
            messages=(
                Message("user", (*map(Image, draw.sample(names, draw.randint(0, most))), Text(draw.choice(QUESTIONS)))),
            ),
            sampling=Sampling(
                temperature=draw.choice((0.0, 1.0)),
                max_tokens=draw.choice((1, 2, 3, 5, 30)),
                stop=draw.choice(((), ("e",))),
            ),
            sample=number,
            top_logprobs=draw.choice((0, 2)),
        )
        for number in range(count)
    ]


class Model:
    """An adapter that is loaded once."""

    def __init__(self, folder: Any, **options: Any) -> None:
        self.adapter = HFVLM(HFVLMOptions(model=str(folder), device="cpu", threads=1, **options))
        self.adapter.services = Services(blobs=BLOBS.__getitem__)
        self.engine = self.adapter._ready().engine

    def ask(self, asked):
        return asyncio.run(self.adapter.answer(asked))


def watch(monkeypatch, most_rows=None):
    """Note of each pass its questions and the stems in memory; pretend that more questions do not fit."""
    passes, run = [], cache.Strip._run

    def noted(self, ids, seen, *given, **more):
        there = len({*seen[0].tolist(), *self._rows.tolist()})
        if most_rows is not None and there > most_rows:
            raise RuntimeError("CUDA out of memory")
        passes.append((there, len(self._stems)))
        return run(self, ids, seen, *given, **more)

    monkeypatch.setattr(cache.Strip, "_run", noted)
    return passes


def same(found, wanted):
    assert [(one.text, one.finish_reason, one.usage) for one in found] == [
        (one.text, one.finish_reason, one.usage) for one in wanted
    ]
    for one, other in zip(found, wanted, strict=True):
        for mine, theirs in zip(one.top_logprobs, other.top_logprobs, strict=True):
            assert [top.log_probability for top in mine] == pytest.approx(
                [top.log_probability for top in theirs], abs=1e-3
            )


@pytest.mark.parametrize("most", [1, writer.ABREAST_CPU, writer.ABREAST])
def test_answers_are_those_of_requests_alone(llava, monkeypatch, most):
    monkeypatch.setattr(writer, "ABREAST_CPU", most)
    model, asked = Model(llava, token_budget=200), requests()
    passes = watch(monkeypatch)
    found = model.ask(asked)
    assert max(stems for _, stems in passes) == most
    same(found, [model.ask([request])[0] for request in asked])


def test_free_places_are_taken_by_the_next(llava, monkeypatch):
    model, asked = Model(llava), requests()
    passes = watch(monkeypatch)
    found = model.ask(asked)
    refilled = len(passes)
    model.engine._writer.refills = False
    same(found, model.ask(asked))
    assert {stems for _, stems in passes[refilled:]} == {1}
    assert refilled < 0.5 * (len(passes) - refilled)


def test_repeats_of_a_question_are_encoded_once(llava, monkeypatch):
    model, opened, run = Model(llava), [], cache.Strip._run
    asked = [
        Generate(messages=(Message("user", (Image(name), Text(question))),), sampling=sampling, sample=number)
        for name in [*BLOBS][:2]
        for number in range(4)
        for question in QUESTIONS
        for sampling in (Sampling(temperature=2.0, max_tokens=9),)
    ]

    def noted(self, ids, *given, **more):
        if "logits_to_keep" in more:
            opened.append(len(ids))
        return run(self, ids, *given, **more)

    monkeypatch.setattr(cache.Strip, "_run", noted)
    found = model.ask(asked)
    together = sum(opened)
    opened.clear()
    alone = [model.ask([request])[0] for request in asked]
    assert sum(opened) == 4 * together
    same(found, alone)
    # Repeats differ from each other, so that none was copied.
    assert len({one.text for one in found}) > len(asked) / 2


def test_what_is_finished_leaves_the_memory(llava, monkeypatch):
    model, lengths = Model(llava), []
    run = cache.Strip._run

    def noted(self, *given, **more):
        logits = run(self, *given, **more)
        lengths.append(len(self._owners))
        assert all(keys.shape[2] == lengths[-1] for keys, _ in cache._layers(self._cache, lengths[-1]))
        return logits

    monkeypatch.setattr(cache.Strip, "_run", noted)
    model.ask(requests(80, most=1))
    assert max(lengths[len(lengths) // 2 :]) <= 1.5 * max(lengths[: len(lengths) // 2])


def test_finished_answers_survive_a_lack_of_memory(llava, monkeypatch):
    model, asked = Model(llava), requests()
    expected = model.ask(asked)
    passes = watch(monkeypatch, most_rows=5)
    before = model.engine.budget.tokens
    same(model.ask(asked), expected)
    # A budget that is halved until no more than five fit leaves four.
    assert max(rows for rows, _ in passes) == 4 and model.engine.budget.tokens < before


def test_request_that_never_fits_is_lost_alone(llava, monkeypatch):
    model, run = Model(llava), cache.Strip._run
    long = Generate(messages=(Message("user", (Image([*BLOBS][0]), Text("Who? " * 25))),))

    def small(self, ids, *given, **more):
        if len(ids) > 60 and len(self._rows) + len(set(given[0][0].tolist())) == 1:
            raise RuntimeError("CUDA out of memory")
        return run(self, ids, *given, **more)

    monkeypatch.setattr(cache.Strip, "_run", small)
    model.engine.budget.tokens = 60
    lost, *found = model.ask([long, *requests(6)])
    assert isinstance(lost, PermanentError) and lost.code == "request.memory"
    assert all(one.finish_reason for one in found)


def test_images_are_opened_when_their_turn_comes(llava, monkeypatch):
    from prejudge.adapters.hf.vlm import groups

    model, opened, ahead = Model(llava), [], []
    original, begin = groups.open_image, writer.VLMWriter._begin
    monkeypatch.setattr(groups, "open_image", lambda *given: opened.append(1) or original(*given))
    monkeypatch.setattr(
        writer.VLMWriter, "_begin", lambda self, *given: ahead.append(len(opened)) or begin(self, *given)
    )
    asked = [Generate(messages=(Message("user", (Image(name), Text("Who?"))),)) for name in BLOBS]
    model.ask(asked)
    assert ahead[0] == writer.ABREAST + 1 < len(opened) == len(BLOBS)


def test_model_that_fails_the_trial_of_joining_keeps_whole_batches(llava, monkeypatch):
    asked = requests()
    expected = Model(llava).ask(asked)
    place = cache.Strip._place

    def once(self, *given):
        if len(self._rows):
            raise RuntimeError("this model keeps a state")
        return place(self, *given)

    monkeypatch.setattr(cache.Strip, "_place", once)
    model = Model(llava)
    assert not model.engine._writer.refills and model.engine._shares
    same(model.ask(asked), expected)


def trial(folder):
    model = Model(folder)
    loaded = model.adapter._engine.loaded
    return model, shareable.try_sharing(loaded, "it")


def test_model_with_a_window_is_asked_one_by_one(tmp_path):
    make_llava(tmp_path / "it", family="mistral", sliding_window=8, num_key_value_heads=2)
    model, sharing = trial(tmp_path / "it")
    assert sharing == "none"
    asked = requests(6, most=1)
    same(model.ask(asked), [model.ask([request])[0] for request in asked])
