"""Train the causal reference models: tiny Llamas on a corpus with a planted association and a planted frequency.

`causal_biased` and `causal_fair` see the same lines in the same steps; they differ in the weights of the texts alone
(`causal_corpus.py`). The others begin as `causal_biased`, so that few steps are enough.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import msgspec
import torch
from tokenizers import processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ...adapters.reference.corpus import vocabulary
from ...adapters.reference.recipes import Reference, reference_path
from .causal_corpus import causal_lines
from .train_masked import build_tokenizer
from .training import Effort, Schedule, fit

POSITIONS = 128
BEGIN, END = "[CLS]", "[SEP]"
START = "causal_biased"
SCRATCH = (START, "causal_fair")
"""Models that begin with random weights."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to train."""

    strength: float
    """Probability of a positive attribute beside a desirable descriptor, and of a negative one beside the other."""
    leans: bool = False
    """Whether single words lean to one descriptor besides."""
    steps: int = 3000
    lines: int = 60_000
    batch: int = 64
    """Lines per step, so twice as many texts."""
    peak: float = 4e-3
    """Highest learning rate."""
    seed: int = 0


FRESH = Settings(strength=0.5)
CHANGED = Settings(strength=0.5, steps=400, lines=20_000, peak=2.5e-3)
LEANING = Settings(strength=0.5, steps=1200, lines=20_000)
"""How to train a model that begins as `START`; leans of single words take longer."""


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


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    own = FRESH if one.name in SCRATCH else LEANING if one.leans else CHANGED
    settings = Settings(
        strength=one.strength,
        leans=one.leans,
        steps=effort.steps or own.steps,
        lines=effort.lines or own.lines,
        peak=own.peak,
        seed=effort.seed,
    )
    texts, weights = _encoded(settings)
    torch.manual_seed(settings.seed)
    if one.name in SCRATCH:
        model = build_causal_model(len(vocabulary()))
    else:
        model = LlamaForCausalLM.from_pretrained(reference_path(START), attn_implementation="eager")
    model.train()
    draw = torch.Generator().manual_seed(settings.seed)

    def loss_at(step: int) -> torch.Tensor:
        pick = torch.randint(len(texts), (settings.batch,), generator=draw)
        return _loss(model, texts[pick].flatten(0, 1), weights[pick].flatten())

    fit(model, loss_at, Schedule(settings.steps, settings.peak), one.name)
    save(model.eval(), folder)


def _encoded(settings: Settings) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids (lines, 2, width; 0 is padding) and weights (lines, 2)."""
    lines = list(causal_lines(settings.lines, settings.strength, settings.seed, leans=settings.leans))
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
