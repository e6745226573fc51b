"""Load a Transformers masked language model and its tokenizer, refusing whatever would give wrong numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core.contracts.errors import ModelLoadError
from ...shared.torch import DType, choose_device, quiet_loading
from ..files import Source, fetch
from ..kinds import Kind
from ..load import load_tokenizer, load_weights, most_tokens
from .pll import Tokens


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


def load_masked(source: Source, dtype: DType, device: str) -> Loaded:
    """Load weights and tokenizer.

    Raises:
        ModelLoadError: no masked-LM head, missing weights, no fast tokenizer, no mask token, no such device.
    """
    chosen = choose_device(device)
    with quiet_loading():
        folder = fetch(source)
        tokenizer = load_tokenizer(folder, source)
        if tokenizer.mask_token_id is None:
            raise ModelLoadError(
                f"the tokenizer of {source.name!r} has no mask token, so nothing can be masked.", code="model.tokenizer"
            )
        model = load_weights(folder, source, dtype, MASKED.loader, f"a {MASKED.what}").to(chosen)
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
