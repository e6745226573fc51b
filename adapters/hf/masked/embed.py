"""Sentence vectors of a masked language model: the mean of its last hidden states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
BUDGET = 8_192
"""Tokens of one forward pass."""


def mean_states(model: Any, texts: Sequence[Sequence[int]]) -> list[Vector]:
    """Return per text the mean over its tokens, special ones included, of the last hidden states: [width], float32.

    Texts of one length share a pass, so nothing is padded and no vector depends on the others.
    """
    import torch

    vectors: dict[int, Vector] = {}
    with torch.inference_mode():
        for part in _alike(texts):
            ids = torch.tensor([list(texts[place]) for place in part], device=model.device)
            states = model.base_model(input_ids=ids)[0].float().mean(dim=1).cpu().numpy()
            vectors.update(zip(part, states, strict=True))
    return [vectors[place] for place in range(len(texts))]


def _alike(texts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        by_length[len(text)].append(place)
    for length, places in by_length.items():
        size = max(1, BUDGET // max(length, 1))
        yield from (places[start : start + size] for start in range(0, len(places), size))
