"""Load a Transformers sequence classifier and its tokenizer; refuse models that would give wrong numbers."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from ...shared.torch import choose_device, quiet_loading
from ..files import Source, fetch
from ..load import load_tokenizer, load_weights, most_tokens
from ..loading import Loading
from .labels import CLASSIFIER, read_labels


class Classifier(NamedTuple):
    """A model on its device and its tokenizer, with their labels and limits."""

    model: Any
    tokenizer: Any
    device: str
    labels: tuple[str, ...]
    """In the order of the model's outputs."""
    max_tokens: int | None
    """Longest text or pair in tokens, special ones included; None if the model names no limit."""
    vocabulary: int
    """Number of input embeddings."""
    token_types: int | None
    """Number of token types the model knows; 0 if it takes none, None if it takes any."""


def load_classifier(source: Source, loading: Loading) -> Classifier:
    """Load weights and tokenizer.

    Raises:
        ModelLoadError: no classification head, missing weights, unusable tokenizer or labels, no such device.
    """
    chosen = choose_device(loading.device)
    with quiet_loading():
        folder = fetch(source)
        tokenizer = load_tokenizer(folder, source)
        model = load_weights(folder, source, loading, chosen, CLASSIFIER.loader, f"a {CLASSIFIER.what}")
    labels = read_labels(model.config.id2label, source.name)
    return Classifier(
        model=model,
        tokenizer=tokenizer,
        device=chosen,
        labels=labels,
        max_tokens=most_tokens(model, tokenizer),
        vocabulary=model.get_input_embeddings().num_embeddings,
        token_types=_token_types(model),
    )


def _token_types(model: Any) -> int | None:
    if "token_type_ids" not in inspect.signature(model.forward).parameters:
        return 0
    number = getattr(model.config, "type_vocab_size", None)
    return None if number is None else int(number)
