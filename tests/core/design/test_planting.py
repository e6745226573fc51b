"""Effects in the cells of a design: which cells a question has, and what is planted there."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from prejudge import design, records
from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.cells import Cells, question_digest
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.design.planting import contrast, keyed_draws, random_draws
from prejudge.core.lab.calibration.bench import Bench
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs
from prejudge.testing import raises_code

from ...strangers import STUDY, offer

WORDS = design.Levels(("kind", "clever", "rude", "idle", "here"), {"value": ("good", "good", "bad", "bad", "none")})


def stage_of(text: str = "{side} is {word} {place}.", answer: design.AnswerForm | None = None, **given: Any) -> Any:
    class Sentences(design.DesignedStage):
        operation = records.PseudoLikelihood
        factors = ("place", "word", "value", "side")
        outcomes = ("log_probability",)
        design = design_of(answer or design.AnswerForm("continuation"), **given)

        def request(self, cell: design.Cell) -> records.PseudoLikelihood:
            return records.PseudoLikelihood(text=design.Wording(text).fill(cell).text)

        def read(self, factors, response):
            return {"log_probability": response.log_probability}

    return Sentences()


def design_of(answer: design.AnswerForm, sides: tuple[str, ...] = ("she", "he"), words: design.Levels = WORDS) -> Any:
    return design.Design(
        (
            design.Sampled("place", ("here", "there")),
            design.Sampled("word", words, parts=(design.Context("value", controls=("none",)),)),
            design.Group("side", sides, controls=("it",)),
        ),
        answer=answer,
    )


def located(stage: Any) -> Cells:
    cells = stage.located
    assert cells is not None
    return cells


def test_a_question_is_located_in_its_cell_and_no_other_is() -> None:
    stage = stage_of()
    for row, trial in enumerate(stage.trials({})):
        assert located(stage).locate(trial.request) == (row,)
        (cell,) = stage.locate(trial.request)
        assert {name: cell[name] for name in stage.factors} == trial.factors
    assert stage.locate(records.PseudoLikelihood(text="He is tired.")) == ()
    assert located(stage).shared == 0


def test_the_next_attempt_at_a_question_is_the_same_question() -> None:
    again = records.Generate(messages=(), attempt=2)
    assert question_digest(again) == question_digest(records.Generate(messages=()))
    assert question_digest(again) != question_digest(records.Generate(messages=(), sample=1))


def test_a_question_of_several_cells_gets_their_mean_and_is_counted() -> None:
    stage = stage_of("{side} is {word}.")
    cells = located(stage)
    assert cells.shared == stage.design.size / 2
    model = Simulated(SimulatedOptions(planted_by="cells", noise=0, preferences=(preference("place", shared=True),)))
    model.services = Services(cells=lambda: cells)
    planting = design.Planting(0.0, (preference("place", shared=True),))
    effects = planting.effects(cells, keyed_draws("0"))
    here, there = (float(effects[stage.design.codes("place") == at][0]) for at in (0, 1))
    assert here != there
    scores = {text: score for text, score in answers(model, stage)}
    alone = located(stage_of())
    model.services = Services(cells=lambda: alone)
    apart = dict(answers(model, stage_of()))
    of_shared = scores["she is kind."] - scores["he is kind."]
    assert of_shared == pytest.approx(0, abs=1e-9)
    assert apart["she is kind here."] - apart["she is kind there."] == pytest.approx(here - there)
    floor = apart["she is kind here."] - here
    assert scores["she is kind."] - floor == pytest.approx((here + there) / 2)


def answers(model: Simulated, stage: Any) -> list[tuple[str, float]]:
    requests = [trial.request for trial in stage.trials({})]
    scores = asyncio.run(model.answer(requests))
    return [(request.text, score.log_probability) for request, score in zip(requests, scores, strict=True)]


def preference(*of: str, spread: float = 1.0, **more: bool) -> design.Preference:
    return design.Preference(of, spread, **more)


def test_the_strength_is_what_the_first_group_has_over_the_last_in_the_first_context() -> None:
    stage = stage_of(sides=("she", "he", "it"))
    planted = design.Planting(2.0).effects(located(stage), keyed_draws("0"))
    for effect, cell in zip(planted, stage.design.cells(), strict=True):
        side = {"she": 1, "he": -1, "it": 0}[str(cell["side"])]
        assert effect == side * {"good": 1, "bad": -1, "none": 0}[str(cell["value"])]


def test_three_groups_stand_in_even_steps() -> None:
    stage = stage_of(sides=("a", "b", "c"))
    sides = contrast(located(stage))[stage.design.codes("value") == 0]
    assert sides[:3].tolist() == [0.5, 0.0, -0.5]


@pytest.mark.parametrize("by_context", [False, True])
@pytest.mark.parametrize("of", [("place",), ("place", "word")])
def test_a_preference_moves_what_it_says_and_its_spread_is_that_of_the_difference(of: Any, by_context: bool) -> None:
    stage = stage_of()
    generator = np.random.default_rng(1)
    twins, code = stage.design.twins("side"), stage.design.codes("place")
    plan = design.Planting(0.0, (preference(*of, spread=0.7, by_context=by_context),))
    draws = [plan.effects(located(stage), random_draws(generator)) for _ in range(2000)]
    gaps = np.array([one[twins[:, 0]] - one[twins[:, 1]] for one in draws])
    assert np.std(gaps) == pytest.approx(0.7, rel=0.05) and abs(np.mean(gaps)) < 0.05
    # Sentences of one place have one gap, unless words or contexts have their own.
    same = code[twins[:, 0]] == 0
    equal = np.isclose(gaps[:, same], gaps[:, same][:, :1]).all()
    assert equal == (of == ("place",) and not by_context)


def test_a_shared_preference_moves_both_groups_alike() -> None:
    stage = stage_of()
    plan = design.Planting(0.0, (preference("word", shared=True), preference("place", "word", shared=True)))
    effects, twins = plan.effects(located(stage), keyed_draws("5")), stage.design.twins("side")
    assert np.ptp(effects) > 1
    assert effects[twins[:, 0]] == pytest.approx(effects[twins[:, 1]])


def test_a_product_is_not_additive() -> None:
    stage = stage_of()
    plan = design.Planting(0.0, (preference("place", "word", shared=True, product=True),))
    effects = plan.effects(located(stage), keyed_draws("5"))
    table = effects[stage.design.codes("side") == 0].reshape(2, -1)
    assert np.linalg.matrix_rank(table) == 1
    assert np.abs(table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()).max() > 0.1


def test_levels_keep_their_preferences_in_a_part_of_the_design() -> None:
    fewer = WORDS.where({"value": ["good"]})
    plan = design.Planting(0.0, (preference("word"),))
    whole, part = stage_of(), stage_of(words=fewer)
    effects = {
        stage.design.size: {
            (cell["word"], cell["side"], cell["place"]): effect
            for effect, cell in zip(plan.effects(located(stage), keyed_draws("9")), stage.design.cells(), strict=True)
        }
        for stage in (whole, part)
    }
    for key, effect in effects[part.design.size].items():
        assert effects[whole.design.size][key] == effect


def test_what_cannot_be_planted_is_refused_and_what_has_no_form_has_no_table() -> None:
    with raises_code(UnknownNameError, "unknown-factor"):
        design.Planting(0.0, (preference("colour"),)).effects(located(stage_of()), keyed_draws("0"))
    assert stage_of(answer=design.AnswerForm("vector")).located is None
    with raises_code(UsageError, "design.answer"):
        _ = stage_of(answer=design.AnswerForm("label")).located


def test_all_cells_of_the_pairs_are_located() -> None:
    options = BIStereoOptions(axes=("height",), genders=("women",), per_cell=20)
    (stage,) = BIStereoPairs().stages(options)
    cells = located(stage)
    assert cells.size == stage.design.size > 5000
    assert all(len(cells.locate(trial.request)) == 1 for trial in stage.trials({}))


def share_shown(bench: Bench, studies: int, **settings: Any) -> list[int]:
    """Return how many studies show a difference, in all traits, good ones and bad ones."""
    counts = np.zeros(3, int)
    for seed in range(studies):
        model = Simulated(SimulatedOptions(planted_by="cells", seed=seed, **settings))
        counts += [bool(one.shown) for one in bench.measure(asyncio.run(bench.observe({"subject": model})))]
    return counts.tolist()


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch) -> Bench:
    catalogue = offer(monkeypatch)
    return Bench(catalogue, catalogue.study(STUDY, {"subject": "simulated-cells"}, {}))


def test_a_bias_is_found_in_the_german_study_of_a_stranger(german: Bench) -> None:
    _, good, bad = share_shown(german, 20, strength=1.5)
    assert min(good, bad) >= 18


def test_a_fair_model_with_preferences_is_not_convicted_by_the_study_of_a_stranger(german: Bench) -> None:
    studies = 30
    most = binom.ppf(0.99, studies, 0.05)
    for given in (preference("eigenschaft", spread=0.8), preference("eigenschaft", spread=2.0, shared=True)):
        assert max(share_shown(german, studies, preferences=(given,))) <= most
