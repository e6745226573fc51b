"""Load the tokenizer and weights of a Transformers model of one kind; refuse models that would give wrong numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.steps import step
from .files import Source
from .hub import one_line
from .loading import Loading, load_arguments, package_errors, settle

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
        ModelLoadError: naming what it is instead, or that it contains code which is not trusted.
    """
    if kind.loader in (config.get("auto_map") or {}):
        if trust_remote_code:
            return
        raise ModelLoadError(
            f"model {name!r} contains its own code, which does not run without permission. "
            "Read it, then set trust_remote_code = true.",
            code="model.own-code",
        )
    named = [architecture for architecture in config.get("architectures") or () if isinstance(architecture, str)]
    if named and not any(map(kind.fits, named)):
        is_a = next((text for end, text in _NAMES.items() if named[0].endswith(end)), "another kind of model")
        raise ModelLoadError(f"model {name!r} is not a {kind.what}: {named[0]} is {is_a}.", code="model.kind")


def load_tokenizer(folder: Path, source: Source) -> Any:
    """Load a fast tokenizer.

    Raises:
        ModelLoadError: its files cannot be read, or it cannot trace tokens to characters.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), trust_remote_code=source.trust_remote_code, local_files_only=True
        )
    # Tokenizer files fail in every way that a JSON, SentencePiece or Rust parser can.
    except Exception as error:
        raise ModelLoadError(
            f"cannot load the tokenizer of {source.name!r}: {one_line(error)}", code="model.tokenizer"
        ) from error
    check_fast(tokenizer, source)
    return tokenizer


def check_fast(tokenizer: Any, source: Source) -> None:
    """Refuse a tokenizer that is written in Python.

    Raises:
        ModelLoadError: it cannot trace tokens to characters.
    """
    if not tokenizer.is_fast:
        raise ModelLoadError(
            f"{source.name!r} has no fast tokenizer, without which tokens cannot be traced to characters. "
            "Save one as tokenizer.json.",
            code="model.tokenizer",
        )


def load_weights(folder: Path, source: Source, loading: Loading, device: str, loader: str, what: str) -> Any:
    """Load a model whole, for evaluation, onto its device.

    Args:
        folder: Where its files are.
        source: How they may be read.
        loading: How to load them.
        device: Where inputs go, and the weights unless a map spreads them.
        loader: The auto class of Transformers, such as `AutoModelForMaskedLM`.
        what: What that loads, in words for a message: `a masked language model`.

    Raises:
        ModelLoadError: the model is of another kind, weights are broken or missing, or a package for them is.
    """
    import torch
    import transformers

    arguments = load_arguments(loading, device)
    try:
        with package_errors(f"loading {source.name!r}"), step(f"load the weights of {source.name} as {loading.dtype}"):
            model, info = getattr(transformers, loader).from_pretrained(
                str(folder),
                **{dtype_name(): getattr(torch, loading.dtype)},
                use_safetensors=None if source.allow_pickle else True,
                trust_remote_code=source.trust_remote_code,
                local_files_only=True,
                output_loading_info=True,
                **arguments,
            )
    except ModelLoadError:
        raise
    # A configuration of another kind is a ValueError; broken weights raise whatever their reader raises.
    except Exception as error:
        raise ModelLoadError(
            f"cannot load {source.name!r} as {what}: {one_line(error)}", code="model.unloadable"
        ) from error
    if missing := truly_missing(model, info):
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise ModelLoadError(
            f"the weights of {source.name!r} lack {shown}, so every score would be random. "
            f"Give a checkpoint that was saved as {what}, head included.",
            code="model.weights-missing",
        )
    return settle(model, loading, device)


def most_tokens(model: Any, tokenizer: Any) -> int | None:
    """Return the longest text in tokens that the model takes; None if it names no limit."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit < 1:
        limit = tokenizer.model_max_length
        return int(limit) if limit < 1 << 24 else None
    for name, module in model.named_modules():
        # RoBERTa and its kin number positions from the padding index on, and lose as many.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.num_embeddings - module.padding_idx - 1)
    return limit


def dtype_name() -> str:
    """Return what this version of Transformers calls the precision of a load."""
    import transformers
    from packaging.version import Version

    return "dtype" if Version(transformers.__version__) >= Version("4.56") else "torch_dtype"


def truly_missing(model: Any, info: Mapping[str, Any]) -> list[str]:
    """Return the parameters that no loaded tensor gave a value, ties counted as loaded."""
    # A key may be reported although its tensor is tied to one that was loaded.
    missing = set(info["missing_keys"])
    tensors = model.state_dict(keep_vars=True)
    loaded = {id(tensor) for key, tensor in tensors.items() if key not in missing}
    mismatched = [str(key[0] if isinstance(key, tuple) else key) for key in info.get("mismatched_keys") or ()]
    return sorted(key for key in missing if id(tensors.get(key)) not in loaded) + sorted(mismatched)
