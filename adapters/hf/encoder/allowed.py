"""Classes of sentence-transformers that a model may name without permission to run its code.

Its package imports whatever name begins with `sentence_transformers.`, and calls `load` of what it finds there, such as
a module of Python that this package imports itself. So the classes are listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

MODULES = "modules.json"
_HOMES = {
    "base.modules": {"dense": "Dense", "normalize": "Normalize", "transformer": "Transformer"},
    "sentence_transformer.modules": {
        "bow": "BoW",
        "cnn": "CNN",
        "dropout": "Dropout",
        "layer_norm": "LayerNorm",
        "lstm": "LSTM",
        "pooling": "Pooling",
        "static_embedding": "StaticEmbedding",
        "weighted_layer_pooling": "WeightedLayerPooling",
        "word_embeddings": "WordEmbeddings",
        "word_weights": "WordWeights",
    },
}
_TOKENIZERS = {"phrase": "PhraseTokenizer", "whitespace": "WhitespaceTokenizer", "word": "WordTokenizer"}
_ACTIVATIONS = (
    "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish PReLU ReLU "
    "ReLU6 SELU SiLU Sigmoid Softplus Softmax Softshrink Softsign Tanh Tanhshrink"
).split()


class Module(msgspec.Struct, frozen=True):
    """One module of the chain, as `modules.json` names it."""

    type: str
    path: str
    """Its folder, inside the model's; empty for the model's own."""


def _allowed() -> frozenset[str]:
    names = set()
    for home, classes in _HOMES.items():
        for module, name in classes.items():
            names |= {f"{home}.{module}.{name}", f"{home}.{name}", f"sentence_transformer.modules.{name}"}
            # Versions before 6.
            names |= {f"models.{name}", f"models.{name}.{name}"}
    for module, name in _TOKENIZERS.items():
        names |= {f"sentence_transformer.modules.tokenizer.{part}{name}" for part in ("", f"{module}.")}
        names |= {f"models.tokenizer.{part}{name}" for part in ("", f"{name}.")}
    own = {f"sentence_transformers.{name}" for name in names}
    activations = {f"torch.nn.{place}{name}" for place in ("", "modules.activation.") for name in _ACTIVATIONS}
    return frozenset(own | activations | {"torch.nn.Identity", "torch.nn.modules.linear.Identity"})


ALLOWED = _allowed()
_NAMING = ("activation_function", "tokenizer_class")
"""Settings of a module that name a class."""
_SETTINGS = ("config.json", "wordembedding_config.json")


def strange_classes(modules: Sequence[Module]) -> list[str]:
    """Return the classes of a chain of modules that are not among those that are allowed."""
    return [module.type for module in modules if module.type not in ALLOWED]


def strange_settings(folder: Path, modules: Sequence[Module]) -> Iterator[str]:
    """Yield the classes that the settings of modules name and that are not allowed."""
    for module in modules:
        if module.type.endswith(".Transformer"):
            continue  # its classes are those of Transformers, which has a rule of its own
        for name in _SETTINGS:
            found = _settings(folder / module.path / name)
            yield from (named for key in _NAMING if isinstance(named := found.get(key), str) and named not in ALLOWED)


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}  # loading reports it
    return settings if isinstance(settings, dict) else {}
