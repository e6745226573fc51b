"""The same weights score the same in `hf-causal`, in `llamacpp` and through `openai` in front of `llama_cpp.server`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import AnyResponse, Likelihood, Likelihoods

from .gguf_files import write_pair, write_sentencepiece
from .real_servers import LLAMA_CPP, LLAMA_CPP_NEEDS, llama_cpp_words, serve_python, skip_unless

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)

Answers = dict[str, Sequence[AnyResponse | ModelError]]
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
    "another border each": Likelihood(prompt="The capital of Italy is ", continuations=("Rome", "x", "and")),
    "another border in front": Likelihood(prompt="one T", continuations=("x", "he capital")),
    "two bytes": Likelihood(prompt="one caf", continuations=("\u00e9", "\u00e9 at the party")),
}
FIRST = {
    "nothing in front": Likelihood(prompt="", continuations=("The capital", "She", "x")),
    "nothing but a blank in front": Likelihood(prompt=" ", continuations=("The capital", "x")),
    "blank in front, and blank first": Likelihood(prompt=" ", continuations=(" The", " x")),
    "two blanks in front": Likelihood(prompt="  ", continuations=("The", " x")),
    "blank first": Likelihood(prompt=" She", continuations=(" was", " x", "x")),
}
"""What a server answers otherwise, or not at all: it reports nothing of a text's first token, and cuts by itself."""


@pytest.fixture(scope="module", params=[write_pair, write_sentencepiece], ids=["bytes", "sentencepiece"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Return the answers to all cases by adapter."""
    skip_unless(LLAMA_CPP_NEEDS)
    folder = tmp_path_factory.mktemp("three-ways")
    file, checkpoint = request.param(folder)
    words = llama_cpp_words(file, "--type_k", F32, "--type_v", F32)
    with serve_python(LLAMA_CPP, words, "/v1/models", folder / "log") as url:
        adapters = _adapters(file, checkpoint, f"{url}/v1")
        yield {
            name: asyncio.run(_ask(adapter, [*CASES.values(), *(FIRST.values() if name != "openai" else ())]))
            for name, adapter in adapters.items()
        }


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


async def _ask(adapter: ModelAdapter, asked: list[Likelihood]) -> Sequence[AnyResponse | ModelError]:
    try:
        found = await adapter.answer(asked)
    finally:
        await adapter.aclose()
    return found


@pytest.mark.parametrize(
    ("case", "other"),
    [*((case, other) for case in CASES for other in ("llamacpp", "openai")), *((case, "llamacpp") for case in FIRST)],
)
def test_values_equal_those_of_hf_causal(
    answers: Answers, case: str, other: str, request: pytest.FixtureRequest
) -> None:
    number = [*CASES, *FIRST].index(case)
    expected, found = answers["hf-causal"][number], answers[other][number]
    assert isinstance(expected, Likelihoods)
    if (request.node.callspec.params["answers"], case, other) == (write_sentencepiece, "two bytes", "openai"):
        # The server shows the bytes of a character as nothing, and no offsets that fit: an error, and no number.
        assert isinstance(found, ModelError) and found.code == "endpoint.echo"
        return
    assert isinstance(found, Likelihoods), found
    assert found.overlap == expected.overlap
    for ours, theirs in zip(expected.scores, found.scores, strict=True):
        assert theirs.count == len(theirs.values) == ours.count
        assert theirs.values == pytest.approx(ours.values, abs=TOLERANCE)
        assert theirs.log_probability == pytest.approx(ours.log_probability, abs=TOLERANCE)


def test_cases_can_tell_models_apart(answers: Answers) -> None:
    # Equal numbers would prove little if every continuation had nearly the same.
    found = [answer for answer in answers["hf-causal"] if isinstance(answer, Likelihoods)]
    sums = [score.log_probability for answer in found for score in answer.scores]
    assert len(found) == len(CASES) + len(FIRST) and {0, 1} < {answer.overlap for answer in found}
    assert all(math.isfinite(value) and value < -0.1 for value in sums)
    assert max(sums) - min(sums) > 1e4 * TOLERANCE
