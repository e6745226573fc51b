"""Train the causal reference models: tiny Llamas on a corpus with a planted association and a planted frequency.

    python -m prejudge.adapters.reference.train_causal --out DIR [--kind fair|biased|both]

Both kinds see the same lines in the same steps; they differ in the weights of the texts alone (`causal_corpus.py`).
The same seed on the same machine, packages and thread count gives the same checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec
import torch
from tokenizers import processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from .causal_corpus import causal_lines
from .corpus import vocabulary
from .train_masked import build_tokenizer
from .training import Schedule, asked, fit

POSITIONS = 128
BEGIN, END = "[CLS]", "[SEP]"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to train."""

    strength: float
    """Probability of a positive attribute beside a desirable descriptor, and of a negative one beside the other."""
    steps: int = 3000
    lines: int = 60_000
    batch: int = 64
    """Lines per step, so twice as many texts."""
    peak: float = 4e-3
    """Highest learning rate."""
    seed: int = 0


def build_causal_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer of the masked models, which puts a beginning in front of a text and nothing behind it."""
    backend = build_tokenizer()
    begin = backend.token_to_id(BEGIN)
    backend.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A $B:1", special_tokens=[(BEGIN, begin)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend)


def build_causal_model(words: int) -> LlamaForCausalLM:
    """Return an untrained Llama of two layers, 64 wide."""
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        pad_token_id=vocabulary().index("[PAD]"),
        bos_token_id=vocabulary().index(BEGIN),
        eos_token_id=vocabulary().index(END),
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config)


def train(settings: Settings, kind: str) -> LlamaForCausalLM:
    """Return a model trained on the corpus of `settings`; `kind` is for the lines of progress."""
    texts, weights = _encoded(settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = build_causal_model(len(vocabulary())).train()
    draw = torch.Generator().manual_seed(settings.seed)

    def loss_at(step: int) -> torch.Tensor:
        pick = torch.randint(len(texts), (settings.batch,), generator=draw)
        return _loss(model, texts[pick].flatten(0, 1), weights[pick].flatten())

    fit(model, loss_at, Schedule(settings.steps, settings.peak), kind)
    return model.eval()


def _encoded(settings: Settings) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids (lines, 2, width; 0 is padding) and weights (lines, 2)."""
    lines = list(causal_lines(settings.lines, settings.strength, settings.seed))
    found = build_causal_tokenizer()(list(chain.from_iterable(line.texts for line in lines)))["input_ids"]
    width = max(map(len, found))
    rows = torch.tensor([ids + [0] * (width - len(ids)) for ids in found])
    return rows.reshape(len(lines), 2, width), torch.tensor([line.weights for line in lines])


def _loss(model: LlamaForCausalLM, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted mean surprise (nats) of all tokens behind the beginning."""
    ids = ids[:, : int((ids > 0).sum(dim=1).amax())]
    # Padding stands behind every token that counts, which a causal model ignores: no mask is needed.
    logits, targets = model(ids[:, :-1]).logits, ids[:, 1:]
    surprise = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    counted = weights[:, None] * (targets > 0)
    return (surprise * counted).sum() / counted.sum()


def save(model: LlamaForCausalLM, folder: Path) -> None:
    """Write an ordinary Transformers checkpoint: configuration, safetensors weights, tokenizer."""
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    build_causal_tokenizer().backend_tokenizer.save(str(folder / "tokenizer.json"))
    # Written by hand: the class name that Transformers 5 would write is unknown to Transformers 4.
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": POSITIONS,
        "model_input_names": ["input_ids", "attention_mask"],
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and save the models of the command line."""
    default = Settings(strength=0.5)
    for one in asked("causal", default.steps, default.lines, arguments):
        settings = Settings(strength=one.strength, steps=one.steps, lines=one.lines, seed=one.seed)
        save(train(settings, one.kind), one.out)


if __name__ == "__main__":
    main()
