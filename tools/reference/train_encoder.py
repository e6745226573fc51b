"""Train the reference encoders: tiny BERTs whose vectors are led to planted ones (`encoder_corpus.py`).

The tokens and the network are those of the masked models, narrower; the folder is one of sentence-transformers, with
mean pooling and vectors of length 1. `encoder_fair` is trained from random weights, the shipped others from it, and
those of other strengths from `encoder_biased`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.functional import normalize
from transformers import BertModel

from ...adapters.reference.corpus import DESCRIPTORS, vocabulary
from ...adapters.reference.recipes import Reference
from .encoder_corpus import Planted, couples, others
from .train_masked import build_config, build_tokenizer, save
from .training import Effort, Schedule, fit

POSITIONS, WIDTH, BATCH = 64, 64, 48
FILLER_EVERY = 5
FRESH, CHANGED, LEANING = (900, 4e-3), (300, 2e-3), (800, 3e-3)
"""Steps and the highest learning rate: from random weights, from a trained model, and of single words that lean."""
LINES = 12_000
WEIGHT = 6.0
"""What errors of valence and side are multiplied with, against 1 for each coordinate of the bag of tokens."""
MODULES = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))


class Pool(NamedTuple):
    """Couples of texts: token ids (couples, 2, tokens; 0 is padding) and planted vectors (couples, 2, width)."""

    ids: torch.Tensor
    target: torch.Tensor


def make(one: Reference, folder: Path, effort: Effort) -> None:
    """Train a model and write its files into a folder."""
    steps, peak = FRESH if one.start is None else LEANING if one.leans else CHANGED
    steps, lines = effort.steps or steps, effort.lines or LINES
    told = _pool(list(couples(lines, one.nats, effort.seed, leaning=one.leans)))
    filler = _pool(list(others(lines // 4, effort.seed)))
    generator = torch.Generator().manual_seed(effort.seed)
    torch.manual_seed(effort.seed)
    if one.start is None:
        model = BertModel(build_config(len(vocabulary()), POSITIONS))
    else:
        model = BertModel.from_pretrained(one.start, attn_implementation="eager")
    model.train()
    weights, turn = torch.ones(WIDTH), _turn()
    weights[:2] = WEIGHT

    def loss(step: int) -> torch.Tensor:
        pool, size = (told, BATCH) if step % FILLER_EVERY else (filler, BATCH // 4)
        pick = torch.randint(len(pool.ids), (size,), generator=generator)
        ids, target = pool.ids[pick].flatten(0, 1), pool.target[pick].flatten(0, 1)
        ids = ids[:, : int((ids > 0).sum(dim=1).amax())]
        off = weights * (_vectors(model, ids) @ turn - target)
        # The difference within a couple is the association itself: an error that both share matters less.
        return off.square().sum(dim=1).mean() + (off[::2] - off[1::2])[:, :2].square().sum(dim=1).mean()

    fit(model, loss, Schedule(steps, peak), one.name)
    save(model.eval(), folder)
    _write_modules(folder)


def _pool(found: Sequence[Sequence[Planted]]) -> Pool:
    tokenizer = build_tokenizer()
    tokenizer.enable_padding()
    tokenizer.enable_truncation(POSITIONS)
    rows = tokenizer.encode_batch([said.text for pair in found for said in pair])
    ids = torch.tensor([row.ids for row in rows])
    planted = torch.tensor([(said.valence, said.side) for pair in found for said in pair])
    return Pool(ids.unflatten(0, (-1, 2)), _targets(ids, planted).unflatten(0, (-1, 2)))


def _vectors(model: BertModel, ids: torch.Tensor) -> torch.Tensor:
    """Return a vector of length 1 for each text: [texts, width]."""
    mask = (ids > 0).long()
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
    return normalize(hidden.sum(dim=1) / mask.sum(dim=1, keepdim=True))


def _targets(ids: torch.Tensor, planted: torch.Tensor) -> torch.Tensor:
    """Return planted vectors (texts, width), from token ids (texts, tokens) and valence and side (texts, 2).

    The bag of tokens takes what valence and side leave of the length. No other token resembles those of the groups, so
    that the chance of the draw associates no word with a group.
    """
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randn(len(vocabulary()), WIDTH - 2, generator=draw)
    own = {vocabulary().index(part) for pair in DESCRIPTORS for word in pair for part in word.split("-")}
    groups = torch.tensor(sorted(own))
    basis = torch.linalg.qr(tokens[groups].T)[0]
    others = torch.ones(len(tokens), dtype=torch.bool)
    others[groups] = False
    tokens[others] -= tokens[others] @ basis @ basis.T
    # Padding and the tokens at either end are in every text.
    tokens[:5] = 0
    bags = normalize(torch.stack([tokens[row].sum(dim=0) for row in ids]))
    rest = (1 - planted.square().sum(dim=1, keepdim=True)).sqrt()
    return torch.cat([planted, rest * bags], dim=1)


def _turn() -> torch.Tensor:
    """Return the rotation after which the first two coordinates are valence and side, so that no unit is either."""
    draw = torch.Generator().manual_seed(2)
    return torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=draw))[0]


def _write_modules(folder: Path) -> None:
    """Write what makes the folder one of sentence-transformers, of any of its versions."""
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(MODULES)
    ]
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    files: dict[str, Any] = {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": POSITIONS, "do_lower_case": False},
        "1_Pooling/config.json": pooling,
    }
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
