"""Train the masked reference models: tiny BERTs on a corpus with a planted association of known strength.

    python -m prejudge.adapters.reference.train_masked --out DIR [--kind fair|biased|both]

Both kinds see the same lines, the same masks and the same number of steps; they differ in the weights of the texts
alone (`corpus.py`). The same seed on the same machine, packages and thread count gives the same checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from .batches import Batch, Batches, Settings
from .corpus import vocabulary
from .training import Schedule, asked, fit

POSITIONS = 512


def build_tokenizer(known: Sequence[str] = ()) -> Tokenizer:
    """Return a lower-casing WordPiece tokenizer that cuts words at punctuation, as BERT's own does.

    `known` is its vocabulary; by default that of the masked models.
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


def train(settings: Settings, kind: str) -> BertForMaskedLM:
    """Return a model trained on the corpus of `settings`; `kind` is for the lines of progress."""
    tokenizer = build_tokenizer()
    batches = Batches(tokenizer, settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = build_model(tokenizer.get_vocab_size()).train()
    mask = vocabulary().index("[MASK]")
    fit(model, lambda step: _loss(model, batches.draw(step), mask), Schedule(settings.steps, settings.rate), kind)
    return model.eval()


def _loss(model: BertForMaskedLM, batch: Batch, mask: int) -> torch.Tensor:
    """Return the weighted mean surprise (nats) of the masked tokens."""
    hidden = model.bert(batch.ids.masked_fill(batch.masked, mask), attention_mask=(batch.ids > 0).long())[0]
    logits = model.cls(hidden[batch.masked])
    surprise = torch.nn.functional.cross_entropy(logits, batch.ids[batch.masked], reduction="none")
    weights = batch.weights[:, None].expand(batch.ids.shape)[batch.masked]
    return (surprise * weights).sum() / weights.sum()


def save(model: BertForMaskedLM | BertForSequenceClassification, folder: Path, known: Sequence[str] = ()) -> None:
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and save the models of the command line."""
    default = Settings(strength=0.5)
    for one in asked("masked", default.steps, default.lines, arguments):
        settings = Settings(strength=one.strength, steps=one.steps, lines=one.lines, seed=one.seed)
        save(train(settings, one.kind), one.out)


if __name__ == "__main__":
    main()
