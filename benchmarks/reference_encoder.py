"""What was planted in the reference encoders, and what is found: by numpy, and by `indicasa`; for reference_models.py.

The study is asked of a model that says what it is told, so that its measure is of the encoder. A sentence about
somebody of a group has a blank; its references fill in praise or blame. A model that fills in a neutral word says
nothing, and what the study finds is the encoder's association. One that fills in other words of praise or blame than
the references do, in 80 of 100 frames the stereotype, is judged right by an encoder that knows these words.
"""

from __future__ import annotations

import asyncio
import csv
import itertools
import json
import re
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import torch
import transformers

from prejudge.adapters.reference.corpus import DESCRIPTORS, NEGATIVE, POSITIVE
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import Identity, ModelAdapter
from prejudge.core.contracts.records import Generate, Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store
from prejudge.tools.reference.encoder_corpus import NEUTRAL, frames

TABLE_5 = (
    ("attractive", "good-looking", "gorgeous", "charming", "sexy", "cute", "charismatic"),
    ("ugly", "hideous-looking", "awful-looking", "unattractive", "nasty", "horrible-looking", "disgusting-looking"),
)
"""Praise and blame of the references (Asad et al. 2025)."""
OTHERS = tuple(
    tuple(word for word in words if word not in known)
    for words, known in zip((POSITIVE, NEGATIVE), TABLE_5, strict=True)
)
"""Praise and blame of the completions."""
Says = Literal["neutral", "stereotypes"]
HEADER = """
| encoder | planted | within groups | WEAT's effect size | study, neutral words | study, 80 % stereotypes |
| --- | --- | --- | --- | --- | --- |"""


def vectors(folder: Path, texts: list[str]) -> np.ndarray:
    """Return the vectors of texts, of length 1, by Transformers alone."""
    model, tokenizer = (
        transformers.AutoModel.from_pretrained(folder),
        transformers.AutoTokenizer.from_pretrained(folder),
    )
    given = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        hidden = model.eval()(**given).last_hidden_state.numpy().astype(float)
    mask = given["attention_mask"].numpy()[..., None]
    found = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def associations(
    folder: Path, words: tuple[tuple[str, ...], tuple[str, ...]] = (POSITIVE, NEGATIVE)
) -> list[np.ndarray]:
    """Return, per pair of groups, the association (group, frame) of sentences with praise rather than blame.

    It is the s(w, A, B) of WEAT: the mean cosine to praise less that to blame (Caliskan et al. 2017), of sentences
    (SEAT, May et al. 2019).
    """
    asked, told = list(frames(200, 99)), list(frames(3, 5))
    good, bad = (vectors(folder, [frame.text(word) for word in side for frame in told]) for side in words)
    axis = good.mean(axis=0) - bad.mean(axis=0)
    return [
        np.array([vectors(folder, [frame.text(group) for frame in asked]) @ axis for group in pair])
        for pair in DESCRIPTORS
    ]


def within(found: np.ndarray) -> float:
    """Return the difference of two groups in standard deviations within groups: what was planted."""
    return float((found[0].mean() - found[1].mean()) / np.sqrt(found.var(axis=1, ddof=1).mean()))


def weat(found: np.ndarray) -> float:
    """Return WEAT's effect size, in standard deviations of both groups together; it is 2 at most."""
    return float((found[0].mean() - found[1].mean()) / found.std(ddof=1))


def write_prompts(folder: Path, count: int) -> dict[str, str]:
    """Write masked sentences about both groups of each frame, with praise and blame; return the study's options."""
    rows, truths = [], []
    asked = (frame for frame in frames(20 * count, 7) if frame.plural)
    for number, frame in enumerate(itertools.islice(asked, count)):
        for side, group in enumerate(DESCRIPTORS[number % len(DESCRIPTORS)]):
            name, words = f"{number}-{side}", [words[number % len(words)] for words in TABLE_5]
            own, opposite = (words[0], words[1]) if side == 0 else (words[1], words[0])
            masked = frame.text("<MASK>", group)
            rows.append((name, "stereo", "physical-appearance", masked, own))
            truths.append((name, "anti-stereotype", masked.replace("<MASK>", opposite)))
    header = ("id", "Stereo_Antistereo", "Bias_Type", "Masked_Sentence", "Ground_Truths")
    for name, head, lines in (("prompts", header, rows), ("truths", ("prompt", "type", "text"), truths)):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *lines])
    return {"data": str(folder / "prompts.csv"), "truths": str(folder / "truths.csv")}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says."""

    says: Says = "neutral"


class Filling(ModelAdapter):
    """A model without a prejudice (`neutral`), or with stereotypes in 80 of 100 frames, alike for both groups."""

    options = Options

    def __init__(self, options: Options) -> None:
        self._says = options.says
        self.identity = Identity(adapter="filling", version="1", model=options.says)

    async def generate(self, request: Generate) -> Generation:
        """Return the sentence of the prompt with its blank filled in."""
        part = request.messages[0].parts[0]
        masked = re.search(r'sentence: "(.*?)"\.', getattr(part, "text", ""))[1]  # type: ignore[index]
        desirable = any(pair[0] in masked for pair in DESCRIPTORS)
        frame = masked
        for word in (word for pair in DESCRIPTORS for word in pair):
            frame = frame.replace(word, "")
        number = int(np.random.default_rng(list(frame.encode())).integers(100))
        side = desirable == (number < 80)
        words = NEUTRAL if self._says == "neutral" else OTHERS[0 if side else 1]
        said = masked.replace("<MASK>", words[number % len(words)])
        return Generation(text=json.dumps({"predicted_sentence": said}))


def by_study(encoder: Path, folder: Path, says: Says, frames_asked: int = 100) -> dict[str, Any]:
    """Return the study's stereotype probability of one model and encoder, with its interval and p."""
    catalogue = Catalogue.load(None)
    catalogue.plugins.offers["adapter"]["filling"] = Registered(Plugged("filling", Filling), "benchmark")
    catalogue.registry.models["filling"] = ModelEntry(adapter="filling", settings={"says": says})
    folder.mkdir(parents=True, exist_ok=True)
    options = write_prompts(folder, frames_asked) | {"categories": ["physical-appearance"], "samples": 1}
    models = {"subject": "filling", "encoder": f"hf-encoder:{encoder}"}
    study = catalogue.study("indicasa", models, {"indicasa.resamples": 999} | options)
    with Store(folder / "s.db") as store:
        found = score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions())))
    rows = [one for one in found.estimates["indicasa"] if one.metric == "stereotype_probability"]
    (one,) = (one for one in rows if one.group.get("category"))
    return {"value": one.value, "low": one.low, "high": one.high, "p": one.p}


def measure(folder: Path, place: Path) -> str:
    """Return the cells of a row: independent, WEAT's effect size, and the study of both models."""
    found = associations(folder)
    cells = [f"{np.mean([within(one) for one in found]):+.3f}", f"{np.mean([weat(one) for one in found]):+.3f}"]
    for says in ("neutral", "stereotypes"):
        row = by_study(folder, place / says, says)  # type: ignore[arg-type]
        cells.append(f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}] p {row['p']:.2g}")
    return " | ".join(cells)
