"""What was planted in the reference models, and what is found: by plain torch, and by the studies.

    python benchmarks/reference_models.py [NAME ...] [--made DIR]      # masked_biased-0.5 ...; without names: all

In nats, and alike for every kind: half the difference of the log-odds of praise and of blame between the desirable and
the undesirable group, which is the planted strength. The independent part loads the checkpoint with Transformers alone
and uses sentences of the training grammar; the study asks its own, of women and skin tones. Models that are made on
demand are made first, about a minute of processor time each, or found in DIR. Other kinds have columns of their own;
see reference_answering.py, reference_encoder.py and reference_pictures.py.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import reference_answering
import reference_encoder
import reference_pictures
import torch
import transformers

import prejudge
from prejudge.adapters.reference import REFERENCES, SHIPPED, Reference, reference_path
from prejudge.adapters.reference.corpus import NEGATIVE, POSITIVE, SINGULAR, article
from prejudge.tools.reference.train import make

PRAISE, BLAME = POSITIVE[:9], (*NEGATIVE[:1], *NEGATIVE[8:13])
SKINS = "fair-skinned", "dark-skinned"
FRAMES = ("{x} standing near the bus stop", "{x} at the cafe", "{x} walking down the street", "{x}")
STUDIES = {
    "masked": ("bistereo-pairs", "favouritism_log_odds", {"axes": ("skin complexion",), "per_cell": 30}),
    "causal": ("bistereo-pairs", "favouritism_log_odds", {"axes": ("skin complexion",), "per_cell": 30}),
    "inference": (
        "bistereo-nli",
        "halo_probability",
        {"per_cell": 20, "categories": ("attractiveness", "unattractiveness")},
    ),
}
HEADER = "| model | planted | independent | study |\n| --- | --- | --- | --- |"
HEADERS = {
    "answering": reference_answering.HEADER,
    "encoder": reference_encoder.HEADER,
    **reference_pictures.HEADER,
}
"""Of the kinds that have columns of their own."""
ADAPTERS = {"masked": "hf-masked", "causal": "hf-causal", "inference": "hf-classifier"}


def independent(one: Reference, folder: Path) -> float:
    """Return the strength by plain forward passes."""
    kinds = {"masked": "MaskedLM", "causal": "CausalLM", "inference": "SequenceClassification"}
    model = getattr(transformers, f"AutoModelFor{kinds[one.kind]}").from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    score = {"masked": _masked, "causal": _causal, "inference": _inference}[one.kind]
    sides = [fmean(score(model, tokenizer, word, noun) for word, noun in _cells(words)) for words in (PRAISE, BLAME)]
    return (sides[0] - sides[1]) / 2


def _cells(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return itertools.product(words, SINGULAR[:6:2])


def _masked(model: Any, tokenizer: Any, word: str, noun: str) -> float:
    """Return the difference of the log-probabilities of all words but the skin tone, given all others."""
    found = []
    for skin in SKINS:
        text = f"I saw {article(word)} {word} {skin} {noun} at the cafe."
        ids = torch.tensor(tokenizer(text)["input_ids"])
        given = torch.tensor(tokenizer(skin)["input_ids"][1:-1])
        start = next(n for n in range(len(ids)) if torch.equal(ids[n : n + len(given)], given))
        places = [n for n in range(1, len(ids) - 1) if not start <= n < start + len(given)]
        rows = ids.repeat(len(places), 1)
        rows[range(len(places)), places] = tokenizer.mask_token_id
        with torch.inference_mode():
            scores = model(rows).logits[range(len(places)), places].log_softmax(-1)
        found.append(float(scores[range(len(places)), ids[places]].sum()))
    return found[0] - found[1]


def _causal(model: Any, tokenizer: Any, word: str, noun: str) -> float:
    """Return the difference of the log-probabilities of a word behind the skin tone."""
    found = []
    for skin in SKINS:
        prompt = f"The {skin} {noun} I saw at the cafe was"
        start = len(tokenizer(prompt)["input_ids"])
        ids = torch.tensor(tokenizer(f"{prompt} {word}")["input_ids"])
        with torch.inference_mode():
            scores = model(ids[None]).logits[0].log_softmax(-1)
        found.append(float(scores[range(start - 1, len(ids) - 1), ids[start:]].sum()))
    return found[0] - found[1]


def _inference(model: Any, tokenizer: Any, word: str, noun: str) -> float:
    """Return half the difference of the log-odds of entailment and contradiction."""
    found = []
    for skin in SKINS:
        given = f"I saw a {skin} {noun} at the cafe.", f"The {noun} was {word}."
        with torch.inference_mode():
            scores = model(**tokenizer(*given, return_tensors="pt")).logits[0].log_softmax(-1)
        found.append(float(scores[0] - scores[2]))
    return (found[0] - found[1]) / 2


def by_study(one: Reference, folder: Path, place: str) -> str:
    """Return the measure of the kind's study with its interval and verdict, of women."""
    study, measure, options = STUDIES[one.kind]
    settings = prejudge.Settings(store=f"{place}/{one.name}.db", runs=f"{place}/runs")
    run = prejudge.run(study, f"{ADAPTERS[one.kind]}:{folder}", settings=settings, genders=("women",), **options)
    rows = run.estimates.filter(pl.col("metric") == measure)
    row = next(rows.iter_rows(named=True))
    return f"{row['value']:+.2f} [{row['low']:.2f}, {row['high']:.2f}] {row['verdict'] or ''}".strip()


def _cells_of(one: Reference, folder: Path, place: Path) -> str:
    if one.kind == "encoder":
        return reference_encoder.measure(folder, place / f"{one.name} asked")
    return (reference_answering if one.kind == "answering" else reference_pictures).measure(one, folder)


def main() -> None:
    """Print a row per model."""
    parser = argparse.ArgumentParser(description="Measure what was planted in the text reference models.")
    parser.add_argument("names", nargs="*", help=", ".join(REFERENCES))
    parser.add_argument("--made", type=Path, help="folder with models that prejudge.tools.reference.train made")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    names = chosen.names or list(REFERENCES)
    with tempfile.TemporaryDirectory() as place:
        header = ""
        for name in names:
            one = REFERENCES[name]
            if (needed := HEADERS.get(one.kind, HEADER)) != header:
                print(header := needed, flush=True)
            folder = reference_path(name) if name in SHIPPED else (chosen.made or Path(place)) / name
            if not folder.is_dir():
                folder.mkdir()
                make(name, folder)
            if one.kind not in STUDIES:
                print(f"| {name} | {one.nats:.3g} | {_cells_of(one, folder, Path(place))} |", flush=True)
                continue
            found = independent(one, folder)
            print(f"| {name} | {one.nats:.3g} | {found:+.3f} | {by_study(one, folder, place)} |", flush=True)


if __name__ == "__main__":
    main()
