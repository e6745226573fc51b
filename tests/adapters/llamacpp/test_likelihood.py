"""`llamacpp`: likelihoods, compared with Transformers on the same weights."""

from __future__ import annotations

import asyncio
import importlib
import math
from pathlib import Path

import pytest

from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.records import Likelihood, Likelihoods

from .asking import CONTINUATIONS, FRANCE, Pair, ask

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")


def values(answer: Likelihoods) -> list[tuple[float, ...]]:
    return [score.values for score in answer.scores]


def expected(checkpoint: Path, prompt: str, continuation: str) -> list[float]:
    """Score by Transformers, one plain forward pass."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    encoded = tokenizer(prompt + continuation, return_offsets_mapping=True, return_tensors="pt")
    ids = encoded.input_ids[0]
    with torch.no_grad():
        rows = model(encoded.input_ids).logits[0].double().log_softmax(-1)
    scored = [number for number, (_, end) in enumerate(encoded.offset_mapping[0].tolist()) if end > len(prompt)]
    return [rows[number - 1, ids[number]].item() for number in scored]


@pytest.mark.parametrize("continuation", CONTINUATIONS)
def test_likelihood_equals_transformers(pair: Pair, continuation: str) -> None:
    (answer,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(continuation,))])
    assert values(answer)[0] == pytest.approx(expected(pair[1], FRANCE, continuation), abs=1e-4)


def test_long_continuation_equals_transformers(pair: Pair) -> None:
    long = " and the capital of Italy is Rome, and one two three" * 12
    (answer,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(long,))])
    assert answer.scores[0].count > 128
    assert values(answer)[0] == pytest.approx(expected(pair[1], FRANCE, long), abs=2e-5)


def test_float16_cache_is_near(pair: Pair) -> None:
    requests = [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)]
    (fine,), (coarse,) = ask(pair[0], requests), ask(pair[0], requests, cache_dtype="float16")
    assert fine != coarse
    for one, other in zip(values(fine), values(coarse), strict=True):
        assert one == pytest.approx(other, abs=5e-3)


def test_likelihood_agrees_with_hf_causal(pair: Pair) -> None:
    try:
        causal = importlib.import_module("prejudge.adapters.hf.causal.adapter")
    except ModuleNotFoundError:
        pytest.skip("there is no adapter hf-causal")
    request = Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)

    async def theirs() -> Likelihoods:
        adapter = causal.HFCausal(causal.HFCausalOptions(model=str(pair[1]), device="cpu"))
        try:
            return await answer_one(adapter, request)
        finally:
            await adapter.aclose()

    for ours, other in zip(values(ask(pair[0], [request])[0]), values(asyncio.run(theirs())), strict=True):
        assert ours == pytest.approx(other, abs=1e-3)


def test_together_equals_alone(pair: Pair) -> None:
    (together,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)])
    alone = [ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(one,))])[0] for one in CONTINUATIONS]
    for one, other in zip(values(together), alone, strict=True):
        assert one == pytest.approx(values(other)[0], abs=1e-5)


def test_log_probability_is_sum(pair: Pair) -> None:
    (answer,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)])
    assert all(score.log_probability == math.fsum(score.values) for score in answer.scores)


def test_token_across_border_is_scored(pair: Pair) -> None:
    # " Paris" is one token, and so the space counts to the continuation.
    (split,) = ask(pair[0], [Likelihood(prompt=f"{FRANCE} ", continuations=("Paris",))])
    (whole,) = ask(pair[0], [Likelihood(prompt=FRANCE, continuations=(" Paris",))])
    assert split.scores == whole.scores


def test_continuations_without_common_token(plain_pair: Pair) -> None:
    # "T" and "h" merge to "Th" with the second continuation only: the "T" is scored with both.
    (both,) = ask(plain_pair[0], [Likelihood(prompt="T", continuations=("x", "he capital"))])
    alone = [ask(plain_pair[0], [Likelihood(prompt="", continuations=(one,))])[0] for one in ("Tx", "The capital")]
    assert values(both) == [values(one)[0] for one in alone]
    assert [both.overlap, *(one.overlap for one in alone)] == [1, 0, 0]


@pytest.mark.parametrize("continuation", [" Paris", " friendly", "ly", " \u65e5", "\n"])
def test_sentencepiece_equals_transformers(spm: Pair, continuation: str) -> None:
    (answer,) = ask(spm[0], [Likelihood(prompt="The capital is", continuations=(continuation,))])
    assert values(answer)[0] == pytest.approx(expected(spm[1], "The capital is", continuation), abs=1e-4)


def test_sentencepiece_straddling_token_is_scored(spm: Pair) -> None:
    split, whole = ask(
        spm[0],
        [
            Likelihood(prompt="The capital ", continuations=("is",)),
            Likelihood(prompt="The capital", continuations=(" is",)),
        ],
    )
    assert split.scores == whole.scores and (split.overlap, whole.overlap) == (1, 0)


def test_text_without_prompt_is_scored(spm: Pair, plain_pair: Pair) -> None:
    request = Likelihood(prompt="", continuations=("The",))
    (answer,), (other,) = (ask(file, [request]) for file in (spm[0], plain_pair[0]))
    assert [answer.scores[0].count, other.scores[0].count] == [1, 1]


def test_first_blank_is_the_one_that_sentencepiece_adds(spm: Pair) -> None:
    (with_blank, without) = ask(spm[0], [Likelihood(prompt="", continuations=(text,)) for text in (" The", "The")])
    assert with_blank.scores == without.scores


def test_characters_of_many_bytes_are_scored(pair: Pair) -> None:
    (answer,) = ask(pair[0], [Likelihood(prompt="naïve ", continuations=("日本",))])
    assert values(answer)[0] == pytest.approx(expected(pair[1], "naïve ", "日本"), abs=1e-4)


def test_order_changes_nothing(pair: Pair) -> None:
    prompts = [FRANCE, FRANCE + " Paris, and the capital of Italy is" * 12, "He didn't know", FRANCE * 9]
    requests = [Likelihood(prompt=prompt, continuations=CONTINUATIONS) for prompt in prompts]
    forth, back = ask(pair[0], requests), ask(pair[0], requests[::-1])
    assert forth == back[::-1]
    assert forth == [ask(pair[0], [request])[0] for request in requests]


def test_n_ctx_changes_no_answer(pair: Pair) -> None:
    requests = [Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)]
    assert ask(pair[0], requests, n_ctx=64) == ask(pair[0], requests, n_ctx=400)
