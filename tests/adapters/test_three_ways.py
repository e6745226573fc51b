"""The same weights score the same in `hf-causal`, in `llamacpp` and through `openai` in front of `llama_cpp.server`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.records import Likelihood, Likelihoods

from .gguf_files import write_pair
from .real_servers import LLAMA_CPP, LLAMA_CPP_NEEDS, llama_cpp_words, serve_python, skip_unless

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)

TOLERANCE = 1e-4
"""Seen: 1.5e-6; with keys and values as f16, 9e-4."""
F32 = "0"
"""What llama.cpp calls this type; its server keeps keys and values as f16 otherwise."""
CASES = {
    "one token": Likelihood(prompt="The capital of France is", continuations=(" Paris", " Rome")),
    "many tokens": Likelihood(
        prompt="She was considered",
        continuations=(" unbelievably friendly", " one of the misunderstandings, and lazy."),
    ),
    "inside a word": Likelihood(prompt="He didn't know that mis", continuations=("understandings", "takes happened")),
    "token over the border": Likelihood(prompt="The capital of Italy is ", continuations=("Rome", "Paris, not Rome.")),
    "line break": Likelihood(prompt="user\none two\nassistant", continuations=("\nthree four", "\n\nfive")),
    "long prompt": Likelihood(prompt="one two three four five, " * 12, continuations=("she was", "He")),
    "merged over the border": Likelihood(prompt="one T", continuations=("he capital", "x")),
    "two bytes": Likelihood(prompt="one caf", continuations=("\u00e9", "\u00e9 at the party")),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Likelihoods]]]:
    """Return the answers to all cases by adapter."""
    skip_unless(LLAMA_CPP_NEEDS)
    folder = tmp_path_factory.mktemp("three-ways")
    file, checkpoint = write_pair(folder)
    words = llama_cpp_words(file, "--type_k", F32, "--type_v", F32)
    with serve_python(LLAMA_CPP, words, "/v1/models", folder / "log") as url:
        adapters = _adapters(file, checkpoint, f"{url}/v1")
        yield {name: asyncio.run(_ask(adapter)) for name, adapter in adapters.items()}


def _adapters(file: Path, checkpoint: Path, url: str) -> dict[str, ModelAdapter]:
    from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
    from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
    from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions

    return {
        "hf-causal": HFCausal(HFCausalOptions(model=str(checkpoint), device="cpu", threads=1)),
        "llamacpp": LlamaCpp(LlamaCppOptions(model=str(file), threads=1)),
        "openai": OpenAIApi(
            OpenAIOptions(model="tiny", base_url=url, api_key_env="", likelihood="echo", concurrency=1)
        ),
    }


async def _ask(adapter: ModelAdapter) -> list[Likelihoods]:
    try:
        found = await adapter.answer(list(CASES.values()))
    finally:
        await adapter.aclose()
    assert all(isinstance(one, Likelihoods) for one in found), [str(one)[:200] for one in found]
    return [one for one in found if isinstance(one, Likelihoods)]


@pytest.mark.parametrize("other", ["llamacpp", "openai"])
@pytest.mark.parametrize("case", CASES)
def test_values_equal_those_of_hf_causal(answers: dict[str, list[Likelihoods]], case: str, other: str) -> None:
    number = list(CASES).index(case)
    for ours, theirs in zip(answers["hf-causal"][number].scores, answers[other][number].scores, strict=True):
        assert theirs.count == len(theirs.values) == ours.count
        assert theirs.values == pytest.approx(ours.values, abs=TOLERANCE)
        assert theirs.log_probability == pytest.approx(ours.log_probability, abs=TOLERANCE)


def test_cases_can_tell_models_apart(answers: dict[str, list[Likelihoods]]) -> None:
    # Equal numbers would prove little if every continuation had nearly the same.
    sums = [score.log_probability for answer in answers["hf-causal"] for score in answer.scores]
    assert all(math.isfinite(value) and value < -0.1 for value in sums)
    assert max(sums) - min(sums) > 1e4 * TOLERANCE
