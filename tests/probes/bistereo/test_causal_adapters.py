"""Pairs scored from left to right give the same numbers by `hf-causal`, `llamacpp` and `openai` on the same weights."""

from __future__ import annotations

import asyncio
import csv
from importlib.util import find_spec

import polars as pl
import pytest

from prejudge.core.contracts.records import Likelihoods
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs

from ...adapters.gguf_files import write_pair
from ...adapters.real_servers import LLAMA_CPP, LLAMA_CPP_NEEDS, llama_cpp_words, serve_python, skip_unless

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)

F32 = "0"
SENTIMENTS = {"cute ": "positive", "nasty ": "negative", "": "neutral"}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    skip_unless(LLAMA_CPP_NEEDS)
    from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
    from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
    from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions

    folder = tmp_path_factory.mktemp("ways")
    file, checkpoint = write_pair(folder)
    server = llama_cpp_words(file, "--type_k", F32, "--type_v", F32)
    with serve_python(LLAMA_CPP, server, "/v1/models", folder / "log") as url:
        plain = {"model": "tiny", "base_url": f"{url}/v1", "api_key_env": "", "concurrency": 1}
        yield {
            "hf-causal": lambda: HFCausal(HFCausalOptions(model=str(checkpoint), device="cpu", threads=1)),
            "llamacpp": lambda: LlamaCpp(LlamaCppOptions(model=str(file), threads=1)),
            "openai": lambda: OpenAIApi(OpenAIOptions(likelihood="echo", **plain)),
        }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "own.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["desirable", "undesirable", "axis", "gender", "sentiment", "template"])
        for word, sentiment in SENTIMENTS.items():
            texts = [f"The {word}man at the party was {descriptor}." for descriptor in ("tall", "short")]
            rows.writerow([*texts, "height", "men", sentiment, "t"])
    return str(path)


def scores(make, **options):
    """Return the scores of the last stage, as a run would come to them."""
    return asyncio.run(_scores(make(), BIStereoOptions(**options)))


async def _scores(adapter, options):
    earlier = {}
    try:
        for stage in BIStereoPairs().stages(options):
            trials = list(stage.trials(earlier))
            answers = await adapter.answer([trial.request for trial in trials])
            assert all(isinstance(answer, Likelihoods) for answer in answers), answers[0]
            read = [stage.read(trial.factors, answer) for trial, answer in zip(trials, answers, strict=True)]
            rows = [{**t.factors, **one, "status": "ok"} for t, one in zip(trials, read, strict=True)]
            earlier[stage.name] = pl.DataFrame(rows)
    finally:
        await adapter.aclose()
    return earlier["pairs"]["log_probability"].to_list()


@pytest.mark.parametrize("scoring", ["joint-minus-marginal", "left-to-right", "sentence"])
@pytest.mark.parametrize("other", ["llamacpp", "openai"])
def test_scores_equal_those_of_hf_causal(adapters, data, scoring, other):
    options = {"data": data, "scoring": scoring, "before": "one two"}
    ours, theirs = (scores(adapters[name], **options) for name in ("hf-causal", other))
    assert theirs == pytest.approx(ours, abs=1e-4)
    assert max(ours) - min(ours) > 1e-2 and len(set(ours)) > len(ours) / 2


def test_a_beginning_of_its_own_needs_nothing_before(adapters, data):
    options = {"data": data, "scoring": "joint-minus-marginal"}
    assert scores(adapters["llamacpp"], **options) == pytest.approx(scores(adapters["hf-causal"], **options), abs=1e-4)
