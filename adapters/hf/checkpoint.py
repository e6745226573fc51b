"""What the files of a Transformers model on this machine say, before weights are read: its kind, its head, its mask.

Loading decides: it refuses every model with a parameter that its checkpoint lacks. These checks come before a study
asks anything, need neither torch nor Transformers, and pass whatever they cannot tell.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.contracts.errors import DataError, ModelLoadError
from ...core.contracts.inputs import file_bytes
from ...core.contracts.model_files import MOST_JSON, ModelFiles, Recognised, read_json
from .files import CONFIG
from .load import Kind, check_kind

PEFT = "adapter_config.json"
TASKS = {"CAUSAL_LM": "AutoModelForCausalLM", "SEQ_CLS": "AutoModelForSequenceClassification"}
"""Tasks of PEFT, with the auto class of Transformers that loads the base."""
INDEX = "model.safetensors.index.json"
MOST_HEADER = 64 << 20
"""Bytes of the largest list of tensors that is read."""
_TASKS = r"classifier|score|qa_outputs|summary|seq_relationship|pooler|pre_classifier|classification_head"
_NO_WORDS = re.compile(
    r"(?:\w+\.)?(?:embeddings|encoder|transformer|layers?|albert_layer_groups|embeddings_project|embed_tokens|"
    rf"word_embedding|final_norm|norm|rel_embeddings|LayerNorm|{_TASKS})\.|(?:cls\.)?(?:{_TASKS})\."
)
"""Tensors of a model's body, and those of heads for other tasks than words."""
_WORDS = re.compile(r"cls\.predictions\.|lm_head\.dense\.|vocab_transform\.|predictions\.dense\.")
"""Tensors that only heads for masked words have."""
_CLASSES = re.compile(r"(?:\w+\.)?(?:classifier|score|classification_head|summary|logits_proj)\b")
_PLAIN = {"PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend"}
"""Tokenizers that have no mask token of their own."""


def local_files(model: str) -> ModelFiles | None:
    """Return the files of a model that is a folder on this machine; None for a name on the hub."""
    files = ModelFiles(model)
    return files if CONFIG in files.names else None


def base_of(model: str) -> str | None:
    """Return the model that the folder of a PEFT adapter names as its base; None for any other model.

    Raises:
        DataError: its configuration cannot be read.
    """
    files = ModelFiles(model)
    if PEFT not in files.names or CONFIG in files.names:
        return None
    base = files.settings(PEFT).get("base_model_name_or_path")
    return base if isinstance(base, str) and base else None


def recognised(files: ModelFiles, kind: Kind) -> Sequence[Recognised]:
    """Return how an adapter of this kind reads a folder; nothing if its configuration names no architecture of it.

    The folder of a PEFT adapter is read as its base: by the base's own files, or by the task it was trained for.

    Raises:
        DataError: a configuration cannot be read.
    """
    if (base := base_of(files.path)) is not None:
        if (there := local_files(base)) is not None:
            return [Recognised(files.path, f"{PEFT} names {base}, whose {one}") for _, one in recognised(there, kind)]
        task = files.settings(PEFT).get("task_type")
        fits = isinstance(task, str) and TASKS.get(task) == kind.loader
        return [Recognised(files.path, f"{PEFT} names {base} and the task {task}")] if fits else []
    named = next((name for name in files.architectures if kind.fits(name)), None)
    return [Recognised(files.path, f"{CONFIG} names {named}")] if named else []


def is_plain(architecture: str) -> bool:
    """Return whether an architecture is a body without a head."""
    return architecture.endswith("Model") and not architecture.endswith("LMHeadModel")


def unlike(files: ModelFiles, kind: Kind, *, trusted: bool) -> str:
    """Return why a model is not of a kind, in a sentence; empty if it may be."""
    try:
        check_kind(kind, files.settings(CONFIG), files.place.name, trust_remote_code=trusted)
    except (DataError, ModelLoadError) as error:
        return str(error)
    return ""


def has_words_head(files: ModelFiles) -> bool:
    """Return whether a checkpoint has a head that predicts masked words."""
    return any(map(_WORDS.match, tensor_names(files)))


def lacks_words_head(files: ModelFiles) -> bool:
    """Return whether a checkpoint has no head for words: all its tensors belong to its body or to other heads."""
    names = tensor_names(files)
    return bool(names) and all(map(_NO_WORDS.match, names))


def lacks_classes(files: ModelFiles) -> bool:
    """Return whether a checkpoint has no head for classes."""
    names = tensor_names(files)
    return bool(names) and not any(map(_CLASSES.match, names))


def lacks_mask(files: ModelFiles) -> bool:
    """Return whether a model's tokenizer has no mask token, as far as its settings say."""
    settings, special = (_settings(files, name) for name in ("tokenizer_config.json", "special_tokens_map.json"))
    if settings.get("mask_token") or special.get("mask_token"):
        return False
    return "mask_token" in settings or settings.get("tokenizer_class") in _PLAIN


def folder_template(model: str) -> str | None:
    """Return the chat template in a folder, or an empty text; None for a model that is not on this machine."""
    if (files := local_files(base_of(model) or model)) is None:
        return None
    try:
        if "chat_template.jinja" in files.names:
            return file_bytes(files.place / "chat_template.jinja", MOST_JSON).decode()
        named = (files.settings(name) for name in ("chat_template.json", "processor_config.json"))
        found = [one.get("chat_template") for one in (*named, files.settings("tokenizer_config.json"))]
    except (DataError, OSError, UnicodeDecodeError):
        return None  # loading reports it
    return " ".join(json.dumps(one) if isinstance(one, list) else one for one in found if isinstance(one, str | list))


def _settings(files: ModelFiles, name: str) -> Mapping[str, Any]:
    try:
        return files.settings(name)
    except DataError:
        return {}  # loading reports it


def tensor_names(files: ModelFiles) -> frozenset[str]:
    """Return the names of the tensors in a checkpoint of safetensors; empty if they cannot be told."""
    try:
        return frozenset(_names_in(files))
    except (DataError, OSError, ValueError, struct.error):
        return frozenset()


def _names_in(files: ModelFiles) -> Iterator[str]:
    if INDEX in files.names:
        weights = read_json(files.place / INDEX)
        yield from weights.get("weight_map", ()) if isinstance(weights, dict) else ()
        return
    for name in files.names:
        if name.startswith("model") and name.endswith(".safetensors"):
            yield from _header(files.place / name)


def _header(path: Path) -> Iterator[str]:
    """Yield the names of the tensors of a file.

    Format: eight bytes with the length of a JSON object by name (https://github.com/huggingface/safetensors).
    """
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > MOST_HEADER:
            raise ValueError(f"a header of {length:,} bytes")
        header = json.loads(file.read(length))
    yield from (name for name in header if name != "__metadata__")
