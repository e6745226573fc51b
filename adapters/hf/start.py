"""What the files of a model say about the start of a text, known before its tokenizer is loaded."""

from __future__ import annotations

import json
from typing import Any

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.records import Scalar
from ..shared.start import AUTO, BOS, SEPARATOR, TURN_MARKS, Starting, start_settings
from .files import Source, find_file
from .hub import one_line

_FILES = ("tokenizer_config.json", "special_tokens_map.json")
_KEY = "bos_token"


def recorded_start(options: Starting, source: Source) -> dict[str, Scalar]:
    """Return the part of a model's identity that says what stands before a plain text.

    It names the token where the files do: a few old tokenizers have it in the code of their class.

    Raises:
        ModelLoadError: a file of the tokenizer cannot be read.
    """
    if options.start not in (AUTO, BOS):
        return {"start": options.start}
    described = next((file for name in _FILES if _KEY in (file := _read(source, name))), None)
    if described is None:
        return {"start": options.start}
    token = described[_KEY]
    bos = token.get("content") if isinstance(token, dict) else token
    separates = (bos is None or bos in TURN_MARKS) and options.start == AUTO and _has_separator(source)
    return start_settings(options, bos, separates)


def _read(source: Source, name: str) -> dict[str, Any]:
    path = find_file(source, name)
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        why = one_line(error)
        raise ModelLoadError(f"cannot read {name} of {source.name!r}: {why}", code="model.damaged") from error
    return content if isinstance(content, dict) else {}


def _has_separator(source: Source) -> bool:
    path = find_file(source, "tokenizer.json")
    return path is not None and json.dumps(SEPARATOR).encode() in path.read_bytes()
