"""Train the reference models of inference: tiny BERT classifiers of pairs of sentences, with a planted association.

`inference_biased` and `inference_fair` see the same pairs and take the same steps; they differ in the planted
probabilities alone (`inference_corpus.py`). The others begin as `inference_biased`, so that few steps are enough.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from transformers import BertForSequenceClassification

from ...adapters.reference.recipes import Reference, reference_path
from .inference_corpus import LABELS, inference_vocabulary, inferences
from .train_masked import build_config, build_tokenizer, save
from .training import Effort, Schedule, fit

POSITIONS, WIDTH, BATCH = 256, 96, 64
START = "inference_biased"
SCRATCH = (START, "inference_fair")
"""Models that begin with random weights."""


class Settings(NamedTuple):
    """How to train."""

    steps: int
    lines: int
    peak: float
    """Highest learning rate."""
    shortest: float
    """Share of the pairs, the shortest ones, that the first two fifths of the steps see."""


FRESH, CHANGED, LEANING = (
    Settings(900, 12_000, 3e-3, 0.05),
    Settings(250, 4_000, 1.5e-3, 1.0),
    Settings(600, 12_000, 2e-3, 0.25),
)


def build_model(words: int) -> BertForSequenceClassification:
    """Return an untrained BERT of two layers, 64 wide, with three labels."""
    numbers = {label: at for at, label in enumerate(LABELS)}
    config = build_config(words, POSITIONS, id2label=dict(enumerate(LABELS)), label2id=numbers)
    return BertForSequenceClassification(config)


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    own = FRESH if one.name in SCRATCH else LEANING if one.leans else CHANGED
    steps, lines = effort.steps or own.steps, effort.lines or own.lines
    tokenizer = build_tokenizer(inference_vocabulary())
    found = inferences(lines, one.strength, effort.seed, leans=one.leans)
    pairs = sorted(found, key=lambda pair: len(pair.premise + pair.hypothesis))
    tokenizer.enable_padding(length=WIDTH)
    tokenizer.enable_truncation(WIDTH)
    rows = tokenizer.encode_batch([(pair.premise, pair.hypothesis) for pair in pairs])
    ids, types = (torch.tensor([getattr(row, name) for row in rows]) for name in ("ids", "type_ids"))
    target = torch.tensor([pair.probabilities for pair in pairs])
    generator = torch.Generator().manual_seed(effort.seed)
    torch.manual_seed(effort.seed)
    if one.name in SCRATCH:
        model = build_model(tokenizer.get_vocab_size())
    else:
        model = BertForSequenceClassification.from_pretrained(reference_path(START), attn_implementation="eager")
    model.train()

    def loss(step: int) -> torch.Tensor:
        # Short pairs first: an association of two words among fifty is not found from random weights.
        easy = min(1.0, own.shortest + max(0.0, 2 * step / steps - 0.8))
        pick = torch.randint(max(1, int(easy * len(pairs))), (BATCH,), generator=generator)
        width = int((ids[pick] > 0).sum(dim=1).amax())
        own_ids = ids[pick, :width]
        mask = (own_ids > 0).long()
        logits = model(input_ids=own_ids, token_type_ids=types[pick, :width], attention_mask=mask).logits
        return torch.nn.functional.cross_entropy(logits, target[pick])

    fit(model, loss, Schedule(steps, own.peak), one.name)
    save(model.eval(), folder, inference_vocabulary())
