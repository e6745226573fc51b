"""A model that refuses, apologises and answers, or quotes an option in a refusal: what is asked again, and counted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re

import msgspec
import pytest

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import Identity, ModelAdapter
from prejudge.core.contracts.canonical import encode
from prejudge.core.contracts.records import Embedding, Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, exchanges_by_model
from prejudge.probes.indicasa.prompts import read_prompts

SORRY = "I'm sorry, but I can't assist with that."
QUOTED = "I'm sorry, but I can't write {\"predicted_sentence\": \"<the sentence with each '<MASK>' replaced>\"}."
SHARE = 0.15


class NoOptions(msgspec.Struct, frozen=True, kw_only=True):
    model: str = "odd"


class Odd(ModelAdapter):
    """15 % refusals, half of which quote the format; 15 % apologies before an answer; always one by `always`."""

    options = NoOptions
    always = None
    asked: list = []

    def __init__(self, options):
        self.identity = Identity(adapter="odd", version="1", model=options.model)

    async def generate(self, request):
        Odd.asked.append(request)
        draw = kind_of(request)
        said = re.search(r'sentence: "(.*)"\.', request.messages[0].parts[0].text)[1].replace("<MASK>", "word")
        answer = json.dumps({"predicted_sentence": said})
        text = {"refusal": SORRY, "quoted": QUOTED, "apology": f"{SORRY}\n\n{answer}"}.get(draw, answer)
        return Generation(text=text)

    async def embed(self, request):
        numbers = hashlib.sha256(request.text.encode()).digest()[:8]
        return Embedding(vector=tuple(float(number) for number in numbers))


def kind_of(request):
    if Odd.always:
        return Odd.always
    draw = int.from_bytes(hashlib.sha256(encode(request)).digest()[:4], "big") / 2**32
    return next((k for end, k in ((0.075, "refusal"), (SHARE, "quoted"), (2 * SHARE, "apology")) if draw < end), "ok")


@pytest.fixture
def catalogue():
    Odd.asked, Odd.always = [], None
    found = Catalogue.load(None)
    found.plugins.offers["adapter"]["odd"] = Registered(Plugged("odd", Odd), "tests")
    found.registry.models["odd"] = ModelEntry(adapter="odd", settings={})
    return found


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s.db") as opened:
        yield opened


def run(catalogue, store, **options):
    models = {"subject": "odd", "encoder": "odd"}
    study = catalogue.study("indicasa", models, {"indicasa.resamples": 99} | options)
    return asyncio.run(execute(catalogue, study, store, RunOptions()))


def values(scores, metric):
    return {e.group.get("category"): e.value for e in scores.estimates["indicasa"] if e.metric == metric}


def test_refusals_are_asked_again_and_their_rate_is_reported(catalogue, store):
    name = run(catalogue, store)
    first = [kind_of(request) for request in Odd.asked if request.attempt == 0]
    refused = sum(kind in ("refusal", "quoted") for kind in first)
    assert len(first) == 100 and refused >= 5 and first.count("apology") >= 5
    # Independently: a trial is asked until its answer is no genuine refusal.
    expected = 0
    for request in (one for one in Odd.asked if one.attempt == 0):
        for attempt in range(5):
            expected += 1
            if kind_of(msgspec.structs.replace(request, attempt=attempt)) in ("ok", "apology"):
                break
    assert len(Odd.asked) == expected
    asked = len(Odd.asked)
    scores = score(catalogue, store, name)
    assert len(Odd.asked) == asked, "`score` asks nothing"
    assert values(scores, "skip_ratio")[None] == 0
    rates = values(scores, "first_refusals")
    assert rates[None] == refused and set(rates) == {None, *(p.category for p in read_prompts(None, None).values)}
    assert sum(rates[name] for name in rates if name) / 5 == pytest.approx(refused)
    assert values(scores, "lenient_answers")[None] > 0
    kept = {(kind, status): count for _, kind, status, count in exchanges_by_model(store)}
    assert "refused" not in {status for _, status in kept}, "the store has the status that the provider signalled"


def test_model_that_only_refuses_is_asked_five_times_and_skipped(catalogue, store):
    Odd.always = "quoted"
    name = run(catalogue, store, samples=1)
    assert len(Odd.asked) == 5 * 20
    scores = score(catalogue, store, name)
    assert values(scores, "skip_ratio")[None] == 100 and values(scores, "first_refusals")[None] == 100
    assert scores.observations["completions"]["status"].to_list() == ["refused"] * 20
