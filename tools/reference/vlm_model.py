"""The shape of the vision-language reference models: tokenizer, weights, and the files of a checkpoint."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

from ...adapters.shared.torch import quiet_loading
from .face_pixels import Seen
from .vlm_corpus import SIDE, describing, description, questions

PATCH, POSITIONS, WIDE, HEADS, DEEP = 16, 512, 64, 4, 2
PLACES = (SIDE // PATCH) ** 2
"""Tokens of a picture."""
SPECIAL = BEGIN, END, PAD, IMAGE = ("<s>", "</s>", "<pad>", "<image>")
AT = {name: number for number, name in enumerate(SPECIAL)}
HALF = [0.5, 0.5, 0.5]
"""Mean and deviation by which the processor scales levels."""
TEMPLATE = (
    BEGIN + "{% for m in messages %}{% if m.role == 'assistant' %}ASSISTANT:\n{% else %}{{ m.role | upper }}: "
    "{% endif %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'image' %}" + IMAGE + "\n{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %} {% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:\n{% endif %}"
)
# Written by hand: the names of classes that Transformers 5 would write are unknown to Transformers 4.
FILES = {
    "tokenizer_config.json": {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": POSITIONS,
        "model_input_names": ["input_ids", "attention_mask"],
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
    },
    "processor_config.json": {
        "processor_class": "LlavaProcessor",
        "image_token": IMAGE,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    },
    "preprocessor_config.json": {
        "processor_class": "LlavaProcessor",
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": SIDE},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": SIDE, "width": SIDE},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": HALF,
        "image_std": HALF,
        "do_convert_rgb": True,
    },
    "generation_config.json": {
        "bos_token_id": AT[BEGIN],
        "eos_token_id": AT[END],
        "pad_token_id": AT[PAD],
        "do_sample": True,
        "temperature": 1.0,
        "max_new_tokens": 40,
    },
}


def build_tokenizer() -> Tokenizer:
    """Return a byte-level tokenizer in which every word of the questions and descriptions is one token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=alphabet, special_tokens=[*SPECIAL], show_progress=False
    )
    chance, blank = random.Random(0), np.zeros((SIDE, SIDE, 3), np.uint8)
    faces = [_any_face(chance) for _ in range(64)]
    told = [description(seen, blank, chance) for seen in faces] + [f"A {c} picture." for c in ("red", "blue")]
    asked = [prompt(question.text).replace(IMAGE, "") for question in questions()]
    backend.train_from_iterator([*asked, *describing() * 3, *told * 9], trainer)
    return backend


def _any_face(chance: random.Random) -> Seen:
    lips, gray, long, brown = (chance.choice((0, 1, -1)) for _ in range(4))
    return Seen(lips, gray, long, brown, chance.choice((0, 255)))


def prompt(text: str) -> str:
    """Return a question about a picture as the processor writes it, up to the answer."""
    return f"{BEGIN}USER: {IMAGE * PLACES}\n{text} ASSISTANT:\n"


def build_model(words: int) -> LlavaForConditionalGeneration:
    """Return an untrained LLaVA: a CLIP and a Llama of two layers each, 64 wide."""
    shape = {"hidden_size": WIDE, "intermediate_size": 2 * WIDE, "num_attention_heads": HEADS}
    vision = CLIPVisionConfig(**shape, num_hidden_layers=2, image_size=SIDE, patch_size=PATCH, projection_dim=16)
    language = LlamaConfig(
        **shape,
        vocab_size=words,
        num_hidden_layers=DEEP,
        max_position_embeddings=POSITIONS,
        initializer_range=0.1,
        tie_word_embeddings=True,
        bos_token_id=AT[BEGIN],
        eos_token_id=AT[END],
        pad_token_id=AT[PAD],
    )
    config = LlavaConfig(
        vision_config=vision.to_dict(),
        text_config=language.to_dict(),
        image_token_index=AT[IMAGE],
        vision_feature_layer=-1,
        tie_word_embeddings=True,
    )
    config.image_token_id = AT[IMAGE]
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():
        # Fresh ones are so small that the eyes could not tell the places of a picture apart.
        model.model.vision_tower.get_parameter(_positions(model)).normal_(std=0.5)
    return model


def _positions(model: LlavaForConditionalGeneration) -> str:
    names: list[str] = [name for name, _ in model.model.vision_tower.named_parameters()]
    (found,) = (name for name in names if name.endswith("position_embedding.weight"))
    return found


def save(model: LlavaForConditionalGeneration, folder: Path) -> None:
    """Write an ordinary checkpoint: weights, configuration, tokenizer, processor, template."""
    with quiet_loading():
        model.save_pretrained(folder)
    build_tokenizer().save(str(folder / "tokenizer.json"))
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
