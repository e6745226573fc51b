"""The nuisances that `simulated` plants: what is set by name comes back from the studies' own requests."""

from __future__ import annotations

import asyncio
import hashlib
import math

import numpy as np
import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.inferences import inference_in
from prejudge.adapters.simulated.noise import LARGEST, Leans, Noise
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.records import (
    Classify,
    Generate,
    Image,
    Likelihood,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
)
from prejudge.probes.bistereo.nli_asking import AskingOptions, ask, load_prompts
from prejudge.testing import raises_code

from .test_pictures import QUESTION, picture

SEEDS = range(300)
PLAIN = {"noise": 0.0, "spread": 0.0}


def answers(requests, seed=0, blobs=None, **settings):
    model = Simulated(SimulatedOptions(seed=seed, **{**PLAIN, **settings}))
    model.services = Services(blobs=(blobs or {}).__getitem__)
    return asyncio.run(model.answer(requests))


def pair(text):
    """Return the sentences of a pair; text has a slot for the descriptor."""
    head = text.partition("{}")[0]
    return [
        PseudoLikelihood(text=text.format(word), given=((len(head), len(head) + len(word)),))
        for word in ("tall", "short")
    ]


def gaps(texts, seed=0, **settings):
    """Return the log-odds of tall over short in each text."""
    found = answers([request for text in texts for request in pair(text)], seed, **settings)
    return np.array([a.log_probability - b.log_probability for a, b in zip(found[::2], found[1::2], strict=True)])


def entailed(words, seed=0, **settings):
    """Return the log-odds of entailment over contradiction for tall women less those for short ones."""
    requests = [
        Classify(text=f"I met an {word} woman.", pair=f"She was {height}.")
        for word in words
        for height in ("tall", "short")
    ]
    found = [
        math.log(a.probabilities["entailment"] / a.probabilities["contradiction"])
        for a in answers(requests, seed, **settings)
    ]
    return np.array(found[::2]) - np.array(found[1::2])


def components(table):
    """Return the variances of rows, of columns and of the rest of a table (rows, columns), by analysis of variance."""
    rows, columns = table.shape
    row, column = table.mean(axis=1), table.mean(axis=0)
    rest = table - row[:, None] - column + table.mean()
    within = (rest**2).sum() / ((rows - 1) * (columns - 1))
    return row.var(ddof=1) - within / columns, column.var(ddof=1) - within / rows, within


def test_variance_of_templates_words_and_items_is_what_is_set():
    words = ("attractive", "cute", "gorgeous", "sexy", "charming", "charismatic", "good-looking")
    found = []
    for seed in range(40):
        texts = [f"At {place} I saw one {word} {{}} woman." for place in range(20) for word in words]
        own = gaps(texts, seed, spread=0.6, word_spread=0.3, item_spread=0.4)
        found.append(components(own.reshape(20, len(words))))
    template, word, item = np.mean(found, axis=0)
    assert template == pytest.approx(0.36, rel=0.15)
    assert word == pytest.approx(0.09, rel=0.25)
    assert item == pytest.approx(0.16, rel=0.1)


def test_inference_leans_with_its_words_as_pairs_do():
    words = ("attractive", "ugly")
    found = np.array([entailed(words, seed, word_spread=0.5) for seed in SEEDS])
    # Both texts lean, each the other way.
    assert found.std(axis=0) == pytest.approx([1.0, 1.0], rel=0.12)
    assert np.corrcoef(found.T)[0, 1] == pytest.approx(0.0, abs=0.2)


def test_group_leans_to_one_end_in_every_analogy():
    def odds(group, seed):
        prompt = f"Man: ugly:: {group} man:"
        request = Likelihood(prompt=prompt, continuations=(" cute", " ugly"))
        (found,) = answers([request], seed, group_spread=0.8, desirable=("tall",), undesirable=("short", "fat"))
        return found.scores[0].log_probability - found.scores[1].log_probability

    found = np.array([[odds(group, seed) for group in ("short", "fat", "old")] for seed in SEEDS])
    # Beside `ugly` the continuation `cute` is neither positive nor negative, so one end leans by half.
    assert found[:, :2].std(axis=0) == pytest.approx([0.4, 0.4], rel=0.12)
    assert found[:, 2] == pytest.approx(0.0)


def test_given_term_leans_to_the_positive_option():
    def odds(term, seed):
        text = f"A {term} woman is\nOption 1: attractive\nOption 2: ugly"
        request = Generate(
            messages=(Message("user", (Text(text),)),), sampling=Sampling(temperature=1.0), top_logprobs=2
        )
        (found,) = answers([request], seed, group_spread=0.7)
        told = {token.token[-4:]: token.log_probability for token in found.top_logprobs[0]}
        return told["tive"] - told["ugly"]

    found = np.array([[odds(term, seed) for term in ("tall", "short")] for seed in SEEDS])
    assert found.std(axis=0) == pytest.approx([0.7, 0.7], rel=0.12)
    assert np.corrcoef(found.T)[0, 1] == pytest.approx(0.0, abs=0.2)


