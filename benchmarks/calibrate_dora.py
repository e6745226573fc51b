"""Which associations does each method discover, of those planted, and where none is planted?

`python benchmarks/calibrate_dora.py` asks models of `simulated` (noise of 1 nat in every prompt) `dora-t2t` about 18
descriptors with two letters and 20 samples over five wordings, without a store. Another seed is another model.

`--paper` draws answers at the paper's size instead: one setting of 406 descriptors, 26 letters and 10 samples, in one
wording and in five, with noise of each prompt, with an endpoint that gives one answer per prompt, with a third of the
descriptors refusing most letters, and with planted associations.

`--valence` asks how often the intervals of the share of negative associations cover that of other descriptors, with
the same five wordings and with others, where descriptors and wordings lean towards negative words: so many models of so
many studies each. The tables stand in `docs/studies/dora.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import string
from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.completions import Completions, begun
from prejudge.adapters.simulated.noise import Noise
from prejudge.adapters.simulated.words import words_of
from prejudge.core.contracts import Trial
from prejudge.core.contracts.records import Generate
from prejudge.metrics.dora.metric import DoraAssociations, DoraAssociationsOptions
from prejudge.probes.dora.associations import count, measure_cells
from prejudge.probes.dora.salience import METHODS
from prejudge.probes.dora.t2t import DoraT2T, DoraT2TOptions

OPTIONS = DoraT2TOptions(per_dimension=2, samples=20, letters="gt", settings=("noun",), wordings=5)
STRENGTHS = (0.0, 1.0, 2.0, 3.0)
Pairs = set[tuple[str, str]]
Case = tuple[pl.DataFrame, Pairs]
PAPER = {
    "nothing planted, no noise": {},
    "nothing planted, noise of 1 nat per prompt": {"noise": 1.0},
    "nothing planted, one answer per prompt": {"noise": 1.0, "repeats": True},
    "nothing planted, selective refusals": {"refusals": True},
    "1.5 nats planted, no noise": {"strength": 1.5},
    "1.5 nats planted, noise of 1 nat per prompt": {"strength": 1.5, "noise": 1.0},
    "3 nats planted, noise of 1 nat per prompt": {"strength": 3.0, "noise": 1.0},
}


def discovered(strength: float, seed: int) -> Case:
    """Return the measured associations of one model, and those planted in it."""
    stage = DoraT2T().stages(OPTIONS)[0]
    asked = list(stage.trials({}))
    options = SimulatedOptions(strength=strength, seed=seed)
    answers = asyncio.run(Simulated(options).answer([trial.request for trial in asked]))
    rows = [
        {**trial.factors, **dict(stage.read(trial.factors, answer)), "key": b"%d" % number}  # type: ignore[arg-type, call-overload]
        for number, (trial, answer) in enumerate(zip(asked, answers, strict=True))
    ]
    frame = pl.DataFrame(rows).with_columns(status=pl.lit("ok"), stage=pl.lit(stage.name))
    words = Completions(Noise(seed), strength, options.spread)
    return measure_cells(count(frame)), planted(words, asked) if strength else set()


def planted(words: Completions, asked: Sequence[Trial]) -> Pairs:
    """Return the pairs of a descriptor and the word of its own."""
    found = set()
    for trial in asked:
        assert isinstance(trial.request, Generate)
        sentence = begun(words_of(trial.request.messages))
        if sentence is not None and (word := words.planted(sentence)) is not None:
            found.add((str(trial.factors["descriptor"]), word))
    return found


def at_the_papers_size(
    seed: int, wordings: int, strength: float = 0.0, noise: float = 0.0, refusals: bool = False, repeats: bool = False
) -> Case:
    """Return what one model of the size of the paper's Table 4 says in one setting, and what is planted in it."""
    rng = np.random.default_rng(seed)
    descriptors, letters, samples, words = 406, 26, 10, 30
    shape = (descriptors, letters, wordings, words)
    scores = -0.15 * np.arange(words) + noise * rng.normal(size=shape)
    own = np.where(rng.random((descriptors, letters)) < 0.1, rng.integers(0, words, (descriptors, letters)), -1)
    scores += strength * (own[:, :, None, None] == np.arange(words))
    chances = np.exp(scores)
    chances = np.cumsum(chances / chances.sum(axis=-1, keepdims=True), axis=-1)
    d, letter, sample = (place.ravel() for place in np.indices((descriptors, letters, samples)))
    wording = sample % wordings
    draw = rng.random((descriptors, letters, wordings))[d, letter, wording] if repeats else rng.random(len(d))
    said = np.minimum((chances[d, letter, wording] < draw[:, None]).sum(axis=1), words - 1)
    names = np.array([[f"{a}o{'bdfgkmnprt'[n % 10]}{'aeu'[n // 10]}x" for n in range(words)] for a in LETTERS])
    # A third of the descriptors is refused for all but four letters.
    read = ~((d % 3 == 0) & (letter >= 4)) | (rng.random(len(d)) < 0.1) if refusals else np.ones(len(d), dtype=bool)
    frame = pl.DataFrame(
        {"descriptor": d, "letter": np.array(list(LETTERS))[letter], "wording": wording, "word": names[letter, said]}
    )[np.flatnonzero(read)]
    frame = frame.with_row_index("key").with_columns(
        pl.col("key").cast(pl.String).cast(pl.Binary),
        descriptor=pl.concat_str(pl.lit("d"), "descriptor"),
        modality=pl.lit("t2t"),
        setting=pl.lit("noun"),
        dimension=pl.lit("all"),
        stage=pl.lit("completions"),
        status=pl.lit("ok"),
    )
    truth = {(f"d{a}", str(names[b, own[a, b]])) for a, b in np.argwhere(own >= 0)} if strength else set()
    return measure_cells(count(frame)), truth


