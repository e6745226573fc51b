"""How often the subtle-bias studies find a bias in `simulated` models, by what is planted: a table for their page.

python benchmarks/calibrate_subtle.py [MODELS]
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import polars as pl

from prejudge.adapters.simulated import Simulated, SimulatedOptions
from prejudge.core.registry import load_registry
from prejudge.metrics.subtle import Subtle as SubtleMetric
from prejudge.metrics.subtle import SubtleMetricOptions
from prejudge.probes.subtle import Subtle, SubtleOptions

WORDS = str(load_registry().models["simulated-biased"].settings["blanks"])
STRENGTHS = (0.0, 0.1, 0.2, 0.5)
PER_CELL = 12
MEASURE = SubtleMetricOptions(resamples=199)
ALPHA = 0.05
ROW = "| {direction} | {strength:g} | {delta:+.1f} | {delta_PL} %, {tau_c_clustered} % | {asymptotic} % | {covers} % |"


def main(models: int) -> None:
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


def count(observations: pl.DataFrame, found: Counter[str]) -> float:
    """Count what was found in one model's answers, and return its difference of positive answers."""
    delta = 0.0
    for e in SubtleMetric().compute(observations, MEASURE):
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
