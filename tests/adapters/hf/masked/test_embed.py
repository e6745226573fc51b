"""`hf-masked` embeds: the mean of the last hidden states, whatever else is in the batch."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Embed

TEXTS = ["The tall woman.", "He", "People who live in trailers are alcoholics.", "The short woman."]


def embed(folder, texts):
    async def ask():
        adapter = HFMasked(HFMaskedOptions(model=str(folder), device="cpu"))
        try:
            return await adapter.embed_batch([Embed(text=text) for text in texts])
        finally:
            await adapter.aclose()

    return asyncio.run(ask())


def by_hand(folder, text):
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        states = model.eval()(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[-1]
    return states[0].mean(dim=0).numpy()


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_vector_is_the_mean_of_the_last_states(tiny_masked, family):
    for text, answer in zip(TEXTS, embed(tiny_masked(family), TEXTS), strict=True):
        np.testing.assert_allclose(answer.vector, by_hand(tiny_masked(family), text), atol=1e-5)


def test_vector_does_not_depend_on_the_batch(tiny_bert):
    together = embed(tiny_bert, TEXTS * 3)
    alone_of = [embed(tiny_bert, [text])[0] for text in TEXTS]
    for alone, answer in zip(alone_of * 3, together, strict=True):
        np.testing.assert_allclose(answer.vector, alone.vector, atol=1e-5)


def test_text_that_is_too_long_fails_alone(tiny_bert):
    first, second = embed(tiny_bert, ["woman " * 2000, "woman"])
    assert isinstance(first, PermanentError) and first.code == "request.too-long"
    assert len(second.vector) == 32
