"""Write a tiny real LLaVA, with two pictures and some questions about them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import Generate, Image, Message, Sampling, Text

TEMPLATE = (
    "<s>{% for m in messages %}{{ m.role|upper }}: {% for p in m.content %}{% if p.type == 'image' %}<image>\n"
    "{% else %}{{ p.text }}{% endif %}{% endfor %} {% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
QUESTIONS = (
    "What is this?",
    "Is the person in this picture kind, or is there no person at all? Answer yes or no.",
    "Who is it?",
    "Would you lend this person your car? A: yes. B: no. C: cannot tell.",
)
GREEDY = Sampling(temperature=0.0, max_tokens=9)


def picture(colour: tuple[int, int, int], size: tuple[int, int] = (40, 30)) -> bytes:
    from PIL import Image as Pictures

    made = io.BytesIO()
    Pictures.new("RGB", size, colour).save(made, "PNG")
    return made.getvalue()


RED, BLUE = picture((250, 10, 10)), picture((10, 10, 250), (64, 64))
BLOBS = {hashlib.sha256(data).hexdigest(): data for data in (RED, BLUE)}
RED_NAME, BLUE_NAME = BLOBS


def look_up(sha256: str) -> bytes:
    if sha256 not in BLOBS:
        raise DataError(f"no image {sha256} in the store")
    return BLOBS[sha256]


def make_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<image>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    backend.train_from_iterator([*QUESTIONS, "USER: ASSISTANT: yes no"] * 3, trainer)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    roles = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=["<image>"], **roles)


def make_llava(folder: Path, family: str = "llama", **text: Any) -> None:
    """Save a LLaVA of 4 image tokens, on a language model of some family."""
    import torch
    from transformers import AutoConfig, CLIPVisionConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = make_tokenizer()
    small = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2}
    vision = CLIPVisionConfig(**small, num_hidden_layers=3, image_size=28, patch_size=14, projection_dim=16)
    names = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    language = AutoConfig.for_model(
        family, **{**small, "num_hidden_layers": 2, "max_position_embeddings": 160, **names, **text}
    )
    config = LlavaConfig(vision_config=vision.to_dict(), text_config=language.to_dict(), image_token_index=3)
    config.image_token_id = 3
    torch.manual_seed(3)
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Fresh weights are so small that any mistake would vanish in the tolerance.
            parameter.add_(torch.randn_like(parameter) * 0.15)
    model.save_pretrained(folder)
    pixels = CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    LlavaProcessor(
        image_processor=pixels,
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)


def about(question: str, image: str = RED_NAME) -> tuple[Message, ...]:
    return (Message("user", (Image(image), Text(question))),)


def greedy(questions: Sequence[str] = QUESTIONS, images: Sequence[str] = (RED_NAME, BLUE_NAME)) -> list[Generate]:
    return [Generate(messages=about(q, image), sampling=GREEDY) for q in questions for image in images]
