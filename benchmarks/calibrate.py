"""Calibrate the statistics: how often do intervals cover the truth, and how often do tests cry wolf?

Studies are simulated with a known truth: D = effect * (+1 praise, -1 blame) + template + noise. Every simulated study
is one unit of the resampling, so a thousand of them cost one matrix product. Run: python benchmarks/calibrate.py
"""

from __future__ import annotations

import argparse

import msgspec
import numpy as np
from scipy import stats

from prejudge.metrics._arrays import Array
from prejudge.metrics._cluster import Resampling, bootstrap, flip_test, swap_test
from prejudge.metrics._tally import cell_statistics, contrast_statistics, npll_difference, signed

THRESHOLD = 0.02
FAVOURITISM = 2
"""Its column among the statistics of a contrast."""


class Design(msgspec.Struct, frozen=True):
    """A study to simulate."""

    clusters: int = 20
    size: int = 10
    """Pairs per cluster and context."""
    spread: float = 0.5
    """Standard deviation of the templates' own lean, where that of a pair is 1."""
    effect: float = 0.0
    """Half the planted difference of mean D between praise and blame, in nats."""
    skewed: bool = False
    """Draw noise from a shifted exponential in place of a normal distribution."""


class Rates(msgspec.Struct, frozen=True):
    """What came of it, as shares of the studies; None where the design does not fix the truth."""

    cover_log_odds: float
    """Intervals of the mean log-odds difference that cover the truth."""
    cover_favouritism_log_odds: float
    cover_favouritism: float | None
    """Intervals of favouritism that cover 0, without an effect."""
    swap: float
    """Tests of favouritism at p <= 0.05: false positives without an effect, power with one."""
    flip: float | None
    """Sign-flip tests of z2 - z3 at p <= 0.05 in a context without a lean: false positives."""
    binomial: float | None
    """Binomial tests of single pairs at p <= 0.05 in a context without a lean: false positives."""


def simulate(design: Design, studies: int, seed: int) -> Array:
    """Return sums of shape (clusters, studies, 2 contexts, 5 columns)."""
    rng = np.random.default_rng(seed)
    shape = (design.clusters, studies, 2, design.size)
    noise = rng.exponential(size=shape) - 1 if design.skewed else rng.normal(size=shape)
    lean = rng.normal(0, design.spread, (*shape[:3], 1)) + design.effect * np.array([[1.0], [-1.0]])
    difference = lean + noise
    npll = npll_difference(difference)
    columns = [np.ones(shape), difference, difference**2, npll > THRESHOLD, npll < -THRESHOLD]
    sums: Array = np.stack([column.sum(axis=-1) for column in columns], axis=-1).astype(np.float64)
    return sums


def calibrate(design: Design, studies: int = 1000, resamples: int = 999, seed: int = 0) -> Rates:
    """Return coverage and rejection rates over simulated studies."""
    plan = Resampling(resamples, seed)
    sums = simulate(design, studies, seed)
    praise = sums[:, :, :1]
    low, high = bootstrap(praise, cell_statistics, plan)
    lows, highs = bootstrap(sums, contrast_statistics, plan)
    hits, misses = (praise[..., column].sum(axis=(0, 2)).astype(int) for column in (3, 4))
    binomial = np.array([stats.binomtest(h, h + m).pvalue for h, m in zip(hits, misses, strict=True)])
    level = not design.effect
    even = level and not design.skewed  # Skewed noise of mean 0 is more often below 0 than above: z2 - z3 is not 0.
    return Rates(
        cover_log_odds=_covered(low[:, 0], high[:, 0], design.effect),
        cover_favouritism_log_odds=_covered(lows[:, 0], highs[:, 0], 2 * design.effect),
        cover_favouritism=_covered(lows[:, FAVOURITISM], highs[:, FAVOURITISM], 0.0) if level else None,
        swap=_rejected(swap_test(sums, contrast_statistics, plan)[:, FAVOURITISM]),
        flip=_rejected(flip_test(signed(praise), plan)[:, 1]) if even else None,
        binomial=_rejected(binomial) if even else None,
    )


def _covered(low: Array, high: Array, truth: float) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


def _rejected(p: Array) -> float:
    return float(np.mean(p <= 0.05))


def main() -> None:
    """Print the rates of a range of designs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    studies = parser.parse_args().studies
    names = Rates.__struct_fields__
    print("| clusters | size | spread | effect | skewed | " + " | ".join(names) + " |")
    print("|" + " --- |" * (5 + len(names)))
    for clusters in (7, 14, 30, 75, 150):
        for more in ({}, {"spread": 0.0}, {"spread": 1.0}, {"effect": 0.2}, {"skewed": True}):
            design = Design(clusters=clusters, **more)
            rates = calibrate(design, studies)
            found = ("" if rate is None else f"{rate:.3f}" for rate in msgspec.structs.astuple(rates))
            cells = [*msgspec.structs.astuple(design), *found]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
