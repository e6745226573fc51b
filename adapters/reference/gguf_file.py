"""A causal reference model as GGUF, the format of llama.cpp, with the same weights in float32.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Needs the package `gguf`.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from .causal_tokens import SPECIAL

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
FLOAT32 = 0


def write_gguf(checkpoint: Path, file: Path) -> None:
    """Write the checkpoint in a folder as one file."""
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name(file.stem)
    writer.add_file_type(FLOAT32)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    _add_tokenizer(writer, checkpoint, config)
    weights = load_file(checkpoint / "model.safetensors")
    # Without a tensor for the output, llama.cpp takes that of the input, as tied weights need.
    writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"])
    for layer in range(config["num_hidden_layers"]):
        old, new = f"model.layers.{layer}", f"blk.{layer}"
        for theirs, ours in NAMES.items():
            writer.add_tensor(f"{new}.{ours}.weight", weights[f"{old}.{theirs}.weight"])
        for part, heads in (("q", config["num_attention_heads"]), ("k", config["num_key_value_heads"])):
            rows = weights[f"{old}.self_attn.{part}_proj.weight"]
            writer.add_tensor(f"{new}.attn_{part}.weight", _neighbours(rows, heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, checkpoint: Path, config: dict[str, int]) -> None:
    model = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    # The rule for cutting a text into words is Llama 3's, which takes words of the vocabulary whole.
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.CONTROL if token in SPECIAL else kinds.NORMAL for token in tokens])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(True)


def _neighbours(weight: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Reorder rows from halves, as Transformers rotates them, to neighbours, as llama.cpp does."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))
