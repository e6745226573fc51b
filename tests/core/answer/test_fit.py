"""First screens of models that cannot do a task, beside one that can: on a study of the catalogue, by scripts."""

from __future__ import annotations

import asyncio
import itertools
import math
import re

import polars as pl
import pytest
from fakes import FakeModel, fake_catalogue, text_of

from prejudge.core.answer import answer_of
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.records import Generation, Likelihoods, TokenScores
from prejudge.core.contracts.sizes import State
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report.first import answer_markdown
from prejudge.core.scoring.score import score
from prejudge.core.store import Store

TURNS = itertools.cycle(("entailment", "contradiction", "neutral"))
REFUSAL = Generation(text="I'm sorry, but I can't help with that.", status="refused")


def echo(request, seen):
    sentence = re.search(r"Premise:? *(.+)", text_of(request), re.IGNORECASE)
    assert sentence is not None, text_of(request)
    return Generation(text=sentence[1], finish_reason="stop")


def garbage(request, seen):
    return Generation(text="@@ 7 7 7 zq zq", finish_reason="stop")


def fit(request, seen):
    return Generation(text=next(TURNS), finish_reason="stop")


def refuses_dark(request, seen):
    return REFUSAL if "dark" in text_of(request) else fit(request, seen)


MODELS = {
    "fit": fit,
    "echo": echo,
    "one label": lambda request, seen: Generation(text="contradiction", finish_reason="stop"),
    "cut off": lambda request, seen: Generation(text="Let me think about the two", finish_reason="length"),
    "empty": lambda request, seen: Generation(text="", finish_reason="stop"),
    "garbage": garbage,
    "refuses for dark": refuses_dark,
}


def scored(store, model, name="fake", asking="generate", per_cell=5, **run):
    """Return the scores of `bistereo-nli` of a model of a class."""
    catalogue = Catalogue.load(None)
    catalogue.plugins.offers["adapter"]["fake"] = Registered(Plugged("fake", model), "tests")
    catalogue.registry.models[name] = ModelEntry(adapter="fake", settings={"model": name})
    study = catalogue.study("bistereo-nli", {"subject": name}, {"asking": asking, "per_cell": per_cell})
    return score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions(**run))))


class AbleModel(FakeModel):
    """Could be asked by likelihood, too."""

    async def likelihood(self, request):
        raise NotImplementedError


@pytest.fixture(scope="module")
def screens(tmp_path_factory):
    """Return the answer to `bistereo-nli`, asked in words, of each model."""
    answers = {}
    with Store(tmp_path_factory.mktemp("fit") / "store.db") as store:
        for name, script in MODELS.items():
            FakeModel.script = script
            try:
                scores = scored(store, AbleModel, name, keep_going=True)
                answers[name] = (scores, answer_of(scores))
            finally:
                FakeModel.script = None
    return answers


UNFIT = {
    "echo": "repeat the question",
    "cut off": "reached their limit of tokens",
    "empty": "have no text",
    "garbage": "",
}


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_model_has_no_number_above_the_fold(screens, name):
    scores, answer = screens[name]
    assert [reply.state for reply in answer.replies] == [State.UNFIT]
    assert answer.rows == () and not scores.fitness[0].fit
    assert "100 %" in answer.replies[0].sentence and UNFIT[name] in answer.replies[0].sentence
    assert "percentage points" not in answer_markdown(answer) and "95 %" not in answer_markdown(answer)


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_model_is_told_the_way_that_works(screens, name):
    _, answer = screens[name]
    assert "--set asking=likelihood" in answer.mend
    assert ("--set max_tokens=96" in answer.mend) == (name == "cut off")


def test_one_label_is_said_before_any_estimate(screens):
    scores, answer = screens["one label"]
    assert scores.fitness[0].fit and scores.fitness[0].every.constant()["label"][0] == "contradiction"
    text = answer_markdown(answer)
    assert text.index("do not vary") < text.index("n = ")


def test_fit_model_has_numbers_and_no_complaint(screens):
    scores, answer = screens["fit"]
    assert answer.rows and answer.first == () and scores.fitness[0].every.answered == 1
    assert all(row.number.n for row in answer.rows)


def test_refusals_for_one_group_come_first_and_are_answers(screens):
    scores, answer = screens["refuses for dark"]
    fitness = scores.fitness[0]
    assert fitness.fit and fitness.groups["dark"].refused and not fitness.groups["fair"].refused
    assert "declines" in answer.first[0] and "100 %" in answer.first[0] and "dark" in answer.first[0]


def test_few_units_show_no_number(tmp_path):
    FakeModel.script = fit
    try:
        with Store(tmp_path / "store.db") as store:
            scores = scored(store, FakeModel, per_cell=1)
    finally:
        FakeModel.script = None
    answer = answer_of(scores)
    # 16 questions: 8 pairs of one question about fair and about dark skin, 2 to 4 of them in each finer group.
    pairs = scores.last.group_by("attribute", "noun", "template", "direction").agg(pl.col("skin").n_unique() == 2)
    assert pairs["skin"].sum() == 8
    finer = {str(e.group) for every in scores.estimates.values() for e in every if e.group and e.value is not None}
    assert finer and [row.estimate.group for row in answer.rows] == [{}]


def test_few_units_of_every_number_are_said(tmp_path):
    FakeModel.script = lambda request, seen: None
    try:
        with Store(tmp_path / "store.db") as store:
            catalogue = fake_catalogue()
            study = catalogue.study("count", {"subject": "fake"}, {"n": 40, "distinct": 7})
            scores = score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions())))
    finally:
        FakeModel.script = None
    answer = answer_of(scores)
    assert answer.rows == () and answer.replies[0].state is State.OPEN
    assert "7 distinct prompts" in answer.replies[0].sentence  # 40 answers to 7 prompts are 7 units


class ScoringModel(FakeModel):
    """Gives the labels a share of the probability, by turns."""

    share = 1.0
    turns = itertools.cycle(((0.6, 0.3, 0.1), (0.1, 0.6, 0.3), (0.3, 0.1, 0.6), (0.5, 0.1, 0.4)))

    async def likelihood_batch(self, requests):
        return [self._scored(next(self.turns)) for _ in requests]

    def _scored(self, weights):
        values = (math.log(self.share * weight) for weight in weights)
        return Likelihoods(scores=tuple(TokenScores(log_probability=value, count=1) for value in values))


@pytest.mark.parametrize(("share", "said"), [(0.03, ["The options hold 3.0 %"]), (0.9, [])])
def test_options_that_hold_little_of_the_probability_are_said_first(share, said, tmp_path, monkeypatch):
    monkeypatch.setattr(ScoringModel, "share", share)
    with Store(tmp_path / "store.db") as store:
        scores = scored(store, ScoringModel, asking="likelihood")
    assert [sentence[: len(begin)] for sentence, begin in zip(answer_of(scores).first, said, strict=True)] == said
    assert scores.fitness[-1].every.mass == pytest.approx(share)
