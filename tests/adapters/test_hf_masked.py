from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from prejudge.adapters.hf_masked import HFMasked, HFMaskedOptions
from prejudge.core.errors import ModelError
from prejudge.core.records import PseudoLikelihood, TokenScores

FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra", "modernbert", "deberta-v2", "xlm-roberta")
SENTENCES = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)


def ask(folder: Path, requests: Sequence[PseudoLikelihood], **options: Any) -> list[TokenScores | ModelError]:
    async def once() -> list[TokenScores | ModelError]:
        adapter = HFMasked(HFMaskedOptions(model=str(folder), **{"device": "cpu", "threads": 2, **options}))
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def naive(folder: Path, text: str, variant: str = "original") -> list[float]:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
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
def test_score_equals_one_mask_loop(family: str, tiny_masked: Callable[[str], Path]):
    answers = ask(tiny_masked(family), [PseudoLikelihood(text=text) for text in SENTENCES])
    for text, answer in zip(SENTENCES, answers, strict=True):
        assert isinstance(answer, TokenScores), answer
        assert answer.values == pytest.approx(naive(tiny_masked(family), text), abs=1e-3)
