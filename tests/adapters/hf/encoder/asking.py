"""Ask a tiny encoder, and the library itself."""

from __future__ import annotations

import numpy as np

from prejudge.adapters.hf.encoder.adapter import HFEncoder, HFEncoderOptions
from prejudge.core.contracts.records import Embed

from ...pool import POOL

TEXTS = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)
PROMPTS = {"query": "the lazy girls ", "nothing": ""}


def chosen(folder, **options):
    return HFEncoderOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options})


def build(folder, **options):
    return HFEncoder(chosen(folder, **options))


def ask(folder, texts=TEXTS, **options):
    return POOL.ask(HFEncoder, chosen(folder, **options), [Embed(text=text) for text in texts])


def vectors(folder, texts=TEXTS, **options):
    return np.array([answer.vector for answer in ask(folder, texts, **options)])
