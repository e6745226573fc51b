"""Ask a tiny classifier, and plain Transformers."""

from __future__ import annotations

import asyncio
import json

from prejudge.adapters.hf.classifier.adapter import HFClassifier, HFClassifierOptions
from prejudge.core.contracts.records import Classify

NLI = ("neutral", "contradiction", "entailment")
TOXIC = ("insult", "threat", "obscene", "identity attack")
TEXTS = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)
SINGLES = tuple(Classify(text=text) for text in TEXTS)


def build(folder, **options):
    return HFClassifier(HFClassifierOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options}))


def ask(folder, requests, **options):
    async def once():
        adapter = build(folder, **options)
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(once())


def naive(folder, request, activation="softmax"):
    """One plain forward pass of the checkpoint, by output number."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    texts = (request.text,) if request.pair is None else (request.text, request.pair)
    with torch.no_grad():
        logits = model(**tokenizer(*texts, return_tensors="pt")).logits[0]
    return (logits.softmax(-1) if activation == "softmax" else logits.sigmoid()).tolist()


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
