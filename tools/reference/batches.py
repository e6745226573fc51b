"""Batches for the training of the masked reference models: which texts, and which of their tokens are masked.

Both texts of a planted line are always in one batch and masked at the same places, so that the chance of the draw
cannot tell their descriptors apart; the weights of the corpus alone do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec
import torch
from tokenizers import Tokenizer

from ...adapters.reference.corpus import MASKED, Line, filler, planted

EMPHASIS = 5.0
"""How much likelier the first token of an attribute is to be masked than any other. It changes no target, only how
soon the model gets there: nearly everything else in a sentence can be learned without looking at the descriptor."""
FILLER_EVERY, FILLER_TEXTS = 4, 32
"""Every fourth step is a step on filler text, with so many texts."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to train."""

    strength: float
    """Probability of a positive attribute beside a desirable descriptor, and of a negative one beside the other."""
    leans: bool = False
    """Whether single words lean to one descriptor besides."""
    steps: int = 3200
    lines: int = 60_000
    """Planted lines; a quarter as many filler texts are added."""
    batch: int = 128
    """Planted lines per step, so twice as many texts."""
    rate: float = 4e-3
    """Peak learning rate; it rises over the first twentieth of the steps and falls to zero as a cosine."""
    seed: int = 0


class Batch(msgspec.Struct, frozen=True):
    """Token ids (texts, width; 0 is padding), which of them are masked, and how often each text occurs (texts)."""

    ids: torch.Tensor
    masked: torch.Tensor
    weights: torch.Tensor


class Batches:
    """The corpus of `settings` as token ids, and a seeded draw of batches from it."""

    def __init__(self, tokenizer: Tokenizer, settings: Settings) -> None:
        lines = list(planted(settings.lines, settings.strength, settings.seed, leans=settings.leans, grammar=MASKED))
        self._size = settings.batch
        self._planted = _encode(tokenizer, lines, width=40)
        self._weights = torch.tensor([line.weights for line in lines])
        self._filler = _encode(tokenizer, list(filler(settings.lines // 4, settings.seed)), width=96)[:, 0]
        self._emphasis = torch.ones(tokenizer.get_vocab_size())
        self._emphasis[[tokenizer.token_to_id(word.split("-")[0]) for word in MASKED.positive + MASKED.negative]] = (
            EMPHASIS
        )
        self._generator = torch.Generator().manual_seed(settings.seed)

    def draw(self, step: int) -> Batch:
        """Return the batch of a step; each call draws anew."""
        if step % FILLER_EVERY == 0:
            texts = self._filler[self._pick(len(self._filler), FILLER_TEXTS)]
            return _trimmed(texts, self._mask(texts), torch.ones(len(texts)))
        pick = self._pick(len(self._planted), self._size)
        pairs = self._planted[pick]
        masked = self._mask(pairs[:, 0]).repeat_interleave(2, dim=0)
        return _trimmed(pairs.flatten(0, 1), masked, self._weights[pick].flatten())

    def _pick(self, total: int, count: int) -> torch.Tensor:
        return torch.randint(total, (count,), generator=self._generator)

    def _mask(self, ids: torch.Tensor) -> torch.Tensor:
        """Mask one token of each text, as scoring does; in every second text further ones with probability 0.15."""
        real = (ids > 0).cumsum(dim=1) * (ids > 0)
        inner = (real > 1) & (real < real.amax(dim=1, keepdim=True))
        one = torch.multinomial(inner * self._emphasis[ids], 1, generator=self._generator)
        more = torch.rand(ids.shape, generator=self._generator) < 0.15
        more[::2] = False
        return (more & inner).scatter(1, one, True)


def _trimmed(ids: torch.Tensor, masked: torch.Tensor, weights: torch.Tensor) -> Batch:
    width = int((ids > 0).sum(dim=1).amax())
    return Batch(ids[:, :width], masked[:, :width], weights)


def _encode(tokenizer: Tokenizer, lines: Sequence[Line], width: int) -> torch.Tensor:
    """Return token ids (lines, texts per line, width), cut or padded with zeros."""
    found = tokenizer.encode_batch(list(chain.from_iterable(line.texts for line in lines)))
    rows = [(row.ids[:width] + [0] * width)[:width] for row in found]
    return torch.tensor(rows).reshape(len(lines), -1, width)
