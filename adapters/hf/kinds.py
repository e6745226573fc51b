"""Tell by its configuration what kind of model a checkpoint is, and refuse the wrong kind before weights are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...core.contracts.errors import ModelLoadError

_NAMES = {
    "WithLMHeadModel": "a masked language model; it needs the adapter hf-masked",
    "ForMaskedLM": "a masked language model; it needs the adapter hf-masked",
    "ForCausalLM": "a causal language model; it needs the adapter hf-causal",
    "LMHeadModel": "a causal language model; it needs the adapter hf-causal",
    "ForConditionalGeneration": "an encoder-decoder, or a vision-language model, which needs the adapter hf-vlm",
    "ForSequenceClassification": "a text classifier; it needs the adapter hf-classifier",
    "ForTokenClassification": "a token classifier",
    "ForQuestionAnswering": "a question-answering model",
    "ForImageClassification": "an image classifier",
    "Model": "an encoder without a head",
}


class Kind(NamedTuple):
    """The kind of model an adapter takes."""

    what: str
    """In words: `masked language model`."""
    loader: str
    """The auto class of Transformers that loads it."""
    fits: Callable[[str], bool]
    """Whether an architecture named in a configuration is of this kind."""


def check_kind(kind: Kind, config: Mapping[str, Any], name: str, *, trust_remote_code: bool) -> None:
    """Refuse a model whose configuration says that it is of another kind; one that says nothing passes.

    Raises:
        ModelLoadError: naming what it is instead, or that it brings code which is not trusted.
    """
    if kind.loader in (config.get("auto_map") or {}):
        if trust_remote_code:
            return
        raise ModelLoadError(
            f"model {name!r} brings its own code, which is not run unasked. "
            "Read it, then set trust_remote_code = true.",
            code="model.own-code",
        )
    named = [architecture for architecture in config.get("architectures") or () if isinstance(architecture, str)]
    if named and not any(map(kind.fits, named)):
        is_a = next((text for end, text in _NAMES.items() if named[0].endswith(end)), "another kind of model")
        raise ModelLoadError(f"model {name!r} is no {kind.what}: {named[0]} is {is_a}.", code="model.kind")
