"""A tiny real Llama as GGUF and as Transformers checkpoint: the same f32 weights and the same byte-level BPE."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CORPUS = [
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "She was considered unbelievably friendly by everyone at the party.",
    "He didn't know that misunderstandings happened in neighbouring countries.",
    "user system assistant one two three four five",
] * 4
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
HEADS, GROUPS, HIDDEN, LAYERS, CONTEXT = 4, 2, 64, 2, 512


def write_pair(
    folder: Path, *, template: str | None = TEMPLATE, add_bos: bool = True, bos: str | None = "<s>", more: str = ""
) -> tuple[Path, Path]:
    """Write both forms; return the GGUF file and the checkpoint's directory.

    `bos` is the token for the beginning of a text; `more` is one more special token.
    """
    checkpoint, file = folder / "tiny-llama", folder / "tiny-llama.gguf"
    tokenizer = _tokenizer(template, add_bos, bos, [*SPECIAL, *filter(None, [more])])
    model = _model(len(tokenizer))
    model.save_pretrained(checkpoint)
    tokenizer.save_pretrained(checkpoint)
    _write_gguf(file, model, tokenizer, {"template": template, "add_bos": add_bos})
    return file, checkpoint


def write_sentencepiece(folder: Path) -> tuple[Path, Path]:
    """Write the same shape of model with a SentencePiece vocabulary, which puts a blank before each text.

    Returns:
        The GGUF file and the checkpoint's directory.
    """
    import gguf

    checkpoint, file = folder / "tiny-spm", folder / "tiny-spm.gguf"
    pieces, merged = _pieces()
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    model = _model(len(tokens), bos=1, eos=2)
    model.save_pretrained(checkpoint)
    _sentencepiece(tokens, merged).save_pretrained(checkpoint)
    kinds = gguf.TokenType
    writer = gguf.GGUFWriter(file, "llama")
    _write_shape(writer, model.config)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    # The earlier merge has the higher score, as SentencePiece's BPE writes it.
    writer.add_token_scores([-float(merged.index(token)) if token in merged else -1e9 for token in tokens])
    own = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *([kinds.BYTE] * 256)]
    writer.add_token_types([*own, *([kinds.NORMAL] * len(pieces))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    _write_tensors(writer, model)
    return file, checkpoint


def _pieces() -> tuple[list[str], list[str]]:
    """Return letters and merged pieces, and the merged ones in the order of their merges."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    vocabulary = backend.get_vocab()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    return pieces, [piece for piece in pieces if len(piece) > 1]


def _sentencepiece(tokens: list[str], merged: list[str]) -> Any:
    """Return the tokenizer as Transformers converts it: every two pieces that give a third are a merge."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors
    from transformers import PreTrainedTokenizerFast

    known = {token: number for number, token in enumerate(tokens)}
    cuts = [(whole[:at], whole[at:]) for whole in merged for at in range(1, len(whole))]
    merges = [pair for pair in cuts if pair[0] in known and pair[1] in known]
    backend = Tokenizer(models.BPE(known, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def _tokenizer(template: str | None, add_bos: bool, bos: str | None, special: list[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(CORPUS, trainer)
    single = "<s> $A" if add_bos else "$A"
    backend.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=bos, eos_token="</s>")
    tokenizer.chat_template = template
    return tokenizer


def _model(vocabulary: int, bos: int = 0, eos: int = 1) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=GROUPS,
        max_position_embeddings=CONTEXT,
        bos_token_id=bos,
        eos_token_id=eos,
    )
    torch.manual_seed(11)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Fresh weights are so small that any mistake would vanish in the tolerance.
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def _write_gguf(file: Path, model: Any, tokenizer: Any, settings: dict[str, Any]) -> None:
    import gguf

    writer = gguf.GGUFWriter(file, "llama")
    _write_shape(writer, model.config)
    _write_vocabulary(writer, tokenizer, settings)
    _write_tensors(writer, model)


def _write_tensors(writer: Any, model: Any) -> None:
    for name, tensor in _tensors(model):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_shape(writer: Any, config: Any) -> None:
    writer.add_name("tiny-llama")
    writer.add_file_type(0)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def _write_vocabulary(writer: Any, tokenizer: Any, settings: dict[str, Any]) -> None:
    import gguf

    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    special = {token.content for token in tokenizer.added_tokens_decoder.values()}
    writer.add_token_types([kinds.CONTROL if token in special else kinds.NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    if tokenizer.bos_token is not None:
        writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(settings["add_bos"])
    if settings["template"]:
        writer.add_chat_template(settings["template"])


def _tensors(model: Any) -> Iterable[tuple[str, Any]]:
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    yield "token_embd.weight", state["model.embed_tokens.weight"]
    yield "output_norm.weight", state["model.norm.weight"]
    yield "output.weight", state["lm_head.weight"]
    names = {
        "input_layernorm": "attn_norm",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for layer in range(LAYERS):
        old, new = f"model.layers.{layer}", f"blk.{layer}"
        for theirs, ours in names.items():
            yield f"{new}.{ours}.weight", state[f"{old}.{theirs}.weight"]
        yield f"{new}.attn_q.weight", _interleave(state[f"{old}.self_attn.q_proj.weight"], HEADS)
        yield f"{new}.attn_k.weight", _interleave(state[f"{old}.self_attn.k_proj.weight"], GROUPS)


def _interleave(weight: Any, heads: int) -> Any:
    """Reorder rows from halves, as Transformers rotates them, to neighbours, as llama.cpp does."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return rows.swapaxes(1, 2).reshape(weight.shape).copy()
