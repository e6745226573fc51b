"""How often the subtle-bias studies find a bias, by what is planted: the two tables of their page.

python benchmarks/calibrate_subtle.py [MODELS]

The first table is of answers whose terms and templates have leans of their own that have nothing to do with the
polarity of a term; the second is of `simulated` models.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import numpy as np
import polars as pl

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.catalogue.trust import load_registry
from prejudge.metrics.subtle.metric import Subtle as SubtleMetric
from prejudge.metrics.subtle.metric import SubtleMetricOptions
from prejudge.probes.subtle.probe import Subtle, SubtleOptions

WORDS = str(load_registry().models["simulated-biased"].settings["blanks"])
STRENGTHS = (0.0, 0.1, 0.2, 0.5)
PER_CELL = 12
MEASURE = SubtleMetricOptions(resamples=199)
ALPHA = 0.05
ROW = "| {direction} | {strength:g} | {delta:+.1f} | {delta_PL} %, {tau_c_clustered} % | {asymptotic} % | {covers} % |"


LEANS = (("no", 0.0, 0.0), ("terms", 0.7, 0.0), ("terms and templates", 0.7, 0.7))
"""What has a lean of its own, and the standard deviation of the terms' and of the templates', in log-odds."""
LEAN_MEASURE = SubtleMetricOptions(resamples=399)
LEAN_ROW = "| {what} | {delta_PL} %, {tau_c_clustered} % | {asymptotic} % | {covers} % |"
CHOICES = ("negative", "neutral", "positive")


def main(models: int) -> None:
    """Print both tables."""
    leaning(models * 3 // 2)
    planted(models)


def leaning(studies: int) -> None:
    """Print a row per kind of lean."""
    for what, terms, templates in LEANS:
        found, rng = Counter[str](), np.random.default_rng(0)
        for _ in range(studies):
            count(answers_of(terms, templates, rng), found, LEAN_MEASURE)
        print(LEAN_ROW.format(what=what, **{name: round(100 * found[name] / studies) for name in NAMES}), flush=True)


def answers_of(terms: float, templates: float, rng: np.random.Generator) -> pl.DataFrame:
    """Return the answers to 9 templates with 16 terms in 3 pronouns: each choice has a lean by term and template."""
    leans = rng.normal(0, terms, (1, 16, 1, 3)) + rng.normal(0, templates, (9, 1, 1, 3))
    # The greatest of logits with Gumbel noise is a draw from their softmax.
    chosen = (leans + rng.gumbel(size=(9, 16, 3, 3))).argmax(axis=-1)
    template, term, pronoun = (axis.ravel() for axis in np.indices(chosen.shape))
    return pl.DataFrame(
        {
            "item": np.arange(chosen.size).astype(str),
            "domain": "age",
            "pronoun": np.array(["feminine", "masculine", "neutral"])[pronoun],
            "given": np.array(["negative", "positive"])[term % 2],
            "template": template.astype(str),
            "term": term.astype(str),
            "chosen": np.array(CHOICES)[chosen.ravel()],
            "position": rng.integers(1, 4, chosen.size),
            "status": "ok",
        }
    )


def planted(models: int) -> None:
    """Print a row per direction and strength."""
    for direction in ("sai", "asa"):
        (stage,) = Subtle().stages(SubtleOptions(direction=direction, per_cell=PER_CELL))
        trials = list(stage.trials({}))
        for strength in STRENGTHS:
            found, total = Counter[str](), 0.0
            for seed in range(models):
                model = Simulated(SimulatedOptions(strength=strength, seed=seed, blanks=WORDS))
                answers = asyncio.run(model.answer([trial.request for trial in trials]))
                rows = [
                    trial.factors | stage.read(trial.factors, answer) | {"status": "ok"}
                    for trial, answer in zip(trials, answers, strict=True)
                ]
                total += count(pl.DataFrame(rows, infer_schema_length=None), found)
            shares = {name: round(100 * found[name] / models) for name in NAMES}
            print(
                ROW.format(direction=direction.upper(), strength=strength, delta=total / models, **shares), flush=True
            )


NAMES = ("delta_PL", "tau_c_clustered", "asymptotic", "covers")


def count(observations: pl.DataFrame, found: Counter[str], options: SubtleMetricOptions = MEASURE) -> float:
    """Count what was found in one model's answers, and return its difference of positive answers."""
    delta = 0.0
    for e in SubtleMetric().compute(observations, options):
        significant = e.p is not None and e.p <= ALPHA
        if e.metric == "delta_PL" and not e.group:
            delta = e.value or 0.0
            found["delta_PL"] += significant
            found["covers"] += e.low is not None and e.high is not None and e.low <= 0 <= e.high
        elif e.metric == "tau_c_clustered" and set(e.group) == {"coding"}:
            found["tau_c_clustered"] += significant
        elif e.metric == "tau_c" and e.group == {"coding": "polarity"}:
            found["asymptotic"] += significant
    return delta


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
