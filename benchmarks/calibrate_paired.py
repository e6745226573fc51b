"""How often do the tests of `prejudge compare` reject a true hypothesis, and their intervals cover the truth?

Two simulated runs answer the same units and differ by chance alone: a lean of whole clusters (`spread`) and noise of
each unit. `python benchmarks/calibrate_paired.py` prints the table that stands in `docs/compare.md`.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from prejudge.core.contracts.estimates import Estimate
from prejudge.metrics.general.paired import PairedDifference, PairedDifferenceOptions

OPTIONS = PairedDifferenceOptions(resamples=499)
CELLS, ROUNDS, SIZE = 150, 10, 4
HEAD = "| clusters | spread | missing | rejects (mean) | covers (mean) | rejects (contrast) | covers (contrast) |"


class Case(NamedTuple):
    """One row of the table, for a mean or for a contrast of two means."""

    clusters: int
    spread: float
    missing: float
    contrast: bool


def simulate(case: Case, rng: np.random.Generator) -> pl.DataFrame:
    """Return paired units of many independent cells in which the two runs differ by chance alone."""
    sides = 2 if case.contrast else 1
    cell, cluster, side = (axis.ravel() for axis in np.indices((CELLS, case.clusters, SIZE, sides))[[0, 1, 3]])
    lean = rng.normal(0, case.spread, (CELLS, case.clusters, 2))[cell, cluster, side]
    first, noise = rng.normal(0, 1, (2, len(cell)))
    lost = rng.random(len(cell)) < case.missing
    texts = {"run": "b", "against": "a", "metric": "m", "family": "f", "first_status": "ok"}
    return pl.DataFrame(
        {
            "cell": cell,
            "unit": [str(number) for number in range(len(cell))],
            "cluster": cluster.astype(str),
            "sign": 1 - 2 * side,
            "first": first,
            "second": pl.Series(np.where(lost, np.nan, first + lean + noise)).fill_nan(None),
            "second_status": np.where(lost, "refused", "ok"),
        }
    ).with_columns(
        *(pl.lit(text).alias(name) for name, text in texts.items()),
        *(pl.lit(None, dtype=pl.Float64).alias(name) for name in ("least", "greatest")),
    )


def rates(case: Case) -> tuple[float, float]:
    """Return the share of true hypotheses rejected at 0.05, and of intervals that cover 0."""
    rng = np.random.default_rng([case.clusters, int(10 * case.spread), int(10 * case.missing), case.contrast])
    found: list[Estimate] = []
    for _ in range(ROUNDS):
        found += PairedDifference().compute(simulate(case, rng), OPTIONS)
    rejected = [e.p is not None and e.p <= 0.05 for e in found]
    covered = [e.low <= 0 <= e.high for e in found if e.low is not None and e.high is not None]
    return float(np.mean(rejected)), float(np.mean(covered))


def main() -> None:
    """Print the table."""
    print(f"{HEAD}\n|{' --- |' * 7}")
    for clusters, spread, missing in product((7, 20, 60), (0.0, 0.5), (0.0, 0.2)):
        found = [rate for contrast in (False, True) for rate in rates(Case(clusters, spread, missing, contrast))]
        print(f"| {clusters} | {spread} | {missing} | {' | '.join(f'{rate:.3f}' for rate in found)} |", flush=True)


if __name__ == "__main__":
    main()
