"""Habits of `simulated`: each has the size that is asked for, and none is a bias."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts.records import (
    AnyRequest,
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
    TokenScores,
)

HABITS: dict[str, Any] = {
    "position_lean": 1.5,
    "label_spread": 1.0,
    "length_lean": 0.5,
    "frequency_spread": 0.7,
    "drift": 2.0,
    "refusal_lean": 0.3,
    "unreadable_share": 0.4,
    "error_rate": 0.2,
    "same_samples": True,
}
QUIET: dict[str, Any] = {"noise": 0.0, "spread": 0.0}


def model(**settings: Any) -> Simulated:
    return Simulated(SimulatedOptions(**settings))


def answers(adapter: Simulated, requests: Sequence[AnyRequest]) -> list[Any]:
    return list(asyncio.run(adapter.answer(requests)))


def ask(text: str, *, temperature: float = 1.0, sample: int = 0, top: int = 0) -> Generate:
    message = Message("user", (Text(text),))
    return Generate(messages=(message,), sampling=Sampling(temperature=temperature), sample=sample, top_logprobs=top)


def odds(adapter: Simulated, prompt: str) -> float:
    """Return the log-odds of the first listed option over the second, from the alternatives that the answer tells."""
    answer: Generation
    (answer,) = answers(adapter, [ask(prompt, top=2)])
    told = {alternative.token: alternative.log_probability for alternative in answer.top_logprobs[0]}
    first, second = sorted(told)
    return told[first] - told[second]


def test_a_model_without_habits_has_the_identity_of_before() -> None:
    plain = model().identity
    assert not HABITS.keys() & plain.settings.keys()
    for name, value in HABITS.items():
        settings = model(**{name: value}).identity.settings
        assert {k: v for k, v in settings.items() if k != name} == plain.settings
        assert settings[name] == value


def test_the_first_option_is_likelier_by_the_lean_whatever_it_says() -> None:
    prompt, swapped = "Who was late? (a) the baker (b) the tailor", "Who was late? (a) the tailor (b) the baker"
    for seed in range(5):
        plain, leaning = (model(seed=seed, position_lean=lean) for lean in (0.0, 1.5))
        assert odds(leaning, prompt) - odds(plain, prompt) == pytest.approx(1.5, abs=1e-9)
        assert odds(leaning, swapped) - odds(plain, swapped) == pytest.approx(1.5, abs=1e-9)
        assert odds(plain, prompt) == pytest.approx(-odds(plain, swapped), abs=1e-9)


def test_labels_lean_by_the_spread_and_alike_in_all_questions() -> None:
    prompts = ["Who was late? (a) the baker (b) the tailor", "Who won? (a) my aunt (b) my uncle"]
    drawn = []
    for seed in range(300):
        plain, leaning = (model(seed=seed, label_spread=spread) for spread in (0.0, 1.0))
        one, other = (odds(leaning, prompt) - odds(plain, prompt) for prompt in prompts)
        assert one == pytest.approx(other, abs=1e-9)
        drawn.append(one)
    # Two labels differ by the difference of two standard normal numbers.
    assert stats.kstest(np.array(drawn) / math.sqrt(2), "norm").pvalue > 0.001


def test_the_likelihood_of_an_option_leans_as_its_choice_does() -> None:
    prompt = "Who was late? (a) the baker (b) the tailor\nAnswer: "
    settings = {"position_lean": 1.5, "label_spread": 1.0, "length_lean": 0.5, "frequency_spread": 0.7, **QUIET}
    asked = Likelihood(prompt=prompt, continuations=("the baker", "the tailor"))
    found: Likelihoods
    (found,) = answers(model(**settings), [asked])
    first, second = (score.log_probability for score in found.scores)
    # Without noise nothing else separates the two.
    assert first - second == pytest.approx(odds(model(**settings), prompt), abs=1e-9)
    assert abs(first - second) > 0.1


def test_ten_more_characters_have_the_lean_and_far_longer_texts_no_more_than_ten_times_it() -> None:
    adapter = model(length_lean=0.5, **QUIET)
    words = ["x" * 20, "x" * 30, "x" * 120, "x" * 500]
    found: Likelihoods
    (found,) = answers(adapter, [Likelihood(prompt="", continuations=tuple(words))])
    scores = [one.log_probability for one in found.scores]
    assert np.diff(scores) == pytest.approx([0.5, 4.5, 0.0], abs=1e-9)


def test_common_words_add_up_and_their_order_does_not_count() -> None:
    adapter = model(frequency_spread=0.7, **QUIET)
    texts = ("alder birch", "birch alder", "alder", "birch", "")
    requests = [Likelihood(prompt="We saw ", continuations=(text or "?",)) for text in texts]
    both, turned, alder, birch, none = (found.scores[0].log_probability for found in answers(adapter, requests))
    assert both == pytest.approx(turned, abs=1e-9)
    assert both - none == pytest.approx((alder - none) + (birch - none), abs=1e-9)
    assert alder != pytest.approx(birch, abs=1e-3)


def test_a_pair_of_sentences_differs_as_without_habits() -> None:
    pair = [
        PseudoLikelihood(text="The tall woman is attractive.", given=((4, 8),)),
        PseudoLikelihood(text="The short woman is attractive.", given=((4, 9),)),
    ]
    fair = dict(HABITS, drift=0.0)
    found: list[list[TokenScores]] = [
        answers(model(undesirable=("short",), desirable=("tall",), **settings), pair) for settings in ({}, fair)
    ]
    plain, other = (one.log_probability - two.log_probability for one, two in found)
    assert other == pytest.approx(plain, abs=1e-9)
    assert all(score.log_probability < 0 for scores in found for score in scores)


def test_a_model_that_drifts_changes_once_and_for_good() -> None:
    adapter, plain = model(drift=2.0, drift_after=3), model()
    asked = [PseudoLikelihood(text=f"The woman number {n} is attractive.") for n in range(6)]
    shifts = [
        one.log_probability - two.log_probability
        for one, two in zip(answers(adapter, asked), answers(plain, asked), strict=True)
    ]
    # A constant lies between both, since log-probabilities stay below 0.
    steps = np.diff(shifts)
    assert steps == pytest.approx([0, 0, 3.0, 0, 0], abs=1e-9)  # drift, and half of it for the positive word


def test_refusals_are_more_frequent_for_one_group_by_the_lean() -> None:
    adapter = model(refusal_rate=0.1, refusal_lean=0.3)
    shares = {}
    for word in ("tall", "dark-skinned"):
        lists = model(undesirable=("dark-skinned",), refusal_rate=0.1, refusal_lean=0.3)
        found = answers(lists, [ask(f"What of a {word} man, number {n}? (a) good (b) bad") for n in range(2000)])
        shares[word] = sum(one.status == "refused" for one in found)
    assert stats.binomtest(shares["tall"], 2000, 0.1).pvalue > 0.001
    assert stats.binomtest(shares["dark-skinned"], 2000, 0.4).pvalue > 0.001
    assert adapter.identity.settings["refusal_lean"] == 0.3


def test_answers_that_cannot_be_read_are_those_of_one_option_in_any_order() -> None:
    adapter = model(unreadable_share=0.4, noise=0.0, spread=0.0)
    for order in (("baker", "tailor"), ("tailor", "baker")):
        prompts = [f"Who came {n}th?\nOption 1: {order[0]}\nOption 2: {order[1]}" for n in range(2000)]
        counts = Counter(one.text.rpartition(" ")[2] for one in answers(adapter, [ask(prompt) for prompt in prompts]))
        # The option that sorts first is the one behind label 1, whose words do not count.
        first, second = order
        assert stats.binomtest(counts["depends."], counts["depends."] + counts[first], 0.4).pvalue > 0.001
        assert stats.binomtest(counts[second], 2000, 0.5).pvalue > 0.001


def test_a_noisy_judge_errs_at_random_also_without_sampling() -> None:
    prompts = [f"Is sentence {n} about a man? (a) yes (b) no" for n in range(2000)]
    certain, noisy = (
        [one.text for one in answers(model(error_rate=rate, seed=3), [ask(p, temperature=0.0) for p in prompts])]
        for rate in (0.0, 0.4)
    )
    changed = sum(one != other for one, other in zip(certain, noisy, strict=True))
    assert stats.binomtest(changed, 2000, 0.2).pvalue > 0.001
    told: list[Classification] = answers(model(error_rate=1.0), [Classify(text=f"Text {n}.") for n in range(900)])
    labels = Counter(max(one.probabilities, key=one.probabilities.__getitem__) for one in told)
    assert stats.chisquare(list(labels.values())).pvalue > 0.001
    assert len(labels) == 3


def test_a_cache_in_front_gives_all_samples_of_a_prompt_one_draw_and_other_prompts_others() -> None:
    def told(**settings: Any) -> list[list[str]]:
        asked = [ask(f"Who was {n}th? (a) baker (b) tailor", sample=k) for n, k in product(range(50), range(8))]
        texts = [one.text for one in answers(model(**settings), asked)]
        return [texts[start : start + 8] for start in range(0, len(texts), 8)]

    assert all(len(set(samples)) == 1 for samples in told(same_samples=True))
    assert {samples[0] for samples in told(same_samples=True)} == {"(a) baker", "(b) tailor"}
    assert sum(len(set(samples)) == 2 for samples in told()) > 30
