"""`openai` against a real server that is not ours: `transformers serve` on a tiny Llama."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from prejudge.core.errors import PermanentError
from prejudge.core.records import Classify, Generate, Generation, Likelihood, Message, Sampling, Text

NEEDED = ("fastapi", "uvicorn", "torch", "transformers")
START = "from transformers.cli.transformers import main; main()"
PATIENCE = 180


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def served(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the base url of `transformers serve`, or skip."""
    if lacking := [name for name in NEEDED if find_spec(name) is None]:
        pytest.skip(f"transformers serve needs {', '.join(lacking)} (pip install 'transformers[serving]')")
    port, log = free_port(), tmp_path_factory.mktemp("serve") / "log"
    words = ["serve", str(tiny_llama), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with log.open("wb") as out:
        command = [sys.executable, "-c", START, *words, "--dtype", "float32"]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=offline)
        try:
            end = time.monotonic() + PATIENCE
            while not is_up(f"http://127.0.0.1:{port}/health"):
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"transformers serve did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(30)


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
