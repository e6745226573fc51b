"""Compare two ways to ask many questions about one image: this adapter, and plain generation one by one.

364 questions (91 scenarios in 4 orders of their options) about one image, on a LLaVA with random weights whose images
take 576 tokens, as those of LLaVA 1.5 do. Plain generation is Transformers' own: processor, then `generate`, greedy.
Answers must be equal, or the exit code is 1.

    python benchmarks/vlm.py                    256 wide, 4 layers, vision 128 wide, 4 layers
    python benchmarks/vlm.py --plain 40         time plain generation on the first 40 questions only
    python benchmarks/vlm.py --uneven           answers of 2 to 64 tokens, and the adapter with whole batches, too
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import io
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from PIL import Image as Pictures
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForImageTextToText,
    AutoProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.utils import logging

from prejudge.adapters.hf.vlm.adapter import HFVLM, HFVLMOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.records import Generate, Generation, Image, Message, Sampling, Text

TARGET = 8.0
"""Times slower plain generation should be. It is shown, not enforced: machines differ."""
SIDE, PATCH, VOCABULARY = 336, 14, 2000
UNEVEN = (2, 64, 4, 8, 16)
"""Longest answers, in turn."""
TEMPLATE = (
    "<s>{% for m in messages %}{{ m.role|upper }}: {% for p in m.content %}{% if p.type == 'image' %}<image>\n"
    "{% else %}{{ p.text }}{% endif %}{% endfor %} {% endfor %}ASSISTANT:"
)
ORDERS = ("abc", "bca", "cab", "acb")
WHAT = ("lend a car to", "hire", "ask for help", "sit beside", "vote for", "believe", "invite")
WHERE = ("at work", "at school", "in a shop", "on a train", "in a park", "at a party", "in court") + (
    "in a hospital", "at home", "in a queue", "at the bank", "on the street", "in a lift",
)  # fmt: skip


def make_questions() -> list[str]:
    options = {"a": "yes, surely", "b": "no, never", "c": "it cannot be told"}
    return [
        f"You meet this person {where}. Would you {what} them? "
        + " ".join(f"{letter}: {options[name]}." for letter, name in zip("ABC", order, strict=True))
        + " Answer with one letter."
        for what in WHAT
        for where in WHERE
        for order in ORDERS
    ]


def make_tokenizer(texts: Sequence[str]) -> Any:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<image>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    roles = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=["<image>"], **roles)


def make_model(folder: Path, texts: Sequence[str], arguments: argparse.Namespace) -> None:
    """Save a random LLaVA of 576 image tokens."""
    tokenizer = make_tokenizer(texts)
    width, seen = arguments.width, arguments.vision_width
    vision = CLIPVisionConfig(
        hidden_size=seen,
        intermediate_size=seen * 4,
        num_attention_heads=seen // 32,
        num_hidden_layers=arguments.vision_layers,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=64,
    )
    language = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=width * 11 // 4,
        num_attention_heads=width // 64,
        num_hidden_layers=arguments.layers,
        initializer_range=0.1,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    config = LlavaConfig(vision_config=vision.to_dict(), text_config=language.to_dict(), image_token_index=3)
    config.image_token_id = 3
    torch.manual_seed(1)
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)


def make_image(shades: Any) -> bytes:
    made = io.BytesIO()
    shades.resize((640, 480)).convert("RGB").save(made, "PNG")
    return made.getvalue()


def limits(arguments: argparse.Namespace) -> Iterator[int]:
    return cycle(UNEVEN if arguments.uneven else (arguments.tokens,))


def by_hand(
    folder: Path, questions: Sequence[str], data: bytes, arguments: argparse.Namespace
) -> tuple[float, list[str]]:
    """Ask one by one with Transformers alone, the image decoded once; return seconds and answers."""
    model = AutoModelForImageTextToText.from_pretrained(folder).eval().to(arguments.device)
    processor = AutoProcessor.from_pretrained(folder, backend="pil")
    image = Pictures.open(io.BytesIO(data)).convert("RGB")

    def answer(question: str, most: int) -> str:
        turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}]
        text = processor.apply_chat_template(turns, add_generation_prompt=True)
        inputs = processor(text=text, images=image, return_tensors="pt", add_special_tokens=False).to(arguments.device)
        ids = model.generate(**inputs, max_new_tokens=most, do_sample=False)
        return str(processor.tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))

    with torch.inference_mode():
        answer(questions[0], 1)
        start = arguments.clock()
        answers = list(map(answer, questions, limits(arguments)))
        return arguments.clock() - start, answers


def by_adapter(
    folder: Path, questions: Sequence[str], data: bytes, arguments: argparse.Namespace, *, refills: bool = True
) -> tuple[float, list[str]]:
    """Ask through the adapter; return seconds and answers. The image of the warm-up is another one."""
    warm = make_image(Pictures.linear_gradient("L"))
    name, other = hashlib.sha256(data).hexdigest(), hashlib.sha256(warm).hexdigest()
    blobs = {name: data, other: warm}
    adapter = HFVLM(HFVLMOptions(model=str(folder), device=arguments.device, threads=arguments.threads))
    adapter.services = Services(blobs=blobs.__getitem__)

    async def ask(image: str, some: Sequence[str]) -> list[str]:
        requests = [
            Generate(
                messages=(Message("user", (Image(image), Text(text))),),
                sampling=Sampling(temperature=0.0, max_tokens=most),
            )
            for text, most in zip(some, limits(arguments), strict=False)
        ]
        texts = []
        for found in await adapter.answer(requests):
            if not isinstance(found, Generation):
                raise found if isinstance(found, Exception) else TypeError(found)
            texts.append(found.text)
        return texts

    async def timed() -> tuple[float, list[str]]:
        await ask(other, questions[:1])
        adapter._ready().engine._writer.refills = refills
        start = arguments.clock()
        answers = await ask(name, questions)
        seconds = arguments.clock() - start
        await adapter.aclose()
        return seconds, answers

    return asyncio.run(timed())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vision-width", type=int, default=128)
    parser.add_argument("--vision-layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=8, help="longest answer")
    parser.add_argument("--uneven", action="store_true", help="answers of 2 to 64 tokens")
    parser.add_argument("--plain", type=int, help="questions asked one by one (all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true", help="count CPU seconds: for a busy machine, --threads 1")
    arguments = parser.parse_args()
    arguments.clock = time.process_time if arguments.cpu_time else time.perf_counter
    torch.set_num_threads(arguments.threads)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    questions, data = make_questions(), make_image(Pictures.radial_gradient("L"))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "llava"
        make_model(folder, questions, arguments)
        own, answers = by_adapter(folder, questions, data, arguments)
        whole = by_adapter(folder, questions, data, arguments, refills=False)[0] if arguments.uneven else None
        plain, wanted = by_hand(folder, questions[: arguments.plain], data, arguments)
    rate, plain_rate = len(questions) / own, len(wanted) / plain
    alike = sum(one == other for one, other in zip(answers, wanted, strict=False))
    distinct = len(set(wanted))
    print(f"{len(questions)} questions about one image of {(SIDE // PATCH) ** 2} tokens, {arguments.device}")
    print(f"{'way':<12}{'questions':>10}{'seconds':>9}{'questions/s':>13}")
    print(f"{'adapter':<12}{len(questions):>10}{own:>9.2f}{rate:>13.1f}")
    if whole is not None:
        print(f"{'no refill':<12}{len(questions):>10}{whole:>9.2f}{len(questions) / whole:>13.1f}")
    print(f"{'one by one':<12}{len(wanted):>10}{plain:>9.2f}{plain_rate:>13.1f}")
    print(f"adapter is {rate / plain_rate:.1f} times quicker (target {TARGET:.0f})")
    print(f"{alike} of {len(wanted)} answers equal, {distinct} of them distinct")
    # Equal answers that do not depend on the question would prove nothing.
    return 0 if alike == len(wanted) and distinct > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
