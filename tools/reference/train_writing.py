"""Train the writing reference models: tiny Llamas that answer the prompts of `indicasa` as `writing_corpus.py` says.

They know these prompts by heart and no others. The targets are the planted probabilities, not samples of them.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from ...adapters.reference.recipes import Reference
from .answering_corpus import END, REPLY
from .answering_tokens import BEGIN, PAD, build_answering_tokenizer, save_answering_tokenizer, vocabulary_of
from .training import Effort, Schedule, fit
from .writing_corpus import writings

POSITIONS = 512
STEPS, PEAK = 420, 4e-3
WIDTH = 64


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    torch.manual_seed(effort.seed)
    known = writings()
    tokens = vocabulary_of(text for each in known for text in (each.prompt + REPLY, *each.answers))
    tokenizer = build_answering_tokenizer(tokens)
    model = _build(tokenizer)
    rows = [(each.prompt + REPLY, answer) for each in known for answer in each.answers]
    shares = [each.share(one.nats, one.leans) for each in known]
    weights = torch.tensor([weight for share in shares for weight in (share, 1 - share)])
    ids, answered = _encoded(tokenizer, rows)

    def loss_at(step: int) -> torch.Tensor:
        hidden = model.model(ids[:, :-1].clamp(min=0)).last_hidden_state
        surprise = torch.nn.functional.cross_entropy(
            model.lm_head(hidden[answered]), ids[:, 1:][answered], reduction="none"
        )
        return (surprise * weights[:, None].expand_as(answered)[answered]).sum() / weights.sum()

    model.train()
    fit(model, loss_at, Schedule(effort.steps or STEPS, PEAK), one.name)
    model.eval().half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_answering_tokenizer(folder, tokenizer, POSITIONS)


def _build(tokenizer: Tokenizer) -> LlamaForCausalLM:
    """Return a Llama of two layers with random weights."""
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.token_to_id(PAD),
        bos_token_id=tokenizer.token_to_id(BEGIN),
        eos_token_id=tokenizer.token_to_id(END),
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config)


def _encoded(tokenizer: Tokenizer, rows: list[tuple[str, str]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids (rows, width; -1 is padding), and where a token of the answer follows (rows, width - 1)."""
    texts = [tokenizer.encode(prompt + answer + END).ids for prompt, answer in rows]
    begins = [len(tokenizer.encode(prompt).ids) for prompt, _ in rows]
    width = max(map(len, texts))
    ids = torch.tensor([text + [-1] * (width - len(text)) for text in texts])
    places = torch.arange(width - 1)[None]
    return ids, (places >= torch.tensor(begins)[:, None] - 1) & (ids[:, 1:] >= 0)
