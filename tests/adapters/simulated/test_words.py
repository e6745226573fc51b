"""The bias that `simulated` plants in sentences with a BLANK: of known size, and found by the studies of such."""

from __future__ import annotations

import asyncio
from functools import cache

import polars as pl
import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.words import LISTS, read_blanks
from prejudge.core.catalogue.trust import load_registry
from prejudge.core.contracts import Estimate, Stage, Trial
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.records import Generate, Message, Text
from prejudge.metrics.subtle.metric import Subtle as SubtleMetric
from prejudge.metrics.subtle.metric import SubtleMetricOptions
from prejudge.probes.subtle.probe import Subtle, SubtleOptions
from prejudge.testing import raises_code

WORDS = str(load_registry().models["simulated-biased"].settings["blanks"])
MEASURE = SubtleMetricOptions(resamples=99)


@cache
def asked(**options: object) -> tuple[Stage, list[Trial]]:
    """Return a small design."""
    (stage,) = Subtle().stages(SubtleOptions(per_cell=6, **options))  # type: ignore[arg-type]
    return stage, list(stage.trials({}))


def measured(strength: float, seed: int = 0, **options: object) -> dict[str, Estimate]:
    """Return the estimates of the whole study on a model of this planted strength."""
    stage, trials = asked(**options)
    model = Simulated(SimulatedOptions(strength=strength, seed=seed, blanks=WORDS))
    answers = asyncio.run(model.answer([trial.request for trial in trials]))
    rows = [t.factors | stage.read(t.factors, a) | {"status": "ok"} for t, a in zip(trials, answers, strict=True)]  # type: ignore[arg-type, operator]
    found = SubtleMetric().compute(pl.DataFrame(rows, infer_schema_length=None), MEASURE)
    return {e.metric: e for e in found if not e.group}


@pytest.mark.parametrize("direction", ["sai", "asa"])
def test_every_word_of_the_studies_is_known(direction):
    lists = {word.lower(): name for name, words in read_blanks(WORDS).items() for word in words}
    given, chosen = (LISTS[:2], LISTS[2:]) if direction == "sai" else (LISTS[2:], LISTS[:2])
    (stage,) = Subtle().stages(SubtleOptions(direction=direction))
    for trial in stage.trials({}):
        f = trial.factors
        assert lists[str(f["term"]).lower()] == dict(zip(("positive", "negative"), given, strict=True))[str(f["given"])]
        assert (lists[str(f["positive"]).lower()], lists[str(f["negative"]).lower()]) == chosen
        assert str(f["neutral"]).lower() not in lists


@pytest.mark.parametrize("asking", ["generate", "likelihood"])
@pytest.mark.parametrize("direction", ["sai", "asa"])
def test_planted_association_is_found_and_turns_with_its_sign(direction, asking):
    for strength in (1.5, -1.5):
        found = measured(strength, direction=direction, asking=asking)["delta_PL"]
        assert found.value / strength > 15 and found.p_adjusted <= 0.05


def test_nothing_planted_is_found_no_oftener_than_the_test_allows():
    # At 5 % of 10 models, 3 or more have a chance of 1.2 %.
    p = [measured(0.0, seed)["delta_PL"].p_adjusted for seed in range(10)]
    assert sum(one <= 0.05 for one in p) <= 2


def test_sentences_without_a_blank_are_answered_as_before():
    with_words, without = (Simulated(SimulatedOptions(strength=1.0, blanks=blanks)) for blanks in (WORDS, None))
    request = Generate(messages=(Message("user", (Text("A tall woman is\nOption 1: wise\nOption 2: stupid"),)),))
    assert asyncio.run(with_words.answer([request])) == asyncio.run(without.answer([request]))
    assert with_words.identity.digest != without.identity.digest


@pytest.mark.parametrize("text", ["", "[a]\nneutral = ['b']\n", "[a]\nattributes = [['b']]\n", "a = 1\n", "["])
def test_file_without_pairs_is_refused(tmp_path, text):
    path = tmp_path / "words.toml"
    path.write_text(text, "utf-8")
    with raises_code(ModelLoadError, "model.option", "blanks"):
        Simulated(SimulatedOptions(blanks=str(path)))
