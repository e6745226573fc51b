"""An encoder that can be trained: loaded whole, asked for vectors, saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...core.contracts.errors import ModelLoadError, UsageError
from ..hf.encoder.files import MODULES, EncoderSource, Module, find_encoder
from ..hf.encoder.model import Encoder, count_tokens, load_encoder
from ..hf.files import find_source
from ..shared.torch import choose_device, quiet_loading
from .data import Floats, Ints
from .settings import Precision


class Trainee(NamedTuple):
    """An encoder, and the corpus' texts as it is asked for them."""

    encoder: Encoder
    texts: list[str]


def check_device(device: str, precision: Precision) -> None:
    """Refuse a device that the Trainer cannot be given, or that has no such precision.

    Raises:
        ModelLoadError: this machine has no such device.
        UsageError: a card by its number, or float16 without a GPU.
    """
    chosen = choose_device(device)
    if ":" in device:
        number = device.partition(":")[2]
        raise UsageError(
            f"device {device!r} names one card, and the Trainer takes all it sees. "
            f"Set CUDA_VISIBLE_DEVICES={number} and give --device cuda.",
            code="model.device",
            device=device,
        )
    if precision == "float16" and chosen != "cuda":
        raise UsageError(
            f"precision 'float16' needs a GPU, and the device is {chosen!r}. Give --precision bfloat16 or float32.",
            code="options.conflict",
            device=chosen,
        )


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
    """Load an encoder afresh, to be trained on some texts.

    Raises:
        ModelLoadError: it cannot be loaded, or a text is too long for it.
    """
    encoder = load_encoder(source, "float32", device, None)
    most = encoder.max_tokens
    for text, length in zip(texts, count_tokens(encoder, texts) or (), strict=False):
        if most is not None and length > most:
            raise ModelLoadError(
                f"a sentence has {length} tokens, {source.name!r} takes at most {most}: {text[:80]!r}. Shorten it, "
                "or choose a model for longer texts.",
                code="request.too-long",
            )
    return Trainee(encoder, list(texts))


def embed(trainee: Trainee, rows: Ints) -> Floats:
    """Return the vectors of some texts: [rows, width]."""
    texts, prompt = [trainee.texts[row] for row in rows], trainee.encoder.prompt
    vectors = trainee.encoder.model.encode(texts, prompt=prompt, batch_size=64, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float64)


def save_encoder(trainee: Trainee, folder: Path) -> None:
    """Write a sentence-transformers directory with safetensors weights and no card."""
    with quiet_loading():
        trainee.encoder.model.save(str(folder), create_model_card=False, safe_serialization=True)
