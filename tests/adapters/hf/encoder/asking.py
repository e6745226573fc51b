"""Ask a tiny encoder, and the library itself."""

from __future__ import annotations

import asyncio

import numpy as np

from prejudge.adapters.hf.encoder.adapter import HFEncoder, HFEncoderOptions
from prejudge.core.contracts.records import Embed

TEXTS = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)
PROMPTS = {"query": "the lazy girls ", "nothing": ""}


def build(folder, **options):
    return HFEncoder(HFEncoderOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options}))


def ask(folder, texts=TEXTS, **options):
    async def once():
        adapter = build(folder, **options)
        try:
            return list(await adapter.answer([Embed(text=text) for text in texts]))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def vectors(folder, texts=TEXTS, **options):
    return np.array([answer.vector for answer in ask(folder, texts, **options)])
