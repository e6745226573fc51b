"""Checkpoints with random weights for `gpu.py`: speed depends on shapes, and needs no download of forty gigabytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    CLIPVisionConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

SPECIAL = ["<s>", "</s>", "<pad>", "<image>", "<mask>"]
TEMPLATE = (
    "<s>{% for m in messages %}{{ m.role|upper }}: {% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<image>\n{% else %}{{ p.text }}{% endif %}{% endfor %}"
    "{% endif %} {% endfor %}ASSISTANT:"
)
LLAMA_8B = {
    **{"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256},
}
VICUNA_13B = {
    **{"hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40},
    **{"num_attention_heads": 40, "vocab_size": 32_064},
}
CLIP_LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
BERT_LARGE = {**CLIP_LARGE, "vocab_size": 30_522}
TOY = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES = {
    "toy": {"causal": {**TOY, "vocab_size": 400}, "masked": {**TOY, "vocab_size": 400}, "vision": TOY, "side": 56},
    "full": {"causal": LLAMA_8B, "masked": BERT_LARGE, "vision": CLIP_LARGE, "side": 336},
}
PATCH = 14


def write_causal(folder: Path, size: str, texts: Sequence[str], device: str) -> Path:
    """Save a Llama: of 8 billion parameters at full size."""
    _tokenizer(texts).save_pretrained(folder)
    _save(lambda: LlamaForCausalLM(_llama(SIZES[size]["causal"])), folder, size, device)
    return folder


def write_masked(folder: Path, size: str, texts: Sequence[str], device: str) -> Path:
    """Save a BERT: the large one at full size, in float32."""
    _tokenizer(texts).save_pretrained(folder)
    config = BertConfig(**SIZES[size]["masked"], max_position_embeddings=128, pad_token_id=2)
    _save(lambda: BertForMaskedLM(config), folder, "toy", device)
    return folder


def write_vlm(folder: Path, size: str, texts: Sequence[str], device: str) -> Path:
    """Save a LLaVA: of 13 billion parameters and 576 tokens an image at full size."""
    side = SIZES[size]["side"]
    vision = CLIPVisionConfig(**SIZES[size]["vision"], image_size=side, patch_size=PATCH, projection_dim=64)
    text = VICUNA_13B if size == "full" else SIZES[size]["causal"]
    config = LlavaConfig(vision_config=vision.to_dict(), text_config=_llama(text).to_dict(), image_token_index=3)
    config.image_token_id = 3
    _save(lambda: LlavaForConditionalGeneration(config), folder, size, device)
    LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side}),
        tokenizer=_tokenizer(texts),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    return folder


def _llama(shape: dict[str, int]) -> LlamaConfig:
    names = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    return LlamaConfig(**shape, **names, max_position_embeddings=4096)


def _save(make: Any, folder: Path, size: str, device: str) -> None:
    before = torch.get_default_dtype()
    torch.manual_seed(1)
    try:
        # At full size the weights are drawn where they are used: the processor would take many minutes.
        torch.set_default_dtype(torch.bfloat16 if size == "full" else torch.float32)
        with torch.device(device):
            model = make()
    finally:
        torch.set_default_dtype(before)
    model.save_pretrained(folder)
    del model


def _tokenizer(texts: Sequence[str]) -> Any:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=390,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIAL,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    roles = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    made = PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=["<image>"], **roles)
    made.chat_template = TEMPLATE
    return made
