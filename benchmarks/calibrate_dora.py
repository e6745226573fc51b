"""Which associations does each method discover, of those planted in `simulated` and where none is planted?

Every model is asked `dora-t2t` about 18 descriptors with two letters and 20 samples, without a store. Another seed is
another model. `python benchmarks/calibrate_dora.py` prints the table that stands in `docs/studies/dora.md`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

import polars as pl

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.completions import Completions, begun
from prejudge.adapters.simulated.noise import Noise
from prejudge.adapters.simulated.words import words_of
from prejudge.core.contracts import Trial
from prejudge.core.contracts.records import Generate
from prejudge.probes.dora.associations import count, measure_cells
from prejudge.probes.dora.salience import METHODS
from prejudge.probes.dora.t2t import DoraT2T, DoraT2TOptions

OPTIONS = DoraT2TOptions(per_dimension=2, samples=20, letters="gt", settings=("noun",))
STRENGTHS = (0.0, 1.0, 2.0, 3.0)
Pairs = set[tuple[str, str]]


def discovered(strength: float, seed: int) -> tuple[pl.DataFrame, Pairs]:
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
    return measure_cells(count(frame)), planted(words, asked)


def planted(words: Completions, asked: Sequence[Trial]) -> Pairs:
    """Return the pairs of a descriptor and the word of its own."""
    found = set()
    for trial in asked:
        assert isinstance(trial.request, Generate)
        sentence = begun(words_of(trial.request.messages))
        if sentence is not None and (word := words.planted(sentence)) is not None:
            found.add((str(trial.factors["descriptor"]), word))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=40)
    models = parser.parse_args().models
    for strength in STRENGTHS:
        cases = [discovered(strength, seed) for seed in range(models)]
        for method, column in METHODS.items():
            kept = [set(pairs.filter(f"salient_{column}").select("descriptor", "word").rows()) for pairs, _ in cases]
            total, hits = sum(map(len, kept)), sum(len(k & truth) for k, (_, truth) in zip(kept, cases, strict=True))
            precision = f"{hits / total:.2f}" if total else "none found"
            recall = hits / max(sum(len(truth) for _, truth in cases), 1)
            some = sum(map(bool, kept))
            # Where nothing is planted, `planted` names words that are said no more often than others.
            shares = f"precision {precision}   recall {recall:.2f}" if strength else f"models with any {some}"
            print(f"strength {strength:.0f}   {method:9} found per model {total / models:5.1f}   {shares}")


if __name__ == "__main__":
    main()
