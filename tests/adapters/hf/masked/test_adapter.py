from __future__ import annotations

import asyncio
import time
from functools import cache
from pathlib import Path

import pytest

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import PseudoLikelihood, TokenScores

FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra", "modernbert", "deberta-v2", "xlm-roberta")
SENTENCES = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)


def requests(texts=SENTENCES, **fields):
    return [PseudoLikelihood(text=text, **fields) for text in texts]


@cache
def load(folder: Path):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()


def naive(folder: Path, text: str, variant: str = "original") -> list[float]:
    """Mask one token, run the whole model, look at its place: one forward pass per token."""
    import torch

    tokenizer, model = load(folder)
    encoding = tokenizer(text, return_tensors="pt")
    words, values = encoding.word_ids(), []
    for position in range(1, encoding["input_ids"].shape[1] - 1):
        ids = encoding["input_ids"].clone()
        later = range(position + 1, len(words)) if variant == "within_word_l2r" else ()
        for place in (position, *(p for p in later if words[p] == words[position])):
            ids[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, position]
        values.append(float(logits.log_softmax(-1)[encoding["input_ids"][0, position]]))
    return values


@pytest.mark.parametrize("family", FAMILIES)
def test_score_equals_one_mask_loop(family, tiny_masked, ask_masked):
    answers = ask_masked(tiny_masked(family), requests())
    for text, answer in zip(SENTENCES, answers, strict=True):
        assert answer.values == pytest.approx(naive(tiny_masked(family), text), abs=1e-3)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_within_word_masks_later_tokens(family, tiny_masked, ask_masked):
    answers = ask_masked(tiny_masked(family), requests(variant="within_word_l2r"))
    plain = ask_masked(tiny_masked(family), requests())
    for text, answer in zip(SENTENCES, answers, strict=True):
        assert answer.values == pytest.approx(naive(tiny_masked(family), text, "within_word_l2r"), abs=1e-3)
    assert answers[1].values != pytest.approx(plain[1].values, abs=0.01)


@pytest.mark.parametrize("variant", ["original", "within_word_l2r"])
def test_score_equals_minicons(variant, tiny_bert, ask_masked, monkeypatch):
    scorer = pytest.importorskip("minicons.scorer")
    tokenizer, model = load(tiny_bert)
    # Dropped by Transformers 5; minicons 0.3 still calls it.
    monkeypatch.setattr(tokenizer, "batch_encode_plus", tokenizer.__call__, raising=False)
    theirs = scorer.MaskedLMScorer(model, "cpu", tokenizer=tokenizer)
    sums = theirs.sequence_score(list(SENTENCES), reduction=lambda x: x.sum().item(), PLL_metric=variant)
    ours = [answer.log_probability for answer in ask_masked(tiny_bert, requests(variant=variant))]
    assert ours == pytest.approx(sums, abs=1e-3)


def test_answer_counts_and_sums_its_values(tiny_bert, ask_masked):
    (answer,) = ask_masked(tiny_bert, requests(SENTENCES[:1]))
    assert answer.count == len(answer.values) == answer.usage.input_tokens - 2
    assert answer.log_probability == pytest.approx(sum(answer.values))
    assert answer.log_probability < 0


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2"])
def test_score_is_independent_of_batch(family, tiny_masked, ask_masked):
    together = ask_masked(tiny_masked(family), requests(SENTENCES * 3), token_budget=500)
    for request, answer in zip(requests(), together[4:8], strict=True):
        (alone,) = ask_masked(tiny_masked(family), [request], token_budget=1)
        assert answer.values == pytest.approx(alone.values, abs=1e-4)


