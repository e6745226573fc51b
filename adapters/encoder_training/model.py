"""An encoder that can be trained: loaded whole, run forwards with gradients in buckets of like length, saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.contracts.errors import ModelLoadError
from ..hf.encoder.files import MODULES, EncoderSource, Module, find_encoder
from ..hf.encoder.model import Encoder, EncoderScorer, count_tokens, load_encoder
from ..hf.files import find_source
from ..shared.torch import quiet_loading
from .data import Ints
from .similarity import Floats

BUCKET = 32
"""Sentences of one padded forward pass where batches are cut by length."""


class Trainee(NamedTuple):
    """An encoder, and the corpus' texts as it is asked for them."""

    encoder: Encoder
    texts: list[str]
    lengths: Ints
    """Tokens of each text; characters where the tokenizer does not tell."""


def find_model(model: str) -> EncoderSource:
    """Find a sentence-transformers model, or a directory of a Transformers model, which is pooled by its mean.

    Raises:
        ModelLoadError: it is neither, or incomplete.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir() or (folder / MODULES).is_file():
        return find_encoder(model)
    source = find_source(model)
    module = Module("sentence_transformers.models.Transformer", "")
    return EncoderSource(source.name, source.digest, (module,), folder, {})


def open_trainee(source: EncoderSource, texts: Sequence[str], device: str) -> Trainee:
    """Load an encoder afresh, to be trained on some texts."""
    encoder = load_encoder(source, "float32", device, None)
    lengths = count_tokens(encoder, texts)
    if lengths is None:
        lengths = [len(text) for text in texts]
    for place, length in enumerate(lengths):
        if encoder.max_tokens is not None and length > encoder.max_tokens:
            raise ModelLoadError(
                f"a sentence has {length} tokens, {source.name!r} takes at most {encoder.max_tokens}: "
                f"{texts[place][:80]!r}. Shorten it, or choose a model for longer texts."
            )
    return Trainee(encoder, [encoder.prompt + text for text in texts], np.array(lengths))


def embed(trainee: Trainee, rows: Ints) -> Floats:
    """Return the vectors of some texts without gradients: [rows, width]. Texts of one length share a pass."""
    known = [int(length) for length in trainee.lengths[rows]]
    # The scorer puts the prompt before each text itself.
    plain = trainee.encoder._replace(prompt="")
    vectors = EncoderScorer(plain).embed([trainee.texts[row] for row in rows], known)
    if any(vector is None for vector in vectors):
        raise ModelLoadError("a sentence does not fit into memory. Choose a smaller model, or another --device.")
    return np.array(vectors, dtype=np.float64)


def forward(trainee: Trainee, rows: Ints, buckets: bool = True) -> Any:
    """Return the vectors of some texts with gradients, in their order: [rows, width].

    With `buckets` the rows are sorted by length and padded only within passes of `BUCKET`; else all in one pass.
    Dropout apart, the vectors are the same.
    """
    import torch

    order = np.argsort(trainee.lengths[rows], kind="stable") if buckets else np.arange(len(rows))
    size = BUCKET if buckets else len(rows)
    passes = [_pass(trainee, rows[order[start : start + size]]) for start in range(0, len(rows), size)]
    back = torch.as_tensor(np.argsort(order), device=trainee.encoder.device)
    return torch.cat(passes)[back]


def _pass(trainee: Trainee, rows: Ints) -> Any:
    model = trainee.encoder.model
    # Renamed in version 5 of sentence-transformers.
    prepare = getattr(model, "preprocess", None) or model.tokenize
    features = prepare([trainee.texts[row] for row in rows])
    placed = {name: value.to(model.device) if hasattr(value, "to") else value for name, value in features.items()}
    return model(placed)["sentence_embedding"]


def save_encoder(trainee: Trainee, folder: Path) -> None:
    """Write a sentence-transformers directory with safetensors weights and no card."""
    with quiet_loading():
        trainee.encoder.model.save(str(folder), create_model_card=False, safe_serialization=True)
