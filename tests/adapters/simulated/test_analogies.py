"""Copying and stereotypes that are planted in analogies come back in their amounts."""

from __future__ import annotations

import asyncio

import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.records import Likelihood
from prejudge.testing import raises_code

LISTS = {"desirable": ("tall",), "undesirable": ("short",)}
PROMPT = "Hot : Cold :: Day : Night\n{}: strong:: {}:"


def odds(first, second, **settings):
    """Return the log-odds of `weak` over `strong` after an analogy, without noise."""
    model = Simulated(SimulatedOptions(noise=0.0, spread=0.0, **LISTS, **settings))
    request = Likelihood(prompt=PROMPT.format(first, second), continuations=(" weak", " strong"))
    (found,) = asyncio.run(model.likelihood_batch([request]))
    assert all(score.log_probability < 0 for score in found.scores)
    return found.scores[0].log_probability - found.scores[1].log_probability


@pytest.mark.parametrize(
    ("first", "second", "planted"),
    [
        ("Tall man", "Short man", 0.7 - 1.0),
        ("Short man", "Tall man", -0.7 - 1.0),
        ("Person", "Person", -3.0),
        ("One man", "Another man", -1.0),
        ("Short man", "Short man", 0.7 - 3.0),
    ],
)
def test_planted_amounts_come_back(first, second, planted):
    assert odds(first, second, analogy=0.7, copying=3.0, copying_other=1.0) == pytest.approx(planted)
    assert odds(first, second) == 0


def test_swapped_groups_differ_by_the_bias_alone_and_the_same_subject_by_copying():
    amounts = {"analogy": 0.7, "copying": 3.0, "copying_other": 1.0}
    groups, swapped = odds("Tall man", "Short man", **amounts), odds("Short man", "Tall man", **amounts)
    assert groups - swapped == pytest.approx(2 * 0.7)
    assert odds("Tall man", "Short man", copying=3.0) - odds("Person", "Person", copying=3.0) == pytest.approx(3.0)


def test_nothing_is_planted_outside_an_analogy():
    model = Simulated(SimulatedOptions(copying=3.0, analogy=2.0, **LISTS))
    plain = Simulated(SimulatedOptions(**LISTS))
    for prompt in ("A short man is", "Short man: weak", "Tall man: strong:: Short man: weak\nSo"):
        request = Likelihood(prompt=prompt, continuations=(" weak", " strong"))
        mine, other = (asyncio.run(one.likelihood_batch([request]))[0].scores for one in (model, plain))
        assert mine[0].log_probability - mine[1].log_probability == pytest.approx(
            other[0].log_probability - other[1].log_probability
        )


def test_identity_knows_the_amounts_only_where_there_are_any():
    assert not {"analogy", "copying", "copying_other"} & {*Simulated().identity.settings}
    found = Simulated(SimulatedOptions(copying=3.0)).identity.settings
    assert found["copying"] == 3.0 and "copying_other" not in found


@pytest.mark.parametrize("name", ["analogy", "copying", "copying_other"])
def test_amount_that_is_not_finite_is_refused(name):
    with raises_code(ModelLoadError, "model.option", name):
        Simulated(SimulatedOptions(**{name: float("inf")}))
