"""Calibrate `bistereo-pairs` against fair models whose words lean: false positives, coverage, power.

The design is that of the study (height, women): every template has every attribute word. Nothing or a bias of known
size is planted, and each attribute word has a random lean of its own, which is no bias: other words lean otherwise.

Run: python benchmarks/calibrate_words.py --studies 200
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from prejudge.core.contracts.estimates import Estimate
from prejudge.core.contracts.records import Scalar
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs

LEANS = (0.0, 0.1, 0.3, 0.5)
WAYS: dict[str, str | tuple[str, ...]] = {
    "template": "template",
    "attribute": "attribute",
    "template x attribute": ("template", "attribute"),
}
SIGNS = {"positive": 1.0, "negative": -1.0}
TEMPLATE, NOISE, SEED = 0.5, 1.0, 2025
"""Standard deviations of a template's lean and of a pair's noise, in nats: those of `simulated`."""


def design() -> pl.DataFrame:
    """Return the pairs of height and women, one row each."""
    options = BIStereoOptions(axes=("height",), genders=("women",), sentiments=("positive", "negative"))
    (stage,) = BIStereoPairs().stages(options)
    rows: list[Mapping[str, Scalar]] = [trial.factors for trial in stage.trials({})]
    return pl.DataFrame(rows).filter(pl.col("side") == "desirable").drop("side")


def study(pairs: pl.DataFrame, lean: float, effect: float, rng: np.random.Generator) -> pl.DataFrame:
    """Return the observations of one model: the difference D of a pair goes to its desirable side."""
    sign = pairs["sentiment"].replace_strict(SIGNS, return_dtype=pl.Float64).to_numpy()
    d = sign * effect / 2 + rng.normal(0, NOISE, pairs.height)
    for column, spread in (("template", TEMPLATE), ("attribute", lean)):
        codes = pairs[column].rank("dense").to_numpy() - 1
        d += rng.normal(0, spread, int(codes.max()) + 1)[codes]
    sides = (
        ("desirable", pl.Series("log_probability", d - 30.0)),
        ("undesirable", pl.lit(-30.0).alias("log_probability")),
    )
    return pl.concat(
        [pairs.with_columns(value, side=pl.lit(side), status=pl.lit("ok")) for side, value in sides], how="diagonal"
    )


def picked(estimates: list[Estimate], metric: str) -> Estimate:
    """Return the estimate of a measure, at the main threshold."""
    return next(e for e in estimates if e.metric == metric and e.group.get("threshold", 0.02) == 0.02)


def rates(pairs: pl.DataFrame, lean: float, effect: float, studies: int) -> list[dict[str, Any]]:
    """Return, for each way of clustering, how often favouritism is found and its interval covers the truth."""
    rng = np.random.default_rng([SEED, int(10 * lean), int(10 * effect)])
    counts = {name: np.zeros(3) for name in WAYS}
    for _ in range(studies):
        frame = study(pairs, lean, effect, rng)
        for name, ways in WAYS.items():
            options = TriSentBiasOptions(cluster=ways, resamples=999, thresholds=(0.02,))
            found = TriSentBias().compute(frame, options)
            shares, nats = picked(found, "favouritism"), picked(found, "favouritism_log_odds")
            covers = nats.low is not None and nats.high is not None and nats.low <= effect <= nats.high
            counts[name] += [(shares.p or 1.0) <= 0.05, (nats.p or 1.0) <= 0.05, covers]
    return [
        {"lean": lean, "effect": effect, "cluster": name}
        | dict(zip(("favouritism p <= 0.05", "log-odds p <= 0.05", "log-odds covered"), found / studies, strict=True))
        for name, found in counts.items()
    ]


def table(studies: int) -> list[dict[str, Any]]:
    """Return fair models by lean, then one of 0.5 nats whose words lean by 0.3."""
    pairs = design()
    fair = [row for lean in LEANS for row in rates(pairs, lean, 0.0, studies)]
    return fair + rates(pairs, 0.3, 0.5, studies)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    chosen = parser.parse_args()
    start = time.perf_counter()
    rows = table(chosen.studies)
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    for row in rows:
        print("| " + " | ".join(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()) + " |")
    print(f"{chosen.studies} studies each, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
