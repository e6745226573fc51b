"""Time 10,000 resamples of 91 scenarios by 924 images; fail over 60 s or 2 GiB. Run: benchmarks/resampling.py.

Answers are yes, no or missing (one in ten); images come in two groups. Each row is one way of clustering, with the
share of yes by group, their difference and odds ratio at every resample.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from prejudge.core.statistics.effects import cohens_h, odds_ratio, risk_difference
from prejudge.core.statistics.intervals import Array
from prejudge.core.statistics.multiway import Cells, infer
from prejudge.core.statistics.resampling import Resampling, bootstrap, label_test, swap_test

SCENARIOS, IMAGES, RESAMPLES = 91, 924, 10_000
FACES = 231
"""Four images each, which may be the cluster too."""
SECONDS, GIBIBYTES = 60.0, 2.0


def main() -> int:
    """Print a row per way of clustering; return 1 if any is too slow or all together too large."""
    cells = simulate(np.random.default_rng(0))
    by_image = cells.sum(axis=0)
    by_face = by_image.reshape(FACES, -1, *by_image.shape[1:]).sum(axis=1)
    plan, bca = Resampling(RESAMPLES), Resampling(RESAMPLES, method="bca")
    work = {
        "bootstrap, images": lambda: bootstrap(by_image, statistics, plan),
        "bootstrap, images, BCa": lambda: bootstrap(by_image, statistics, bca),
        "bootstrap, faces": lambda: bootstrap(by_face, statistics, plan),
        "bootstrap, scenarios": lambda: bootstrap(cells.sum(axis=1), statistics, plan),
        "jackknife, scenarios x images": lambda: infer(Cells.of_table(cells), statistics, plan.level),
        "bootstrap, each scenario by images": lambda: bootstrap(per_scenario(cells), statistics, plan),
        "permutation, images": lambda: swap_test(by_image, statistics, plan),
        "permutation of labels, images": lambda: label_test(by_image[:, 0], lambda t: abs(statistics(t)), plan),
    }
    print(f"{RESAMPLES:,} resamples of {SCENARIOS} x {IMAGES} answers, {os.cpu_count()} cores")
    slowest = max(timed(name, run) for name, run in work.items())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'peak memory':36} {peak:8.2f} GiB (limit {GIBIBYTES:g})")
    return int(slowest > SECONDS or peak > GIBIBYTES)


def simulate(rng: np.random.Generator) -> Array:
    """Return cells of shape (scenarios, images, 1, 2 groups, 2): count and hits."""
    group = np.arange(IMAGES) // 4 % 2
    chance = 0.4 + 0.1 * group + rng.normal(0, 0.1, (SCENARIOS, 1)) + rng.normal(0, 0.05, IMAGES)
    yes = rng.random((SCENARIOS, IMAGES)) < chance
    there = rng.random((SCENARIOS, IMAGES)) < 0.9
    columns = np.stack([there, there & yes], axis=-1)[:, :, None, None].astype(np.float64)
    return columns * (group[:, None] == np.arange(2))[None, :, None, :, None]


def per_scenario(cells: Array) -> Array:
    """Return sums (images, scenarios, 2 groups, 2): a unit of its own for every scenario."""
    return np.swapaxes(cells[:, :, 0], 0, 1)


def statistics(totals: Array) -> Array:
    return np.stack([size(totals) for size in (risk_difference, odds_ratio, cohens_h)], axis=-1)


def timed(name: str, run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    print(f"{name:36} {seconds:8.2f} s   (limit {SECONDS:g})", flush=True)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