LETTERS = string.ascii_lowercase
LEANS = (0.0, 0.3, 1.0)
VALENCE = {"all": 0.0, "exact": 3.0}
"""Methods, and the planted strength in nats with which they have something to keep."""


def negative_of(wordings: np.ndarray, rng: np.random.Generator, method: str) -> tuple[float, float, float]:
    """Return the share of negative associations of one study, with its interval.

    24 descriptors with a lean of 1 nat towards negative words, three letters, five wordings of the leans `wordings`,
    two answers to each prompt; ten words per letter, every third of which is negative.
    """
    descriptors, letters, words, samples = 24, 3, 10, 2
    negative = np.arange(words) % 3 == 0
    lean = rng.normal(size=descriptors)
    scores = -0.15 * np.arange(words) + negative * (lean[:, None, None, None] + wordings[:, None])
    scores = np.repeat(scores, letters, axis=1)
    # Half of the descriptors with a letter have a word of their own, which is negative as their lean has it.
    bad = rng.random((descriptors, letters)) < 1 / (1 + np.exp(-lean[:, None]))
    own = np.where(bad, 3 * rng.integers(0, 3, bad.shape), 1 + rng.integers(0, 2, bad.shape))
    planted = (rng.random(bad.shape) < 0.5)[:, :, None] & (own[:, :, None] == np.arange(words))
    scores = scores + VALENCE[method] * planted[:, :, None]
    chances = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    draw = rng.random((*chances.shape[:3], samples, 1))
    said = (np.cumsum(chances, axis=-1)[:, :, :, None] < draw).sum(axis=-1).clip(max=words - 1)
    d, letter, wording, _ = (place.ravel() for place in np.indices(said.shape))
    names = np.array([[f"{a}o{'bdfgkmnprt'[n]}ux" for n in range(words)] for a in LETTERS[1 : 1 + letters]])
    frame = pl.DataFrame({"letter": np.array(list(LETTERS))[1 + letter], "wording": wording})
    frame = frame.with_columns(
        pl.Series("word", names[letter, said.ravel()]),
        pl.Series("descriptor", [f"d{number}" for number in d]),
        pl.int_range(pl.len()).cast(pl.String).cast(pl.Binary).alias("key"),
        reason=pl.lit(None, dtype=pl.String),
        **{name: pl.lit(value) for name, value in CELL.items()},
    )
    named = pl.Series("word", names[:, negative].ravel()).implode()
    label = pl.when(pl.col("word").is_in(named)).then(pl.lit("negative")).otherwise(pl.lit("positive"))
    pairs = frame.unique(["descriptor", "word"], maintain_order=True)
    asked = pairs.with_columns(stage=pl.lit("sentiment"), label=label)
    metric, options = DoraAssociations(), DoraAssociationsOptions(method=method, resamples=399)  # type: ignore[arg-type]
    rows = metric.rows(pl.concat([frame, asked], how="diagonal"), options)
    found = metric.measured(rows.filter(pl.col("of") == "negative"), options)
    share = next((e for e in found if e.metric == "negative" and "dimension" not in e.group), None)
    ends = [None] * 3 if share is None else [share.value, share.low, share.high]
    value, low, high = (np.nan if end is None else end for end in ends)
    return value, low, high


CELL = {"modality": "t2t", "setting": "noun", "dimension": "all", "stage": "completions", "status": "ok"}


def covered(method: str, lean: float, worlds: int, studies: int) -> tuple[float, float]:
    """Return how often intervals cover the share of other descriptors: with these wordings, and with others."""
    rng = np.random.default_rng([7, int(10 * lean)])
    every = (rng.normal(0, lean, 5) for _ in range(worlds))
    found = np.array([[negative_of(own, rng, method) for _ in range(studies)] for own in every])
    value, low, high = np.moveaxis(found, -1, 0)
    truths = np.nanmean(value, axis=1, keepdims=True), np.full((worlds, 1), np.nanmean(value))
    there = np.isfinite(low)
    these, others = (float(np.mean((low <= truth) & (truth <= high), where=there)) for truth in truths)
    return these, others


def show(label: str, cases: Sequence[Case]) -> None:
    """Print a row per method."""
    for method, column in METHODS.items():
        kept = [set(pairs.filter(f"salient_{column}").select("descriptor", "word").rows()) for pairs, _ in cases]
        total, hits = sum(map(len, kept)), sum(len(k & truth) for k, (_, truth) in zip(kept, cases, strict=True))
        precision = f"{hits / total:.2f}" if total else "none found"
        truths = sum(len(truth) for _, truth in cases)
        shares = (
            f"precision {precision}   recall {hits / truths:.2f}"
            if truths
            else f"models with any {sum(map(bool, kept))}"
        )
        print(f"{label}   {method:9} found per model {total / len(cases):7.1f}   {shares}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--valence", action="store_true", help="coverage of the share of negative associations")
    parser.add_argument("--paper", action="store_true", help="draw answers at the paper's size")
    options = parser.parse_args()
    if options.valence:
        for method, lean in product(VALENCE, LEANS):
            these, others = covered(method, lean, options.models, options.models)
            print(
                f"{method:6} wordings lean by {lean}   covers {these:.3f} with these   {others:.3f} with others",
                flush=True,
            )
        return
    if not options.paper:
        for strength in STRENGTHS:
            show(f"strength {strength:.0f}", [discovered(strength, seed) for seed in range(options.models)])
        return
    for wordings in (1, 5):
        for label, planted_ in PAPER.items():
            cases = [at_the_papers_size(seed, wordings, **planted_) for seed in range(options.models)]
            show(f"{wordings} wordings, {label}", cases)


if __name__ == "__main__":
    main()
