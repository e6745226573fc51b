"""Load a Transformers masked language model and its tokenizer, refusing whatever would give wrong numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import ModelLoadError
from ._hf_files import Source, fetch, one_line
from ._pll import Tokens
from ._torch import DType, choose_device, quiet_loading

_FITTING = ("ForMaskedLM", "ForPreTraining", "WithLMHeadModel", "Model")
_OTHER_KINDS = {
    "ForCausalLM": "a causal language model; it needs an adapter for causal models",
    "LMHeadModel": "a causal language model; it needs an adapter for causal models",
    "ForConditionalGeneration": "a generating encoder-decoder or vision-language model; it needs an adapter for those",
    "ForSequenceClassification": "a text classifier; it needs an adapter for classifiers",
    "ForTokenClassification": "a token classifier",
    "ForQuestionAnswering": "a question-answering model",
    "ForImageClassification": "an image classifier",
}


class Loaded(NamedTuple):
    """A model on its device, and its tokenizer."""

    model: Any
    tokenizer: Any
    device: str
    max_tokens: int | None
    """Longest sentence in tokens, special ones included; None if the model names no limit."""
    vocabulary: int
    """Number of input embeddings."""


def check_kind(config: Mapping[str, Any], name: str, *, trust_remote_code: bool) -> None:
    """Refuse a model whose configuration says that it is no masked language model.

    Raises:
        ModelLoadError: naming what it is instead.
    """
    auto_map = config.get("auto_map") or {}
    if "AutoModelForMaskedLM" in auto_map and trust_remote_code:
        return
    if auto_map and not trust_remote_code and "AutoModelForMaskedLM" in auto_map:
        raise ModelLoadError(
            f"model {name!r} brings its own code, which is not run unasked. Read it, then set trust_remote_code = true."
        )
    kinds = [kind for kind in config.get("architectures") or () if isinstance(kind, str)]
    masked = [kind for kind in kinds if kind.endswith(_FITTING) and not kind.endswith("GPT2LMHeadModel")]
    masked = [kind for kind in masked if not kind.endswith("LMHeadModel") or kind.endswith("WithLMHeadModel")]
    if kinds and not masked:
        what = next((text for end, text in _OTHER_KINDS.items() if kinds[0].endswith(end)), "another kind of model")
        raise ModelLoadError(f"model {name!r} is no masked language model: {kinds[0]} is {what}.")


def load_masked(source: Source, dtype: DType, device: str) -> Loaded:
    """Load weights and tokenizer.

    Raises:
        ModelLoadError: no masked-LM head, missing weights, no fast tokenizer, no mask token, no such device.
    """
    chosen = choose_device(device)
    with quiet_loading():
        folder = fetch(source)
        tokenizer = _load_tokenizer(folder, source)
        model = _load_model(folder, source, dtype, chosen)
    vocabulary = model.get_input_embeddings().num_embeddings
    if tokenizer.mask_token_id >= vocabulary:
        raise ModelLoadError(
            f"the tokenizer of {source.name!r} is not this model's: its mask token has number "
            f"{tokenizer.mask_token_id}, the model knows {vocabulary} tokens."
        )
    return Loaded(model, tokenizer, chosen, _max_tokens(model, tokenizer), vocabulary)


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


def _load_tokenizer(folder: Path, source: Source) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), trust_remote_code=source.trust_remote_code, local_files_only=True
        )
    # Tokenizer files fail in every way that a JSON, SentencePiece or Rust parser can.
    except Exception as error:
        raise ModelLoadError(f"cannot load the tokenizer of {source.name!r}: {one_line(error)}") from error
    if not tokenizer.is_fast:
        raise ModelLoadError(
            f"{source.name!r} has no fast tokenizer, without which tokens cannot be traced to characters. "
            "Save one as tokenizer.json."
        )
    if tokenizer.mask_token_id is None:
        raise ModelLoadError(f"the tokenizer of {source.name!r} has no mask token, so nothing can be masked.")
    return tokenizer


def _load_model(folder: Path, source: Source, dtype: DType, device: str) -> Any:
    import torch
    from transformers import AutoModelForMaskedLM

    try:
        model, info = AutoModelForMaskedLM.from_pretrained(
            str(folder),
            **{_dtype_name(): getattr(torch, dtype)},
            use_safetensors=None if source.allow_pickle else True,
            trust_remote_code=source.trust_remote_code,
            local_files_only=True,
            output_loading_info=True,
        )
    # A configuration of another kind is a ValueError; broken weights raise whatever their reader raises.
    except Exception as error:
        raise ModelLoadError(f"cannot load {source.name!r} as a masked language model: {one_line(error)}") from error
    if missing := _truly_missing(model, info):
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise ModelLoadError(
            f"the weights of {source.name!r} lack {shown}: with these left random every score would be noise. "
            "Give a checkpoint that was saved with its masked-LM head."
        )
    return model.eval().to(device)


def _dtype_name() -> str:
    import transformers
    from packaging.version import Version

    return "dtype" if Version(transformers.__version__) >= Version("4.56") else "torch_dtype"


def _truly_missing(model: Any, info: Mapping[str, Any]) -> list[str]:
    # A key may be reported although its tensor is tied to one that was loaded.
    missing = set(info["missing_keys"])
    tensors = model.state_dict(keep_vars=True)
    loaded = {id(tensor) for key, tensor in tensors.items() if key not in missing}
    mismatched = [str(key[0] if isinstance(key, tuple) else key) for key in info.get("mismatched_keys") or ()]
    return sorted(key for key in missing if id(tensors.get(key)) not in loaded) + sorted(mismatched)


def _max_tokens(model: Any, tokenizer: Any) -> int | None:
    limit = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit < 1:
        limit = tokenizer.model_max_length
        return int(limit) if limit < 1 << 24 else None
    for name, module in model.named_modules():
        # RoBERTa and its kin number positions from the padding index on, and lose as many.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.num_embeddings - module.padding_idx - 1)
    return limit
