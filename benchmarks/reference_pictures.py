"""What was planted in the reference models of pictures, and what is found, by their libraries alone.

Of models that see: the change of the log-odds of positive traits with the filter, in nats, on faces of the study; of
models that draw: how much lighter the cheeks are for words of high status, in planted standard deviations. Neither uses
this package's adapters, nor the reading of pixels that the models were trained with. For reference_models.py.
"""

from __future__ import annotations

import io
import random
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from PIL import Image

from prejudge.adapters.reference import Reference
from prejudge.adapters.reference.items import HIGH, LOW
from prejudge.probes.attractiveness.asking import ORDERS, prompt_of
from prejudge.probes.attractiveness.faces import draw, paper_faces
from prejudge.probes.attractiveness.scenarios import load_scenarios
from prejudge.tools.reference.painter_corpus import SPREAD

HEADER = {
    "vlm": "| model | planted | measured: mean | single pairs of traits |\n| --- | --- | --- | --- |",
    "painter": "| pipeline | planted | measured, with its 95 % interval |\n| --- | --- | --- |",
}
FACES, PICTURES, WORDS = 13, 64, 8
LEFT, RIGHT = (17, 20, 11, 13), (17, 20, 19, 21)
"""Cheeks of a picture of 32 pixels: top, bottom, left, right."""


def measure(one: Reference, folder: Path) -> str:
    """Return the cells of a model's row."""
    return _seen(folder) if one.kind == "vlm" else _drawn(folder)


def _seen(folder: Path) -> str:
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    every = list(paper_faces())
    faces = every[:: len(every) // FACES][:FACES]
    shown = [Image.open(io.BytesIO(draw(face, variant, 0.5))) for face in faces for variant in ("original", "filtered")]
    labels = [processor.tokenizer(label, add_special_tokens=False)["input_ids"] for label in ("(a)", "(b)")]
    at = next(n for n, (one, other) in enumerate(zip(*labels, strict=True)) if one != other)
    changes = []
    for scenario in (one for one in load_scenarios() if one.positive):
        own = []
        for order in ORDERS:
            asked = {"type": "text", "text": prompt_of(scenario, order, "listed")}
            message = [{"role": "user", "content": [{"type": "image"}, asked]}]
            text = processor.apply_chat_template(message, add_generation_prompt=True)
            text += processor.tokenizer.decode(labels[0][:at])
            given = processor(text=[text] * len(shown), images=shown, return_tensors="pt", padding=True)
            with torch.inference_mode():
                scores = model(**given).logits[:, -1].double()
            odds = (scores[:, labels[0][at]] - scores[:, labels[1][at]]).numpy()
            sign = 1 if (order.first_is == "a") == (scenario.positive == "first") else -1
            own.append(sign * float((odds[1::2] - odds[::2]).mean()))
        changes.append(fmean(own))
    return f"{fmean(changes):+.3f} | {min(changes):.2f} to {max(changes):.2f}"


def _drawn(folder: Path) -> str:
    import diffusers

    pipeline = diffusers.StableDiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    means = [np.array([_cheeks(pipeline, word) for word in side[:WORDS]]) for side in (HIGH, LOW)]
    gap = (means[0].mean() - means[1].mean()) / SPREAD
    error = np.sqrt(sum(side.var(axis=1, ddof=1).mean() / side.size for side in means)) / SPREAD
    return f"{gap:+.2f} [{gap - 1.96 * error:.2f}, {gap + 1.96 * error:.2f}]"


def _cheeks(pipeline: Any, word: str) -> NDArray[np.float64]:
    """Return the mean level of the cheeks of each picture of a word."""
    prompt = f"Draw {'an' if word[0] in 'aeiou' else 'a'} {word}."
    seeds = random.Random(word)
    noise = [torch.Generator().manual_seed(seeds.randrange(2**31)) for _ in range(PICTURES // WORDS)]
    levels = pipeline(
        [prompt] * len(noise), num_inference_steps=10, guidance_scale=1.0, height=32, width=32, generator=noise,
        output_type="np",
    ).images  # fmt: skip
    parts = [255 * levels[:, top:bottom, left:right] for top, bottom, left, right in (LEFT, RIGHT)]
    return np.concatenate(parts, axis=2).mean(axis=(1, 2, 3))
