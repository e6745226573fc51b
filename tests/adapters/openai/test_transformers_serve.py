"""`openai` against a real server that is not ours: `transformers serve` on a tiny Llama."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Classify, Generate, Generation, Likelihood, Message, Sampling, Text

from ..real_servers import TRANSFORMERS, TRANSFORMERS_NEEDS, skip_unless


@pytest.fixture(scope="session")
def served(tiny_llama: Path, start_server: Callable[..., str]) -> str:
    """Return the base url of `transformers serve`, or skip."""
    skip_unless(TRANSFORMERS_NEEDS)
    words = ["serve", str(tiny_llama), "--device", "cpu", "--dtype", "float32"]
    return start_server(TRANSFORMERS, words, "/health") + "/v1"


@pytest.fixture
def asks(served: str, tiny_llama: Path, ask):
    """Return `ask` in front of `transformers serve`."""

    def run(*requests, **settings):
        settings = {"model": str(tiny_llama), "base_url": served, "api_key_env": "", "timeout_seconds": 60, **settings}
        return ask(*requests, **settings)

    return run


def say(text: str, **sampling) -> Generate:
    sampled = Sampling(**{"temperature": 0.0, "max_tokens": 8, **sampling})
    return Generate(messages=(Message("user", (Text(text),)),), sampling=sampled)


def test_answers_equal_those_in_process(asks, ask_causal, tiny_llama, transport):
    questions = [say("The dark-skinned woman"), say("Those obese girls", max_tokens=5), say("a")]
    here = ask_causal(tiny_llama, questions)
    there = asks(*questions, transport=transport)
    assert [answer.text for answer in there] == [answer.text for answer in here]
    assert all(isinstance(answer, Generation) and answer.usage.output_tokens for answer in there)


@pytest.mark.parametrize("way", ["echo", "first_token", "prompt_logprobs"])
def test_likelihood_it_does_not_offer_is_an_error(asks, way):
    (answer,) = asks(Likelihood(prompt="The woman", continuations=(" was", " is")), likelihood=way)
    assert isinstance(answer, PermanentError)


def test_labels_get_probabilities(asks):
    one, other = asks(Classify(text="good"), Classify(text="very bad"), classify="systemone", labels=("yes", "no"))
    assert sum(one.probabilities.values()) == pytest.approx(1.0)
    assert set(one.probabilities) == {"yes", "no"}
    assert one.probabilities != other.probabilities


def test_path_it_does_not_offer_is_permanent(asks):
    (answer,) = asks(Classify(text="good"), classify="decisions", labels=("yes", "no"))
    assert isinstance(answer, PermanentError)
    assert "404" in str(answer)
