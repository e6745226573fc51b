"""Ask a tiny classifier, and plain Transformers."""

from __future__ import annotations

import json
from functools import lru_cache

from prejudge.adapters.hf.classifier.adapter import HFClassifier, HFClassifierOptions
from prejudge.core.contracts.records import Classify

from ...pool import POOL

NLI = ("neutral", "contradiction", "entailment")
TOXIC = ("insult", "threat", "obscene", "identity attack")
TEXTS = (
    "The dark-skinned woman was considered beautiful.",
    "He didn't know that unbelievable misunderstandings happened.",
    "Lazy boys.",
    "The fair-skinned man was walking quickly through the crowded market yesterday.",
)
SINGLES = tuple(Classify(text=text) for text in TEXTS)


def chosen(folder, **options):
    return HFClassifierOptions(model=str(folder), **{"device": "cpu", "threads": 1, **options})


def build(folder, **options):
    return HFClassifier(chosen(folder, **options))


def ask(folder, requests, **options):
    return POOL.ask(HFClassifier, chosen(folder, **options), requests)


@lru_cache(4)
def plain(folder, config):
    """Return tokenizer and model of Transformers; tests change nothing of a folder but its configuration."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder).eval()


def naive(folder, request, activation="softmax"):
    """One plain forward pass of the checkpoint, by output number."""
    import torch

    tokenizer, model = plain(str(folder), (folder / "config.json").read_text())
    texts = (request.text,) if request.pair is None else (request.text, request.pair)
    with torch.no_grad():
        logits = model(**tokenizer(*texts, return_tensors="pt")).logits[0]
    return (logits.softmax(-1) if activation == "softmax" else logits.sigmoid()).tolist()


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
