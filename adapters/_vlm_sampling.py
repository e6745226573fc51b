"""Choose tokens: greedy, or drawn with Gumbel noise that belongs to the request alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.records import Generate

MAX_TOKENS = 256
"""Longest answer in tokens where neither the request nor the model names one."""


class Defaults(NamedTuple):
    """What the model's generation_config.json says."""

    temperature: float
    """0 for greedy decoding."""
    top_p: float
    top_k: int
    """0 for no limit."""
    max_tokens: int
    ends: frozenset[int]
    """Tokens that end an answer."""


class Chooser:
    """Chooses the next token of one answer; two choosers of equal requests choose alike.

    Adding Gumbel noise to log-probabilities and taking the largest draws from the distribution exactly. The noise
    comes from seed, sample number, attempt and prompt tokens, never from the batch or the device.
    """

    def __init__(self, request: Generate, defaults: Defaults, ids: Sequence[int]) -> None:
        wish = request.sampling
        self.temperature = defaults.temperature if wish.temperature is None else wish.temperature
        self._top_p = defaults.top_p if wish.top_p is None else wish.top_p
        self._top_k = defaults.top_k if wish.temperature is None else 0
        name = f"{wish.seed or 0}/{request.sample}/{request.attempt}/{','.join(map(str, ids))}"
        self._rng = np.random.Generator(
            np.random.Philox(key=int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))
        )

    def draw(self, logits: Any) -> int:
        """Return a token for logits [vocabulary] in float32; call once per step, with temperature above 0."""
        import torch

        scores = torch.log_softmax(logits.double() / self.temperature, -1)
        scores = self._cut(scores)
        noise = torch.from_numpy(self._rng.gumbel(size=len(scores))).to(scores.device)
        return int((scores + noise).argmax())

    def _cut(self, scores: Any) -> Any:
        """Leave only the likeliest tokens: `top_k` of them, then those that reach the probability `top_p`."""
        import torch

        if self._top_k:
            scores = scores.masked_fill(scores < scores.topk(min(self._top_k, len(scores))).values[-1], -torch.inf)
        if self._top_p < 1:
            ordered, order = scores.sort(descending=True, stable=True)
            share = ordered.softmax(-1)
            beyond = share.cumsum(-1) - share >= self._top_p
            beyond[0] = False
            scores = scores.masked_fill(torch.zeros_like(beyond).scatter(0, order, beyond), -torch.inf)
        return scores


def choose(logits: Any, choosers: Sequence[Chooser]) -> list[int]:
    """Return one token per row of logits [row, vocabulary]."""
    best: list[int] = logits.argmax(-1).tolist()
    return [
        chooser.draw(row.float()) if chooser.temperature > 0 else token
        for row, token, chooser in zip(logits, best, choosers, strict=True)
    ]


def read_defaults(config: Any, tokenizer: Any) -> Defaults:
    """Read a Transformers generation configuration."""
    sampled = bool(config.do_sample)
    ends = config.eos_token_id if config.eos_token_id is not None else tokenizer.eos_token_id
    ends = [ends] if isinstance(ends, int) else list(ends or ())
    return Defaults(
        temperature=float(config.temperature or 1.0) if sampled else 0.0,
        top_p=float(config.top_p or 1.0) if sampled else 1.0,
        top_k=int(config.top_k or 0) if sampled else 0,
        max_tokens=int(config.max_new_tokens or MAX_TOKENS),
        ends=frozenset(ends),
    )
