"""Gates that look early: error rates of confidence sequences at every look, over planted units.

Run: `python benchmarks/anytime.py [REPEATS]`. The mean is at the limit, where errors are most frequent: a wrong pass or
failure at any look counts. `benchmarks/until.py` does it for runs of the built-in studies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from prejudge.core.gate.deciding import looks
from prejudge.core.statistics.betting import Mean, bounds_of

Array = npt.NDArray[Any]
REPEATS, ALPHA, UNITS, LIMIT = 1000, 0.05, 200, 0.6
PAIR = 2


def of(sums: Array, sizes: Array, most: float, least: float = 0.0, greatest: float = 1.0) -> Mean:
    """Return a mean of answers from 0 to 1, or of differences between such."""
    return Mean(sums=sums, sizes=sizes, least=least, greatest=greatest, most=most, typical=float(most) / 2)


def leaning(rng: np.random.Generator, sizes: Array, middle: Array | float, spread: float = 0.25) -> Array:
    """Draw the yes answers of units whose shares lean: a beta distribution with this mean and spread."""
    share = np.asarray(middle) + np.zeros(len(sizes))
    total = share * (1 - share) / spread**2 - 1
    found: Array = rng.binomial(sizes, rng.beta(share * total, (1 - share) * total)).astype(float)
    return found


def clustered(rng: np.random.Generator) -> tuple[Mean, ...]:
    """Words that lean, ten answers each."""
    sizes = np.full(UNITS, 10)
    return (of(leaning(rng, sizes, LIMIT), sizes, 10),)


def unequal(rng: np.random.Generator) -> tuple[Mean, ...]:
    """Large units are above the limit and small ones below, so that the mean of answers is at it."""
    sizes = rng.choice([2, 10], UNITS)
    return (of(leaning(rng, sizes, np.where(sizes == 10, LIMIT + 0.05, LIMIT - 0.25)), sizes, 10),)


def missing(rng: np.random.Generator) -> tuple[Mean, ...]:
    """A third of the answers is missing, whole units among them; the mean of the others is at the limit."""
    sizes = rng.binomial(10, 2 / 3, UNITS) * (rng.random(UNITS) > 0.1)
    return (of(leaning(rng, sizes, LIMIT), sizes, 10),)


def drifting(rng: np.random.Generator) -> tuple[Mean, ...]:
    """Both sides drift alike from .3 to .7 while units are asked; their difference stays at the limit of .1."""
    sizes, level = np.full(UNITS, 5), np.linspace(0.25, 0.65, UNITS)
    gap = leaning(rng, sizes, level + 0.1, 0.2) - leaning(rng, sizes, level, 0.2)
    return (of(gap, sizes, 5, -1.0, 1.0),)


def fixed(rng: np.random.Generator) -> tuple[Mean, ...]:
    """A fixed set of 60 units in random order, whose mean is exactly the limit."""
    sums = np.repeat([10.0, 6.0, 2.0], 20)
    return (of(rng.permutation(sums), np.full(60, 10), 10),)


def apart(rng: np.random.Generator) -> tuple[Mean, ...]:
    """Words of two sides, each word of one; the difference is at the limit of .1."""
    sizes = np.full(UNITS // 2, 10)
    return tuple(of(leaning(rng, sizes, middle), sizes, 10) for middle in (0.6, 0.5))


PLANTED: Mapping[str, tuple[Callable[[np.random.Generator], tuple[Mean, ...]], float]] = {
    "words that lean": (clustered, LIMIT),
    "units of unequal size and value": (unequal, LIMIT),
    "a third missing": (missing, LIMIT),
    "drift of both sides": (drifting, 0.1),
    "a fixed set of units": (fixed, LIMIT),
    "words of one side each": (apart, 0.1),
}


def errors(name: str, repeats: int, level: float = ALPHA) -> tuple[float, float, float]:
    """Return how often a mean at its limit is ever bounded below it, ever above it, and by a t test at any look."""
    draw, limit = PLANTED[name]
    rng = np.random.default_rng(1)
    found = np.zeros(3)
    for _ in range(repeats):
        means = draw(rng)
        bounds = bounds_of(means, level, [limit], steps=1)
        found += [bounds.high < limit, bounds.low > limit, peeked(means, limit)]
    return tuple(found / repeats)


def peeked(means: tuple[Mean, ...], limit: float) -> bool:
    """Return whether a t test over units, at 5 %, ever refutes the limit at a look."""
    if len(means) == PAIR:
        return False
    (mean,) = means
    for k in looks(len(mean.sums)):
        left = mean.sums[:k] - limit * mean.sizes[:k]
        if abs(left.sum()) > 1.96 * np.sqrt(k) * left.std(ddof=1):
            return True
    return False


def main() -> None:
    """Print the table as Markdown."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    print("| units | ever wrongly below | ever wrongly above | of a t test at every look |\n| --- | --- | --- | --- |")
    for name in PLANTED:
        below, above, test = errors(name, repeats)
        print(f"| {name} | {100 * below:.1f} % | {100 * above:.1f} % | {100 * test:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
