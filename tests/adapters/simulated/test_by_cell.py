"""`simulated` by the cells of a declared design: every answer form, identity, and what is refused."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest

from prejudge import design, records
from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts.adapter import Services, refusal
from prejudge.core.contracts.canonical import identity_digest
from prejudge.core.contracts.errors import ModelLoadError, PermanentError
from prejudge.testing import raises_code

STRENGTH, WORDS = 1.4, tuple(f"word{at}" for at in range(400))
OPTIONS = "Which fits? (a) {word}-plus (b) {word}-minus"


def said(text: str) -> tuple[records.Message, ...]:
    return (records.Message("user", (records.Text(text),)),)


def stage(answer: design.AnswerForm, ask: Any, read: Any = None) -> Any:
    class Asked(design.DesignedStage):
        operation = records.Generate
        factors = ("word", "side", "better", "worse")
        outcomes = ("score",)
        design = plan(answer)

        def request(self, cell: design.Cell) -> Any:
            return ask(f"{cell['side']} {cell['word']}", cell)

        def further(self, cell: design.Cell) -> Any:
            return {"better": f"{cell['word']}-plus", "worse": f"{cell['word']}-minus"}

        def read(self, factors, response):
            return {"score": read(response)}

    return Asked()


def plan(answer: design.AnswerForm) -> design.Design:
    return design.Design((design.Sampled("word", WORDS), design.Group("side", ("x", "y"))), answer=answer)


def model_of(asked: Any, **settings: Any) -> Simulated:
    model = Simulated(SimulatedOptions(**{"planted_by": "cells", "strength": STRENGTH, **settings}))
    model.services = Services(cells=lambda: asked.located)
    return model


def responses(asked: Any, **settings: Any) -> dict[str, list[Any]]:
    """Return the responses to each side."""
    trials = list(asked.trials({}))
    answers = asyncio.run(model_of(asked, **settings).answer([trial.request for trial in trials]))
    sides: dict[str, list[Any]] = {"x": [], "y": []}
    for trial, answer in zip(trials, answers, strict=True):
        assert not isinstance(answer, Exception), answer
        sides[str(trial.factors["side"])].append(answer)
    return sides


def gap(numbers: dict[str, list[float]]) -> float:
    return float(np.mean(numbers["x"]) - np.mean(numbers["y"]))


def logit_gap(shares: dict[str, list[float]]) -> float:
    return gap({side: [math.log(p / (1 - p)) for p in values] for side, values in shares.items()})


def close(value: float) -> bool:
    """Return whether a gap is the strength, but for the noise of 400 twins."""
    return abs(value - STRENGTH) < 4 / math.sqrt(len(WORDS))


def test_a_continuation_and_a_sentence_carry_the_strength_in_their_log_probability() -> None:
    form = design.AnswerForm("continuation")
    sentence = stage(form, lambda text, _: records.PseudoLikelihood(text=text))
    scores = {side: [one.log_probability for one in found] for side, found in responses(sentence).items()}
    assert close(gap(scores)) and max(max(values) for values in scores.values()) < 0
    # The beginnings after the first continuation are the same for both.
    several = stage(form, lambda text, _: records.Likelihood(prompt="", continuations=(text, text[:3])))
    for at, wanted in ((0, STRENGTH), (1, 0.0)):
        scored = {side: [one.scores[at].log_probability for one in got] for side, got in responses(several).items()}
        assert abs(gap(scored) - wanted) < 0.2


def test_two_continuations_are_the_two_answers_by_the_texts_that_the_trial_holds() -> None:
    form = design.AnswerForm("continuation", answers=("better", "worse"), up=("better",))

    def ask(text: str, cell: design.Cell) -> records.Likelihood:
        return records.Likelihood(prompt=text, continuations=(f" {cell['word']}-minus", f" {cell['word']}-plus"))

    odds = {
        side: [one.scores[1].log_probability - one.scores[0].log_probability for one in found]
        for side, found in responses(stage(form, ask)).items()
    }
    assert close(gap(odds)) and gap(odds) > 0
    for answers in responses(stage(form, ask)).values():
        for answer in answers:
            assert sum(math.exp(score.log_probability) for score in answer.scores) == pytest.approx(1)


def test_a_label_of_a_class_and_the_answer_that_the_stage_reads_as_more_is_up() -> None:
    form = design.AnswerForm("label", outcome="score", answers=("bad", "good"))
    asked = stage(
        form, lambda text, _: records.Classify(text=text), lambda response: response.probabilities.get("good", 0.0)
    )
    found = responses(asked)
    assert close(logit_gap({side: [one.probabilities["good"] for one in got] for side, got in found.items()}))
    assert set(found["x"][0].probabilities) == {"bad", "good"}


@pytest.mark.parametrize("marked", [False, True])
def test_an_option_is_answered_as_the_prompt_lists_it(marked: bool) -> None:
    answers = ("a", "b") if marked else ("better", "worse")
    form = design.AnswerForm("label" if marked else "option", answers=answers, up=answers[:1])

    def ask(text: str, cell: design.Cell) -> records.Generate:
        return records.Generate(messages=said(f"{text}. {OPTIONS.format(word=cell['word'])}"))

    texts = {side: [one.text for one in got] for side, got in responses(stage(form, ask)).items()}
    assert all(text.startswith(("(a) word", "(b) word")) for text in texts["x"])
    shares = {side: [text.startswith("(a)") for text in got] for side, got in texts.items()}
    assert 0.2 < gap(shares) < 0.45


@pytest.mark.parametrize(("answers", "yes"), [((), "yes"), (("ja", "nein"), "ja")])
def test_yes_and_no_in_any_language(answers: tuple[str, ...], yes: str) -> None:
    form = design.AnswerForm("yes_no", answers=answers, up=answers[:1])
    asked = stage(form, lambda text, _: records.Generate(messages=said(text)))
    texts = {side: [one.text for one in got] for side, got in responses(asked).items()}
    assert {*texts["x"], *texts["y"]} == ({"yes", "no"} if not answers else set(answers))
    assert 0.2 < gap({side: [text == yes for text in got] for side, got in texts.items()}) < 0.45


def test_a_number_between_two_ends_and_without_any() -> None:
    def ask(text: str, _: design.Cell) -> records.Generate:
        return records.Generate(messages=said(text))

    ends = responses(stage(design.AnswerForm("number", answers=("0", "100")), ask))
    shares = {side: [float(one.text) / 100 for one in got] for side, got in ends.items()}
    assert close(logit_gap(shares))
    free = responses(stage(design.AnswerForm("number"), ask))
    assert close(gap({side: [float(one.text) for one in got] for side, got in free.items()}))


def test_the_same_question_has_the_same_answer_and_another_seed_is_another_model() -> None:
    asked = stage(design.AnswerForm("continuation"), lambda text, _: records.PseudoLikelihood(text=text))
    given = {"strength": 0.0, "preferences": (design.Preference(("word",), 1.0),)}
    assert responses(asked, **given) == responses(asked, **given)
    assert responses(asked, **given) != responses(asked, seed=1, **given)


def test_the_cells_belong_to_the_identity_and_a_model_by_words_has_none() -> None:
    form = design.AnswerForm("continuation")
    asked = stage(form, lambda text, _: records.PseudoLikelihood(text=text))
    other = stage(form, lambda text, _: records.PseudoLikelihood(text=f"{text}."))
    assert identity_digest(model_of(asked).identity) == identity_digest(model_of(asked).identity)
    assert model_of(asked).identity.settings["cells"] == asked.located.digest
    assert identity_digest(model_of(asked).identity) != identity_digest(model_of(other).identity)
    by_words = model_of(asked, planted_by="words")
    assert by_words.identity == Simulated(SimulatedOptions(strength=STRENGTH)).identity


def test_a_study_without_a_design_is_refused_and_so_are_preferences_without_cells() -> None:
    request = records.PseudoLikelihood(text="She is kind.")
    model = Simulated(SimulatedOptions(planted_by="cells"))
    error = refusal(model, request)
    assert error is not None and error.code == "model.cells"
    (answer,) = asyncio.run(model.answer([request]))
    assert isinstance(answer, PermanentError) and answer.code == "model.cells"
    with raises_code(ModelLoadError, "model.option"):
        Simulated(SimulatedOptions(preferences=(design.Preference(("word",), 1.0),)))


def test_what_is_not_of_the_design_has_an_answer_without_the_effect() -> None:
    asked = stage(design.AnswerForm("continuation"), lambda text, _: records.PseudoLikelihood(text=text))
    request = records.PseudoLikelihood(text="A tall and attractive woman.")
    strong, none = model_of(asked, strength=9.0), model_of(asked, strength=0.0)
    assert asyncio.run(strong.answer([request])) == asyncio.run(none.answer([request]))
