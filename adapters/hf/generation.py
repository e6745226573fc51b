"""Generation settings in a Transformers model's files: sampling, length, and the tokens that end answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.sampling import Defaults
from .files import Source, find_file, read_config

SETTINGS = "generation_config.json"


def read_settings(source: Source) -> dict[str, Any]:
    """Read a model's generation_config.json; empty if it has none.

    The file is read as it is: releases of Transformers differ in what they put in for what it leaves open.

    Raises:
        ModelLoadError: it is no JSON object.
    """
    path = find_file(source, SETTINGS)
    return {} if path is None else read_config(path)


def sampling_defaults(settings: dict[str, Any]) -> Defaults:
    """Return the default sampling: greedy, unless the model's settings have `do_sample`."""
    if not settings.get("do_sample"):
        return Defaults()
    temperature, top_p = settings.get("temperature"), settings.get("top_p")
    return Defaults(
        temperature=1.0 if temperature is None else float(temperature),
        top_p=1.0 if top_p is None else float(top_p),
        top_k=int(settings.get("top_k") or 0),
    )


def named_ends(settings: Mapping[str, Any], config: Mapping[str, Any], tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end an answer by a model's files alone: what `end_tokens` finds in a loaded model.

    Args:
        settings: Its generation_config.json; empty if it has none, and its config.json counts.
        config: Its config.json.
        tokenizer: Its tokenizer.
    """
    text = config.get("text_config")
    parts = [settings] if settings else [config, text if isinstance(text, Mapping) else {}]
    named = next((part["eos_token_id"] for part in parts if part.get("eos_token_id") is not None), None)
    return _ends(named, tokenizer)


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end an answer: those of the model's generation settings, and the tokenizer's own."""
    return _ends(getattr(getattr(model, "generation_config", None), "eos_token_id", None), tokenizer)


def _ends(named: Any, tokenizer: Any) -> frozenset[int]:
    found = list(named) if isinstance(named, list | tuple) else [named]
    return frozenset(token for token in [*found, tokenizer.eos_token_id] if token is not None)
