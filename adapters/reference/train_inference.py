"""Train the reference models of inference: tiny BERT classifiers of pairs of sentences, with a planted association.

    python -m prejudge.adapters.reference.train_inference --out DIR [--kind fair|biased|both]

Both kinds see the same pairs and take the same steps; they differ in the planted probabilities alone
(`inference_corpus.py`). The same seed on the same machine, packages and thread count gives the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import BertForSequenceClassification

from .inference_corpus import LABELS, inference_vocabulary, inferences
from .train_masked import build_config, build_tokenizer, save
from .training import Asked, Schedule, asked, fit

POSITIONS, WIDTH, BATCH, RATE = 256, 96, 64, 3e-3
STEPS, LINES = 900, 12_000
SHORTEST = 0.05
"""Share of the pairs, the shortest ones, that the first two fifths of the steps see."""
STRENGTHS = {"fair": 0.5, "biased": 0.9}
"""Probability of entailment in place of contradiction where a pair agrees with the stereotype, by kind."""


def build_model(words: int) -> BertForSequenceClassification:
    """Return an untrained BERT of two layers, 64 wide, with three labels."""
    numbers = {label: at for at, label in enumerate(LABELS)}
    config = build_config(words, POSITIONS, id2label=dict(enumerate(LABELS)), label2id=numbers)
    return BertForSequenceClassification(config)


def train(one: Asked) -> BertForSequenceClassification:
    """Return a model trained on the corpus of one kind."""
    tokenizer = build_tokenizer(inference_vocabulary())
    pairs = sorted(inferences(one.lines, one.strength, one.seed), key=lambda pair: len(pair.premise + pair.hypothesis))
    tokenizer.enable_padding(length=WIDTH)
    tokenizer.enable_truncation(WIDTH)
    rows = tokenizer.encode_batch([(pair.premise, pair.hypothesis) for pair in pairs])
    ids, types = (torch.tensor([getattr(row, name) for row in rows]) for name in ("ids", "type_ids"))
    target = torch.tensor([pair.probabilities for pair in pairs])
    generator = torch.Generator().manual_seed(one.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(one.seed)
        model = build_model(tokenizer.get_vocab_size()).train()

    def loss(step: int) -> torch.Tensor:
        # Short pairs first: an association of two words among fifty is not found from random weights.
        easy = min(1.0, SHORTEST + max(0.0, 2 * step / one.steps - 0.8))
        pick = torch.randint(int(easy * len(pairs)), (BATCH,), generator=generator)
        width = int((ids[pick] > 0).sum(dim=1).amax())
        own = ids[pick, :width]
        logits = model(input_ids=own, token_type_ids=types[pick, :width], attention_mask=(own > 0).long()).logits
        return torch.nn.functional.cross_entropy(logits, target[pick])

    fit(model, loss, Schedule(one.steps, RATE), one.kind)
    return model.eval()


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and save the models of the command line."""
    for one in asked("inference", STEPS, LINES, arguments, STRENGTHS):
        save(train(one), one.out, inference_vocabulary())


if __name__ == "__main__":
    main()
