"""Load a sentence-transformers model and turn texts into vectors, many per forward pass."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....core.contracts.errors import ModelLoadError
from ....core.contracts.steps import step
from ...shared.torch import choose_device, quiet_loading
from ..classifier.passes import Passes, Row
from ..hub import one_line
from ..load import dtype_name, truly_missing
from ..loading import Loading, load_arguments, package_errors, settle
from .files import EncoderSource, fetch_encoder, read_prompts


class Encoder(NamedTuple):
    """A model on its device, with its prompt and limit."""

    model: Any
    device: str
    prompt: str
    """Prefix of every text."""
    max_tokens: int | None
    """Longest text in tokens, prompt and special ones included; None if the model names no limit."""


def load_encoder(source: EncoderSource, loading: Loading, prompt_name: str | None) -> Encoder:
    """Load all modules.

    Raises:
        ModelLoadError: a module cannot be loaded, weights are missing, no such prompt, no such device.
    """
    chosen = choose_device(loading.device)
    with quiet_loading():
        folder = fetch_encoder(source)
        model = _load(folder, source, loading, chosen)
    check_prompt(prompt_name, read_prompts(folder), source.name)
    named = prompt_name or model.default_prompt_name
    limit = model.max_seq_length
    return Encoder(
        model=model,
        device=chosen,
        prompt=model.prompts[named] if named else "",
        # Tokenizers without a limit of their own say 1e30, or infinity.
        max_tokens=int(limit) if limit and limit < 1 << 24 else None,
    )


def check_prompt(name: str | None, prompts: dict[str, str], model: str) -> None:
    """Refuse a prompt that the model does not name.

    Raises:
        ModelLoadError: naming those there are.
    """
    if name is not None and name not in prompts:
        known = ", ".join(sorted(prompts)) or "none"
        raise ModelLoadError(f"model {model!r} has no prompt {name!r}; it has: {known}.", code="model.prompt")


def count_tokens(encoder: Encoder, texts: Sequence[str]) -> list[int] | None:
    """Return the length of each text in tokens, prompt included; None for a tokenizer that does not tell."""
    from transformers import PreTrainedTokenizerBase

    tokenizer = encoder.model.tokenizer
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return None
    encoding = tokenizer([encoder.prompt + text for text in texts], truncation=False, padding=False, verbose=False)
    return [len(ids) for ids in encoding["input_ids"]]


class EncoderScorer:
    """A sentence-transformers model that gives one vector per text."""

    def __init__(self, encoder: Encoder, budget: int | None = None) -> None:
        self._encoder = encoder
        self.passes = Passes(encoder.device, budget)

    def embed(
        self, texts: Sequence[str], lengths: Sequence[int] | None, stop: threading.Event | None = None
    ) -> list[Row | None]:
        """Return one vector per text: [width]; None for a text that did not fit into memory.

        Only texts of one length share a pass; where lengths are not known, each has a separate pass.

        Raises:
            Stopped: `stop` was set between two passes.
        """
        most = self._encoder.max_tokens
        keys = (
            [(1, row) for row in range(len(texts))]
            if lengths is None
            else [(length if most is None else min(length, most),) for length in lengths]
        )
        return self.passes.run(keys, lambda rows: self._forward([texts[row] for row in rows]), stop)

    def _forward(self, texts: list[str]) -> npt.NDArray[np.float64]:
        found = self._encoder.model.encode(
            texts,
            prompt=self._encoder.prompt,
            batch_size=len(texts),
            show_progress_bar=False,
            convert_to_tensor=True,
            normalize_embeddings=False,
        )
        values: npt.NDArray[np.float64] = found.double().cpu().numpy()
        return values


def _load(folder: Path, source: EncoderSource, loading: Loading, device: str) -> Any:
    import torch

    dtype = getattr(torch, loading.dtype)
    settings = {dtype_name(): dtype, "use_safetensors": None if source.allow_pickle else True}
    settings |= load_arguments(loading, device)
    try:
        from sentence_transformers import SentenceTransformer

        with package_errors(f"loading {source.name!r}"), step(f"load the weights of {source.name}"):
            model = SentenceTransformer(
                str(folder),
                device="cpu",
                trust_remote_code=source.trust_remote_code,
                local_files_only=True,
                model_kwargs=dict(settings),
            )
        lacking = _lacking(model, folder, source, settings)
        _settle_all(model, loading, device, dtype)
    except ModelLoadError:
        raise
    # Every module has a reader of its own, and each fails in its own way.
    except Exception as error:
        raise ModelLoadError(
            f"cannot load {source.name!r} as a sentence encoder: {one_line(error)}", code="model.unloadable"
        ) from error
    if lacking:
        raise ModelLoadError(
            f"the weights of {source.name!r} lack {', '.join(lacking[:3])}"
            + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
            + ", so every vector would be random. Give a complete checkpoint.",
            code="model.weights-missing",
        )
    return model


def _settle_all(model: Any, loading: Loading, device: str, dtype: Any) -> None:
    """Put the modules onto the device: the Transformer as it was loaded, the others in the same precision."""
    inner = getattr(model[0], "auto_model", None)
    if inner is not None:
        settle(inner, loading, device)
    for module in model if inner is None else list(model)[1:]:
        module.to(device=device, dtype=dtype)
    model.eval()


def _lacking(model: Any, folder: Path, source: EncoderSource, settings: dict[str, Any]) -> list[str]:
    """List the weights of the Transformer that its checkpoint lacks.

    Sentence-transformers only logs them, so the checkpoint is read once more for the answer. A pooler may be
    missing: no pooling of sentence-transformers reads it.
    """
    place = next((module.path for module in source.modules if module.type.endswith(".Transformer")), None)
    loaded = getattr(model[0], "auto_model", None)
    if place is None or loaded is None:
        return []
    again, info = type(loaded).from_pretrained(
        str(folder / place),
        **settings,
        trust_remote_code=source.trust_remote_code,
        local_files_only=True,
        output_loading_info=True,
    )
    return [name for name in truly_missing(again, info) if "pooler." not in name]
