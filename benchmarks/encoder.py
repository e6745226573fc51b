"""Time what `prejudge study train-encoder` does: embedding, delta-sim, steps of one context and of several.

Without files: 2,575 made-up sentences in 119 contexts, with lengths like those of IndiCASA, on a BERT of 6 layers, 384
wide (the size of all-MiniLM-L6-v2), random weights. Delta-sim is also taken pair by pair; both must agree, or the exit
code is 1. Rates are by processor time, so that a busy machine changes them little; one thread.

    python benchmarks/encoder.py
    python benchmarks/encoder.py --model DIR DATA.csv ...     your own
    python benchmarks/encoder.py --splits 200 ...             also delta-sim of 200 random validation parts
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from prejudge.adapters.encoder_training.data import Corpus, Floats, Parts, cut, read_corpus
from prejudge.adapters.encoder_training.encoder import embed, find_model, open_encoder
from prejudge.adapters.encoder_training.measures import deltas
from prejudge.adapters.encoder_training.settings import POOLINGS, SPLITS, Recipe
from prejudge.adapters.encoder_training.training import ContextBatches, rows_of, train
from prejudge.adapters.hf.encoder.model import Encoder

SENTENCES, CONTEXTS, WORDS = 2575, 119, 2000
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def make_data(folder: Path) -> str:
    """Write sentences of 5 to 36 words, 13 on average."""
    rng = np.random.default_rng(0)
    lengths = np.clip(np.round(rng.lognormal(np.log(12.5), 0.33, SENTENCES)), 5, 36).astype(int)
    rows = ["context_id,sentence,type"]
    for place, length in enumerate(lengths):
        words = " ".join(f"w{number}" for number in rng.integers(0, WORDS, length))
        rows.append(f"{place % CONTEXTS},{words},{('stereotype', 'anti_stereotype')[place // CONTEXTS % 2]}")
    path = folder / "made up - all.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def make_model(folder: Path) -> str:
    """Write a BERT of 6 layers, 384 wide, with random weights."""
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *(f"w{number}" for number in range(WORDS))])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    target = folder / "minilm-size"
    BertModel(config).save_pretrained(target)
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **roles).save_pretrained(target)
    return str(target)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    return call(), time.process_time() - begun


def by_pairs(vectors: Floats, corpus: Corpus) -> float:
    """Return delta-sim by equations 1 and 2, in a Python loop over pairs; a sentence and its copy are no pair."""
    unit, texts = vectors / np.linalg.norm(vectors, axis=1, keepdims=True), corpus.texts
    cosines: dict[bool, list[float]] = {True: [], False: []}
    for context in range(corpus.contexts):
        for one, other in itertools.combinations(np.flatnonzero(corpus.context == context), 2):
            alike = bool(corpus.stereotype[one] == corpus.stereotype[other])
            if not (alike and texts[one] == texts[other]):
                cosines[alike].append(float(unit[one] @ unit[other]))
    return float(np.mean(cosines[True]) - np.mean(cosines[False]))


def show_steps(corpus: Corpus, encoder: Encoder, steps: int) -> None:
    """Print the seconds of an epoch of the Trainer, with one context per step and with several."""
    parts = cut(corpus, "context", 42)
    for batch, label in ((1, "one context"), (64, "about 64 sentences")):
        sampler = ContextBatches(rows_of(corpus, parts.train), size=batch, batch_size=batch, drop_last=False)
        drawn = list(itertools.islice(sampler, steps))
        few = Parts(parts.train[np.concatenate(drawn)], parts.tuning, parts.validation)
        with tempfile.TemporaryDirectory() as folder:
            call = partial(train, encoder, corpus, few, Recipe(batch=batch, epochs=1), Path(folder))
            _, seconds = timed(call)
        print(f"| step of {label} ({len(few.train) / len(drawn):.0f}) | {seconds / len(drawn):.2f} | |")


def show_splits(corpus: Corpus, vectors: Floats, count: int) -> None:
    """Print how far delta-sim of an untrained encoder depends on which sentences are held out."""
    for by in SPLITS:
        parts = [cut(corpus, by, seed).validation for seed in range(count)]
        values = np.array([deltas(vectors[rows], corpus, rows)["overall"].value for rows in parts], dtype=float)
        low, high = np.quantile(values, [0.025, 0.975])
        ends = f"95 % of them in {low:.4f} to {high:.4f}"
        print(f"split by {by}, seeds 0 to {count - 1}: mean {values.mean():.4f}, {ends}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--model")
    parser.add_argument("--pooling", choices=POOLINGS, default="own")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--splits", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus(given.data or [make_data(Path(folder))])
        source = find_model(given.model or make_model(Path(folder)))
        encoder = open_encoder(source, corpus.texts, "cpu", given.pooling)
    vectors, seconds = timed(lambda: embed(encoder, corpus.texts))
    found, quick = timed(lambda: deltas(vectors, corpus, np.arange(len(corpus.sentences))))
    slow_value, slow = timed(lambda: by_pairs(vectors, corpus))
    whole, count = found["overall"], len(vectors)
    print("| step | processor seconds | rate |\n| --- | --- | --- |")
    print(f"| embed {count:,} sentences | {seconds:.2f} | {count / seconds:,.0f} sentences/s |")
    print(f"| delta-sim with intervals, all categories ({sum(whole.pairs):,} pairs) | {quick:.4f} | |")
    print(f"| the same pair by pair, overall only, no interval | {slow:.4f} | |")
    show_steps(corpus, encoder, given.steps)
    print("\nDelta-sim: " + ", ".join(f"{name} {delta.value:.4f}" for name, delta in found.items() if delta.value))
    if given.splits:
        show_splits(corpus, vectors, given.splits)
    return 0 if abs(slow_value - (whole.value or 0.0)) < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