def test_filter_does_more_to_some_faces_and_options():
    faces = {
        hashlib.sha256(data).hexdigest(): data
        for n in range(300)
        for data in (picture(f"f{n}", 0.0), picture(f"f{n}", 1.0))
    }

    def moved(text, **settings):
        requests = [
            Likelihood(
                prompt=(Message("user", (Image(name), Text(QUESTION.format(text, "Rude", "a", "b")))),),
                continuations=("(a)", "(b)"),
            )
            for name in faces
        ]
        lists = {"positive": ("kind", "wise"), "negative": ("rude",)}
        found = answers(requests, blobs=faces, strength=1.0, **lists, **settings)
        odds = np.array([one.scores[0].log_probability - one.scores[1].log_probability for one in found])
        return odds[1::2] - odds[::2]

    found = moved("Kind", face_spread=0.5)
    assert found.mean() == pytest.approx(1.0, abs=0.1) and found.std() == pytest.approx(0.5, rel=0.12)
    assert moved("Wise", face_spread=0.5) == pytest.approx(found)
    options = [moved(text, word_spread=0.5) for text in ("Kind", "Wise")]
    assert [own.std() for own in options] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert abs(options[0][0] - options[1][0]) > 0.01


@pytest.mark.parametrize("prompt", load_prompts())
def test_pair_that_is_asked_about_is_found_in_every_prompt(prompt):
    request = ask("A dog runs.", "It sleeps.", AskingOptions(asking="likelihood", prompt=prompt))
    found = inference_in(request.prompt)
    assert found.item == "Premise: A dog runs.\nHypothesis: It sleeps." and "dog" not in found.prompt
    other = inference_in(ask("A cat.", "It eats.", AskingOptions(asking="likelihood", prompt=prompt)).prompt)
    assert other.prompt == found.prompt and other.item != found.item


def test_labels_lean_with_item_prompt_and_words():
    def scores(premise, prompt, seed, **settings):
        request = ask(premise, "It sleeps.", AskingOptions(asking="likelihood", prompt=prompt))
        (found,) = answers([request], seed, **settings)
        values = np.array([score.log_probability for score in found.scores])
        return values - values.mean()

    premises = ("A cute dog runs.", "A nasty dog runs.")
    for name in ("item_spread", "prompt_spread", "word_spread"):
        own = np.array(
            [
                [scores(premise, prompt, seed, **{name: 0.5}) for premise in premises for prompt in "14"]
                for seed in range(150)
            ]
        )
        assert own.std() == pytest.approx(0.5 * math.sqrt(2 / 3), rel=0.1)
        by_premise, by_prompt = (np.allclose(own[:, 0], own[:, other]) for other in (1, 2))
        assert (by_premise, by_prompt) == {
            "item_spread": (True, False),
            "prompt_spread": (False, True),
            "word_spread": (False, False),
        }[name]


def levels(count):
    return [f"level{n} common{n // 2}" for n in range(count)]


def test_leans_have_mean_0_and_variance_1_however_they_are_shared_and_unequal():
    for correlation, unequal in ((0.0, 0.0), (0.6, 0.0), (0.0, 0.5), (0.4, 0.5)):
        leans = Leans(Noise(3), correlation, unequal)
        found = np.array([leans.of("kind", level) for level in levels(6000)])
        assert found.mean() == pytest.approx(0.0, abs=0.06)
        assert found.var() == pytest.approx(1.0, abs=0.12)
        assert np.abs(found).max() <= LARGEST


def test_levels_correlate_by_the_words_they_share():
    leans = Leans(Noise(4), 0.6, 0.0)
    found = np.array([leans.of("kind", level) for level in levels(8000)])
    # Two levels share one of two words: 0.6 / 2.
    assert np.corrcoef(found[::2], found[1::2])[0, 1] == pytest.approx(0.3, abs=0.05)
    assert np.corrcoef(found[:-2:2], found[2::2])[0, 1] == pytest.approx(0.0, abs=0.05)


def test_unequal_leans_are_few_and_large():
    leans = Leans(Noise(5), 0.0, 0.5)
    found = np.array([leans.of("kind", level) for level in levels(20_000)])
    # The fourth moment of a normal number whose size is lognormal: 3 exp(4 u^2).
    assert (found**4).mean() == pytest.approx(3 * math.exp(1.0), rel=0.3)
    assert np.median(np.abs(found)) < 0.6


def test_nuisances_change_no_answer_where_they_are_0_and_stand_in_the_identity_where_not():
    plain = Simulated(SimulatedOptions())
    assert plain.identity.version == "5" and not {"item_spread", "unequal"} & {*plain.identity.settings}
    leaning = Simulated(SimulatedOptions(item_spread=0.2)).identity
    assert leaning.version == "7" and leaning.settings["item_spread"] == 0.2
    texts = [f"I saw a {{}} woman at {n}." for n in range(5)]
    assert gaps(texts, item_spread=0.0) == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["group_spread", "item_spread", "face_spread", "prompt_spread", "unequal"])
def test_amount_that_is_not_finite_is_refused(name):
    with raises_code(ModelLoadError, "model.option", name):
        Simulated(SimulatedOptions(**{name: float("inf")}))


def test_log_probabilities_stay_below_0_whatever_leans():
    everything = dict.fromkeys(("word_spread", "group_spread", "item_spread", "prompt_spread"), 3.0)
    found = answers(
        [one for n in range(200) for one in pair(f"I saw a cute {{}} woman at {n}.")], **everything, unequal=1.0
    )
    assert all(one.log_probability < 0 for one in found)
