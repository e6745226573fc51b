"""The encoder that is trained: find it, load it, and compute vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core.contracts.errors import ModelLoadError
from ..hf.encoder.allowed import MODULES, Module
from ..hf.encoder.files import EncoderSource, find_encoder
from ..hf.encoder.model import Encoder, count_tokens, load_encoder
from ..hf.files import find_source
from ..hf.loading import Loading
from .data import Floats, Texts
from .settings import Pooling


def find_model(model: str) -> EncoderSource:
    """Find a sentence-transformers model, or a directory of a Transformers model (mean pooling).

    Raises:
        ModelLoadError: it is neither, or incomplete.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir() or (folder / MODULES).is_file():
        return find_encoder(model)
    source = find_source(model)
    module = Module("sentence_transformers.models.Transformer", "")
    return EncoderSource(source.name, source.digest, (module,), folder, {})


def open_encoder(source: EncoderSource, texts: Texts, device: str, pooling: Pooling = "own") -> Encoder:
    """Load an encoder from its files, and check that it can read these texts.

    A pooling other than `own` takes the place of all modules after the Transformer, such as a normalisation.

    Raises:
        ModelLoadError: it cannot be loaded, or a text is too long for it.
    """
    encoder = load_encoder(source, Loading(device=device), None)
    most = encoder.max_tokens
    for text, length in zip(texts, count_tokens(encoder, texts.tolist()) or (), strict=False):
        if most is not None and length > most:
            problem = f"a sentence has {length} tokens, but {source.name!r} reads {most} at most: {text[:80]!r}"
            raise ModelLoadError(f"{problem}. Shorten it, or choose a model for longer texts.", code="request.too-long")
    if pooling == "own":
        return encoder
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling as Module_

    transformer = encoder.model[0]
    modules = [transformer, Module_(transformer.get_embedding_dimension(), pooling)]
    return encoder._replace(model=SentenceTransformer(modules=modules, device=encoder.device))


def embed(encoder: Encoder, texts: Texts) -> Floats:
    """Return one vector per text: [texts, width]."""
    vectors = encoder.model.encode(texts.tolist(), prompt=encoder.prompt, batch_size=64, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float64)
