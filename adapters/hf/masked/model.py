"""A masked language model of Transformers: load it completely or refuse it, encode texts, and embed them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....core.contracts.errors import ModelLoadError
from ...shared.torch import choose_device, quiet_loading
from ..files import Source, fetch
from ..load import Kind, load_tokenizer, load_weights, most_tokens
from ..loading import Loading
from .pll import Tokens

Vector = npt.NDArray[np.float32]
BUDGET = 8_192
"""Tokens of one forward pass."""


def _fits(architecture: str) -> bool:
    if architecture.endswith("LMHeadModel"):
        return architecture.endswith("WithLMHeadModel")
    return architecture.endswith(("ForMaskedLM", "ForPreTraining", "Model"))


MASKED = Kind("masked language model", "AutoModelForMaskedLM", _fits)


class Loaded(NamedTuple):
    """A model on its device, and its tokenizer."""

    model: Any
    tokenizer: Any
    device: str
    max_tokens: int | None
    """Longest sentence in tokens, special ones included; None if the model names no limit."""
    vocabulary: int
    """Number of input embeddings."""


def load_masked(source: Source, loading: Loading) -> Loaded:
    """Load weights and tokenizer.

    Raises:
        ModelLoadError: no masked-LM head, missing weights, no fast tokenizer, no mask token, no such device.
    """
    chosen = choose_device(loading.device)
    with quiet_loading():
        folder = fetch(source)
        tokenizer = load_tokenizer(folder, source)
        if tokenizer.mask_token_id is None:
            raise ModelLoadError(
                f"the tokenizer of {source.name!r} has no mask token, so nothing can be masked.", code="model.tokenizer"
            )
        model = load_weights(folder, source, loading, chosen, MASKED.loader, f"a {MASKED.what}")
    vocabulary = model.get_input_embeddings().num_embeddings
    if tokenizer.mask_token_id >= vocabulary:
        raise ModelLoadError(
            f"the tokenizer of {source.name!r} is not this model's: its mask token has number "
            f"{tokenizer.mask_token_id}, the model knows {vocabulary} tokens.",
            code="model.tokenizer",
        )
    return Loaded(model, tokenizer, chosen, most_tokens(model, tokenizer), vocabulary)


def encode(tokenizer: Any, texts: Sequence[str]) -> list[Tokens]:
    """Tokenise texts whole: special tokens added, nothing cut, nothing padded."""
    unscored = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    encodings = tokenizer(list(texts), truncation=False, padding=False, verbose=False).encodings
    return [
        Tokens(
            e.ids,
            e.offsets,
            e.word_ids,
            [bool(s) or i in unscored for i, s in zip(e.ids, e.special_tokens_mask, strict=True)],
        )
        for e in encodings
    ]


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
