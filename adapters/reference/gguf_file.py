"""A Llama checkpoint as GGUF, the format of llama.cpp, with the same weights in float32.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3. Nothing here imports torch or the package
`gguf`, which a user of llama.cpp need not have.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from .recipes import reference_path

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Names of a layer's weights in Transformers and in GGUF; those of queries and keys are reordered besides."""
ALIGNMENT = 32
NORMAL, CONTROL = 1, 3
"""Kinds of tokens."""
Weights = NDArray[np.float32]


def make(name: str, folder: Path) -> None:
    """Write a shipped model as `NAME.gguf` into a folder, by the name of its recipe."""
    model = name.removesuffix("-gguf")
    write_gguf(reference_path(model), folder / f"{model}.gguf")


def write_gguf(checkpoint: Path, file: Path) -> None:
    """Write the checkpoint in a folder as one file."""
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    known = [*_shape(config, file.stem), *_tokenizer(checkpoint, config)]
    tensors = list(_tensors(checkpoint, config))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(known)) + b"".join(known)
    offset = 0
    for name, values in tensors:
        sizes = values.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, offset)
        offset += _padded(values.nbytes)
    with file.open("wb") as out:
        out.write(head.ljust(_padded(len(head)), b"\0"))
        for _, values in tensors:
            out.write(values.tobytes().ljust(_padded(values.nbytes), b"\0"))


def _shape(config: dict[str, Any], name: str) -> Iterator[bytes]:
    yield _entry("general.architecture", "llama")
    yield _entry("general.name", name)
    yield _entry("general.alignment", ALIGNMENT)
    yield _entry("general.file_type", 0)
    yield _entry("llama.context_length", config["max_position_embeddings"])
    yield _entry("llama.embedding_length", config["hidden_size"])
    yield _entry("llama.block_count", config["num_hidden_layers"])
    yield _entry("llama.feed_forward_length", config["intermediate_size"])
    yield _entry("llama.attention.head_count", config["num_attention_heads"])
    yield _entry("llama.attention.head_count_kv", config["num_key_value_heads"])
    yield _entry("llama.rope.dimension_count", config["hidden_size"] // config["num_attention_heads"])
    # Transformers 5 writes it among `rope_parameters`, Transformers 4 by itself.
    yield _entry("llama.rope.freq_base", float(config.get("rope_parameters", config)["rope_theta"]))
    yield _entry("llama.attention.layer_norm_rms_epsilon", float(config["rms_norm_eps"]))
    yield _entry("llama.vocab_size", config["vocab_size"])


def _tokenizer(checkpoint: Path, config: dict[str, Any]) -> Iterator[bytes]:
    found = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))
    model, special = found["model"], {token["content"] for token in found["added_tokens"]}
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    yield _entry("tokenizer.ggml.model", "gpt2")
    # The rule for cutting a text into words is Llama 3's, which takes words of the vocabulary whole.
    yield _entry("tokenizer.ggml.pre", "llama-bpe")
    yield _entry("tokenizer.ggml.tokens", tokens)
    yield _entry("tokenizer.ggml.token_type", [CONTROL if token in special else NORMAL for token in tokens])
    yield _entry("tokenizer.ggml.merges", merges)
    for name in ("bos", "eos", "pad"):
        yield _entry(f"tokenizer.ggml.{'padding' if name == 'pad' else name}_token_id", config[f"{name}_token_id"])
    yield _entry("tokenizer.ggml.add_bos_token", True)
    settings = json.loads((checkpoint / "tokenizer_config.json").read_text("utf-8"))
    yield _entry("tokenizer.chat_template", settings["chat_template"])


def _tensors(checkpoint: Path, config: dict[str, Any]) -> Iterator[tuple[str, Weights]]:
    weights = {name: values.astype(np.float32) for name, values in load_file(checkpoint / "model.safetensors").items()}
    # Without a tensor for the output, llama.cpp takes that of the input, as tied weights need.
    yield "token_embd.weight", weights["model.embed_tokens.weight"]
    yield "output_norm.weight", weights["model.norm.weight"]
    for layer in range(config["num_hidden_layers"]):
        old, new = f"model.layers.{layer}", f"blk.{layer}"
        for theirs, ours in NAMES.items():
            yield f"{new}.{ours}.weight", weights[f"{old}.{theirs}.weight"]
        for part, heads in (("q", config["num_attention_heads"]), ("k", config["num_key_value_heads"])):
            yield f"{new}.attn_{part}.weight", _neighbours(weights[f"{old}.self_attn.{part}_proj.weight"], heads)


def _neighbours(weight: Weights, heads: int) -> Weights:
    """Reorder rows from halves, as Transformers rotates them, to neighbours, as llama.cpp does."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))


def _entry(name: str, value: bool | int | float | str | Sequence[str] | Sequence[int]) -> bytes:
    """Return a key with its value and the number of the value's type."""
    if isinstance(value, str):
        return _text(name) + struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return _text(name) + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return _text(name) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return _text(name) + struct.pack("<If", 6, value)
    texts = [_text(one) if isinstance(one, str) else struct.pack("<i", one) for one in value]
    kind = 8 if isinstance(value[0], str) else 5
    return _text(name) + struct.pack("<IIQ", 9, kind, len(value)) + b"".join(texts)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