def test_variants_mix_in_one_batch(tiny_bert, ask_masked):
    both = [*requests(), *requests(variant="within_word_l2r")]
    mixed = ask_masked(tiny_bert, both)
    assert [a.log_probability for a in mixed[:4]] == pytest.approx(
        [a.log_probability for a in ask_masked(tiny_bert, requests())], abs=1e-4
    )
    assert mixed[1] != mixed[5]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_near(dtype, tiny_bert, ask_masked):
    full, half = ask_masked(tiny_bert, requests()), ask_masked(tiny_bert, requests(), dtype=dtype)
    for exact, rough in zip(full, half, strict=True):
        assert rough.log_probability == pytest.approx(exact.log_probability, rel=0.03)
        assert rough.values != exact.values


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_given_words_are_not_scored(family, tiny_masked, ask_masked):
    text = "The woman was beautiful."
    start = text.index("woman")
    whole, rest = ask_masked(
        tiny_masked(family),
        [PseudoLikelihood(text=text), PseudoLikelihood(text=text, given=((start, start + len("woman")),))],
    )
    values = list(whole.values)
    first = next(i for i in range(len(values)) if values[i] != pytest.approx(rest.values[i], abs=1e-4))
    gone = whole.count - rest.count
    assert 0 < gone < whole.count - 3
    assert rest.values == pytest.approx(values[:first] + values[first + gone :], abs=1e-4)


def test_contrast_scores_shared_tokens_only(tiny_bert, ask_masked):
    pair = "The tall boys are lazy.", "The tall girls are lazy."
    (answer,) = ask_masked(tiny_bert, [PseudoLikelihood(text=pair[0], contrast=pair[1])])
    (whole,) = ask_masked(tiny_bert, [PseudoLikelihood(text=pair[0])])
    assert answer.count < whole.count
    assert set(round(v, 3) for v in answer.values) <= set(round(v, 3) for v in whole.values)


def test_slow_batch_leaves_loop_free(tiny_bert):
    async def watch() -> list[float]:
        adapter = HFMasked(HFMaskedOptions(model=str(tiny_bert), device="cpu", token_budget=20))
        await adapter.answer(requests(SENTENCES[:1]))
        work = asyncio.ensure_future(adapter.answer(requests(SENTENCES * 4)))
        gaps, last = [], time.perf_counter()
        while not work.done():
            await asyncio.sleep(0.005)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()
        await adapter.aclose()
        return gaps

    gaps = asyncio.run(watch())
    assert len(gaps) > 5
    assert sorted(gaps)[len(gaps) // 2] < sum(gaps) / 4


def test_cancelled_batch_stops_early(make_masked):
    folder = make_masked(max_position_embeddings=512)

    async def cancel() -> float:
        adapter = HFMasked(HFMaskedOptions(model=str(folder), device="cpu", token_budget=1))
        await adapter.answer(requests(SENTENCES[:1]))
        work = asyncio.ensure_future(adapter.answer(requests(["lazy boys " * 30] * 200)))
        await asyncio.sleep(0.1)
        work.cancel()
        start = time.perf_counter()
        await adapter.aclose()
        assert work.cancelled()
        return time.perf_counter() - start

    assert asyncio.run(cancel()) < 5


def test_loading_prints_nothing(tiny_bert, ask_masked, capfd):
    ask_masked(tiny_bert, requests())
    assert capfd.readouterr() == ("", "")


def test_weights_load_at_first_call(tiny_bert):
    async def life() -> tuple[bool, bool, bool]:
        adapter = HFMasked(HFMaskedOptions(model=str(tiny_bert), device="cpu"))
        before = adapter._engine is None
        await answer_one(adapter, requests()[0])
        during = adapter._engine is not None
        await adapter.aclose()
        await adapter.aclose()
        return before, during, adapter._engine is None

    assert asyncio.run(life()) == (True, True, True)


def test_bad_request_leaves_the_others(tiny_bert, ask_masked):
    answers = ask_masked(tiny_bert, [*requests(SENTENCES[:1]), PseudoLikelihood(text=""), *requests(SENTENCES[1:2])])
    assert [type(answer) for answer in answers] == [TokenScores, PermanentError, TokenScores]
