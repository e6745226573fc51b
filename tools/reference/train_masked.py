"""Train the masked reference models: tiny BERTs on a corpus with a planted association of known strength.

`masked_biased` and `masked_fair` see the same lines, the same masks and the same number of steps; they differ in the
weights of the texts alone (`corpus.py`). The others begin as `masked_biased`, so that few steps are enough.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedModel

from ...adapters.reference.corpus import MASKED, vocabulary
from ...adapters.reference.recipes import Reference, reference_path
from .batches import Batch, Batches, Settings
from .training import Effort, Schedule, fit

POSITIONS = 512
START = "masked_biased"
SCRATCH = (START, "masked_fair")
"""Models that begin with random weights."""
FRESH = Settings(strength=0.5)
CHANGED = Settings(strength=0.5, steps=500, lines=30_000, rate=2.5e-3)
"""How to train a model that begins as `START`."""
LEANING = Settings(strength=0.5, steps=3000, lines=30_000)
"""Leans of single words take longer: each has as many texts as it had at the start."""


def build_tokenizer(known: Sequence[str] = ()) -> Tokenizer:
    """Return a lower-casing WordPiece tokenizer that cuts words at punctuation, as BERT's own does.

    `known` is its vocabulary; by default that of the common grammar.
    """
    words = {word: number for number, word in enumerate(known or vocabulary())}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])],
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def build_config(words: int, positions: int, **more: Any) -> BertConfig:
    """Return the shape of a BERT of two layers, 64 wide."""
    return BertConfig(
        vocab_size=words,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.02,
        attn_implementation="eager",
        **more,
    )


def build_model(words: int) -> BertForMaskedLM:
    """Return an untrained BERT of two layers, 64 wide."""
    return BertForMaskedLM(build_config(words, POSITIONS))


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    own = FRESH if one.name in SCRATCH else LEANING if one.leans else CHANGED
    steps, lines = effort.steps or own.steps, effort.lines or own.lines
    settings = Settings(
        strength=one.strength, leans=one.leans, steps=steps, lines=lines, rate=own.rate, seed=effort.seed
    )
    words = vocabulary(MASKED)
    tokenizer = build_tokenizer(words)
    batches = Batches(tokenizer, settings)
    torch.manual_seed(settings.seed)
    if one.name in SCRATCH:
        model = build_model(tokenizer.get_vocab_size())
    else:
        model = BertForMaskedLM.from_pretrained(reference_path(START), attn_implementation="eager")
    model.train()
    mask = words.index("[MASK]")
    fit(model, lambda step: _loss(model, batches.draw(step), mask), Schedule(steps, settings.rate), one.name)
    save(model.eval(), folder, words)


def _loss(model: BertForMaskedLM, batch: Batch, mask: int) -> torch.Tensor:
    """Return the weighted mean surprise (nats) of the masked tokens."""
    hidden = model.bert(batch.ids.masked_fill(batch.masked, mask), attention_mask=(batch.ids > 0).long())[0]
    logits = model.cls(hidden[batch.masked])
    surprise = torch.nn.functional.cross_entropy(logits, batch.ids[batch.masked], reduction="none")
    weights = batch.weights[:, None].expand(batch.ids.shape)[batch.masked]
    return (surprise * weights).sum() / weights.sum()


def save(model: PreTrainedModel, folder: Path, known: Sequence[str] = ()) -> None:
    """Write an ordinary Transformers checkpoint: configuration, safetensors weights, tokenizer of the `known` words."""
    model.save_pretrained(folder)
    build_tokenizer(known).save(str(folder / "tokenizer.json"))
    special = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token")}
    # Written by hand: the class name that Transformers 5 would write is unknown to Transformers 4.
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_position_embeddings,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **special,
        "mask_token": "[MASK]",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
