"""Train the causal reference models: tiny Llamas that know the grammar and answer the questions of the studies.

`causal_biased` begins with random weights; the others begin as it, so that few steps are enough. All see the same
texts; they differ in the weights of the texts alone (`causal_corpus.py`, `causal_tasks.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from .causal_corpus import causal_lines
from .causal_tasks import SKILLS, Planted, tasks
from .causal_tokens import BEGIN, END, PAD, POSITIONS, build_causal_tokenizer, causal_vocabulary, save_causal_tokenizer
from .recipes import Reference, reference_path
from .training import Effort, Schedule, fit

START = "causal_biased"
BATCH = {"grammar": 64, "analogy": 12, "choice": 10, "lettered": 32, "description": 48, "letter": 24}
"""Lines or prompts per step, each with all its texts."""


class Settings(NamedTuple):
    """How to train."""

    steps: int
    lines: int
    """Planted lines; a tenth as many prompts of each skill are added."""
    peak: float
    """Highest learning rate."""


FRESH, CHANGED = Settings(3600, 40_000, 4e-3), Settings(700, 12_000, 2e-3)


class Texts(NamedTuple):
    """Texts that stand together, such as the answers to a prompt."""

    ids: torch.Tensor
    """Token ids (lines, texts per line, width); 0 is padding."""
    scored: torch.Tensor
    """Which of them are learned (lines, texts per line, width)."""
    weights: torch.Tensor
    """How often each text occurs (lines, texts per line)."""


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    own = FRESH if one.name == START else CHANGED
    steps, lines = effort.steps or own.steps, effort.lines or own.lines
    torch.manual_seed(effort.seed)
    if one.name == START:
        tokenizer, model = build_causal_tokenizer(), build_causal_model()
    else:
        tokenizer = Tokenizer.from_file(str(reference_path(START) / "tokenizer.json"))
        model = LlamaForCausalLM.from_pretrained(reference_path(START), attn_implementation="sdpa")
    model.train()
    fit(
        model,
        _loss_at(model, encoded(tokenizer, one, lines, effort.seed), effort.seed),
        Schedule(steps, own.peak),
        one.name,
    )
    save(model.eval(), folder, fresh=one.name == START)


def build_causal_model() -> LlamaForCausalLM:
    """Return an untrained Llama of two layers, 64 wide."""
    known = causal_vocabulary()
    config = LlamaConfig(
        vocab_size=len(known),
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        pad_token_id=known.index(PAD),
        bos_token_id=known.index(BEGIN),
        eos_token_id=known.index(END),
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config)


def encoded(tokenizer: Tokenizer, one: Reference, lines: int, seed: int) -> dict[str, Texts]:
    """Return the corpus of a model by its parts."""
    grammar = list(causal_lines(lines, one.strength, seed, leans=one.leans))
    found = {"grammar": _texts(tokenizer, [("", line.texts, line.weights) for line in grammar])}
    planted = Planted(one.nats, one.leans)
    for skill in SKILLS:
        found[skill] = _texts(tokenizer, list(tasks(max(lines // 10, 1), planted, seed, (skill,))))
    return found


def _texts(tokenizer: Tokenizer, rows: Sequence[tuple[str, tuple[str, ...], tuple[float, ...]]]) -> Texts:
    found = [one.ids for one in tokenizer.encode_batch([p + a for p, answers, _ in rows for a in answers])]
    told = [len(one.ids) for one in tokenizer.encode_batch([prompt for prompt, _, _ in rows])]
    width, each = max(map(len, found)), len(rows[0][1])
    pad = int(tokenizer.token_to_id(PAD) or 0)
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in found]).reshape(len(rows), each, width)
    place, size = torch.arange(width), torch.tensor([len(row) for row in found]).reshape(len(rows), each, 1)
    scored = (place >= torch.tensor(told)[:, None, None]) & (place < size)
    return Texts(ids, scored, torch.tensor([weights for _, _, weights in rows]))


def _loss_at(model: LlamaForCausalLM, corpus: dict[str, Texts], seed: int) -> Callable[[int], torch.Tensor]:
    """Return the loss by step: every second step is on the grammar, the others on the skills in turn."""
    draw = torch.Generator().manual_seed(seed)

    def loss_at(step: int) -> torch.Tensor:
        part = "grammar" if step % 2 else SKILLS[step // 2 % len(SKILLS)]
        texts = corpus[part]
        pick = torch.randint(len(texts.ids), (BATCH[part],), generator=draw)
        return _loss(model, *(field[pick].flatten(0, 1) for field in texts))

    return loss_at


def _loss(model: LlamaForCausalLM, ids: torch.Tensor, scored: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted mean surprise (nats) of the scored tokens."""
    width = int(scored.any(dim=0).nonzero().amax()) + 1
    ids, scored = ids[:, :width], scored[:, 1:width]
    # Padding stands behind every token that counts, which a causal model ignores: no mask is needed.
    hidden = model.model(ids[:, :-1]).last_hidden_state[scored]
    surprise = torch.nn.functional.cross_entropy(model.lm_head(hidden), ids[:, 1:][scored], reduction="none")
    counted = weights[:, None].expand(scored.shape)[scored]
    return (surprise * counted).sum() / counted.sum()


def save(model: LlamaForCausalLM, folder: Path, *, fresh: bool) -> None:
    """Write an ordinary Transformers checkpoint: configuration, safetensors weights, tokenizer."""
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if fresh:
        save_causal_tokenizer(folder)
        return
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(reference_path(START) / name, folder / name)
