"""What a folder or a hub's configuration says of the model in it, for people: never a part of its identity."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CARD = "README.md"
MOST_CARD = 1 << 16
"""Characters of a model card that are read."""
MOST_HEADER = 64 << 20
"""Bytes of the header of a safetensors file that are read."""
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)", re.DOTALL)
_HUB = re.compile(r"[\w.-]+/[\w.-]+")
"""A name of the hub; a path of somebody's machine is shown to nobody."""
_FIELDS = {"license": "licence", "base_model": "training", "model_name": "name"}


def described(config: Mapping[str, Any], folder: Path | None) -> dict[str, str]:
    """Return name, size, training, precision and licence of a model, as far as its files state them.

    Args:
        config: What config.json says.
        folder: The folder with its files; None for a hub's name, of which only the configuration is read.
    """
    quantised = config.get("quantization_config")
    facts = {
        "name": config.get("_name_or_path") if _HUB.fullmatch(str(config.get("_name_or_path"))) else None,
        "architecture": next(iter(config.get("architectures") or ()), config.get("model_type")),
        "precision": config.get("dtype") or config.get("torch_dtype"),
        "quantisation": quantised.get("quant_method") if isinstance(quantised, dict) else None,
    }
    if folder is not None:
        if (count := sum(_sizes(folder))) > 0:
            facts["size"] = f"{count:,} parameters"
        facts |= _of_card(folder / CARD)
    return {name: value for name, value in facts.items() if isinstance(value, str) and value}


def _of_card(path: Path) -> dict[str, str]:
    """Return what the front matter of a model card says, and its first heading as the name."""
    try:
        text = path.read_text("utf-8", "replace")[:MOST_CARD]
    except OSError:
        return {}
    match = _FRONT.match(text)
    front, prose = match.groups() if match else ("", text)
    lines = (line.partition(":") for line in front.splitlines() if not line.startswith((" ", "-", "#")))
    facts = {_FIELDS[name]: value.strip().strip("\"'") for name, _, value in lines if name in _FIELDS}
    if "training" in facts:
        facts["training"] = f"made of {facts['training']}"
    heading = next((line[2:].strip() for line in prose.splitlines() if line.startswith("# ")), "")
    return ({"name": heading} if heading else {}) | {name: value for name, value in facts.items() if value}


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the number of values of each safetensors file, by its header."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(min(length, MOST_HEADER)))
            yield sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
        except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError):
            continue
