"""Simulate how often the intervals of corrected numbers contain the truth, for judges of many kinds; and their errors.

The truth is that of the model: the answers are drawn anew, in clusters that lean, and so are the labels.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from prejudge.core.annotation.matrix import by_matrix
from prejudge.core.annotation.powered import Labelled, Rows, powered
from prejudge.core.contracts.errors import UsageError

LEVEL, LEAST = 0.95, 0.92
CHANCE = 0.01
"""Of any case being called low whose coverage is just the least, over all cases together."""
KEYS = ("refused", "covered", "width", "raw_covered", "raw_error", "error", "advice")


class World(NamedTuple):
    """Answers of a model in clusters, and a judge."""

    clusters: int = 40
    each: int = 25
    share: float = 0.4
    lean: float = 0.7
    """Standard deviation of the clusters, in log-odds."""
    right: tuple[tuple[float, float], tuple[float, float]] = ((0.9, 0.9), (0.9, 0.9))
    """By group: how often the judge is right for a label of 0, and for 1."""
    difference: float | None = 0.1
    """Of the shares of two groups; None: one group, and the mean is corrected."""
    labels: int = 200
    by_verdict: bool = True
    """Whether as many labels are drawn of every group and verdict; else at random."""
    disagree: float = 0.0
    """Share of the labels that each of three people gets wrong; the majority counts."""
    number: float | None = None
    """The truth is a number from 0 to 1, and the judge's error has this standard deviation."""


def shares_of(world: World) -> tuple[float, float]:
    """Return the true shares of both groups, over clusters that lean."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    found = []
    for share in (world.share + (world.difference or 0.0), world.share):
        start = math.log(share / (1 - share))
        found.append(float(weights @ (1 / (1 + np.exp(-start - nodes * world.lean))) / weights.sum()))
    return found[0], found[1]


def answers(world: World, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return truth, verdict, group and cluster of every answer."""
    n = world.clusters * world.each
    cluster = np.repeat(np.arange(world.clusters), world.each)
    group = random.integers(0, 2, n) if world.difference is not None else np.zeros(n, dtype=int)
    share = np.where(group == 0, world.share + (world.difference or 0.0), world.share)
    lean = random.normal(0, world.lean, world.clusters)[cluster]
    chance = 1 / (1 + np.exp(-np.log(share / (1 - share)) - lean))
    if world.number is not None:
        truth = random.beta(4 * chance, 4 * (1 - chance))
        return truth, np.clip(truth + 0.1 + random.normal(0, world.number, n), 0, 1), group, cluster
    truth = (random.random(n) < chance).astype(float)
    right = np.array(world.right)[group, truth.astype(int)]
    return truth, np.where(random.random(n) < right, truth, 1 - truth), group, cluster


def drawn(world: World, verdict: np.ndarray, group: np.ndarray, random: np.random.Generator) -> tuple[Any, Any]:
    """Return the places that are labelled, and the chance of each."""
    n = len(verdict)
    if not world.by_verdict:
        return random.choice(n, world.labels, replace=False), np.full(world.labels, world.labels / n)
    strata = 2 * group + (verdict > 0.5)
    places, chances = [], []
    kinds, sizes = np.unique(strata, return_counts=True)
    wanted = np.rint(world.labels * np.sqrt(sizes) / np.sqrt(sizes).sum()).astype(int)
    for kind, size, own in zip(kinds, sizes, wanted, strict=True):
        count = min(size, max(2, own))
        places.append(random.choice(np.flatnonzero(strata == kind), count, replace=False))
        chances.append(np.full(count, count / size))
    return np.concatenate(places), np.concatenate(chances)


def by_labels(world: World) -> Callable[[np.random.Generator], dict[str, float]]:
    """Return a simulation of a number corrected by labels."""
    first, second = shares_of(world)
    target = first - second if world.difference is not None else first

    def once(random: np.random.Generator) -> dict[str, float]:
        truth, verdict, group, cluster = answers(world, random)
        signs = np.where(group == 0, 1.0, -1.0)
        codes = (verdict > 0.5).astype(int) if world.number is None else np.unique(verdict, return_inverse=True)[1]
        rows = Rows(verdict, signs, (cluster,), codes)
        places, chances = drawn(world, verdict, group, random)
        told = truth[places]
        if world.disagree:
            wrong = (random.random((3, len(places))) < world.disagree).sum(axis=0) >= 2
            told = np.where(wrong, 1 - told, told)
        step = 1.0 if world.number is None else 0.0
        try:
            found = powered(rows, Labelled(places, told - verdict[places], chances), LEVEL, step)
        except UsageError:
            return {"refused": 1.0}
        every = np.arange(len(verdict))
        raw = powered(rows, Labelled(every, np.zeros(len(every)), np.ones(len(every))), LEVEL)
        # The refused are not among them: whoever is refused has no interval.
        return _told(target, (raw.value, raw.low, raw.high), found)

    return once


def _told(target: float, raw: tuple[float, float, float], found: Any) -> dict[str, float]:
    closer = abs(found.value - target) < abs(raw[0] - target)
    return {
        "refused": 0.0,
        "covered": float(found.low <= target <= found.high),
        "width": found.high - found.low,
        "raw_covered": float(raw[1] <= target <= raw[2]),
        "raw_error": (raw[0] - target) ** 2,
        "error": (found.value - target) ** 2,
        "advice": float(found.closer == closer),
    }


def with_matrix(world: World, known: int) -> Callable[[np.random.Generator], dict[str, float]]:
    """Return a simulation of a number corrected by an error matrix from `known` answers of each label and group."""
    first, second = shares_of(world)
    target = first - second if world.difference is not None else first

    def once(random: np.random.Generator) -> dict[str, float]:
        _, verdict, group, cluster = answers(world, random)
        rows = Rows(verdict, np.where(group == 0, 1.0, -1.0), (cluster,), verdict.astype(int))
        counts = []
        for rates in world.right[: int(group.max()) + 1]:
            right = [random.binomial(known, rate) for rate in rates]
            counts.append(np.array([[right[0], known - right[0]], [known - right[1], right[1]]], dtype=float))
        found = by_matrix(rows, np.array([0.0, 1.0]), group, counts, LEVEL)
        return _told(target, _raw(rows), found)

    return once


def _raw(rows: Rows) -> tuple[float, float, float]:
    every = np.arange(len(rows.values))
    found = powered(rows, Labelled(every, np.zeros(len(every)), np.ones(len(every))), LEVEL)
    return found.value, found.low, found.high


def with_three(known: int, clusters: int = 40) -> Callable[[np.random.Generator], dict[str, float]]:
    """Return a simulation of the difference of a share of three labels, whose judge takes one for another by group."""
    difference, spread = 0.1, 0.5

    def once(random: np.random.Generator) -> dict[str, float]:
        cluster, group = np.repeat(np.arange(clusters), 25), random.integers(0, 2, 25 * clusters)
        lean = np.exp(random.normal(0, spread, (clusters, 3)))[cluster]
        # The groups' shares differ by what is planted in every cluster.
        chances = lean / lean.sum(axis=1, keepdims=True) * (1 - difference)
        chances[:, 0] += difference * (group == 0)
        chances[:, 1] += difference * (group == 1)
        truth = (random.random((len(group), 1)) > chances.cumsum(axis=1)).sum(axis=1)
        rates = np.array(THREE)[group, truth]
        verdict = (random.random((len(group), 1)) > rates.cumsum(axis=1)).sum(axis=1)
        counts = [np.stack([random.multinomial(known, own) for own in of]).astype(float) for of in THREE]
        signs = np.where(group == 0, 1.0, -1.0)
        rows = Rows((verdict == 0).astype(float), signs, (cluster,), verdict)
        found = by_matrix(rows, np.array([1.0, 0.0, 0.0]), group, counts, LEVEL)
        return _told(difference, _raw(rows), found)

    return once


THREE = (
    ((0.80, 0.05, 0.15), (0.05, 0.80, 0.15), (0.10, 0.10, 0.80)),
    ((0.90, 0.05, 0.05), (0.05, 0.70, 0.25), (0.30, 0.05, 0.65)),
)
"""By group and label: how often a judge gives each of three verdicts."""


BLIND = ((0.5, 0.5), (0.5, 0.5))
PERFECT = ((1.0, 1.0), (1.0, 1.0))
UNFAIR = ((0.95, 0.95), (0.75, 0.95))
WORLDS: Mapping[str, World] = {
    "good judge": World(),
    "good judge, one group": World(difference=None),
    "judge whose errors differ by group": World(right=UNFAIR),
    "judge whose errors differ by group, simple random": World(right=UNFAIR, by_verdict=False),
    "judge by chance": World(right=BLIND),
    "judge that is never wrong": World(right=PERFECT),
    "judge that is never wrong, one group, 40 labels": World(right=PERFECT, difference=None, labels=40),
    "judge that is wrong in 2 %, 60 labels": World(right=((0.98, 0.98), (0.98, 0.98)), labels=60),
    "labels of nearly one class": World(share=0.03, difference=None, right=((0.97, 0.8),) * 2),
    "40 labels": World(labels=40),
    "40 labels, simple random": World(labels=40, by_verdict=False),
    "400 labels": World(labels=400),
    "12 clusters": World(clusters=12, each=80),
    "5 answers a cluster, strong leans": World(clusters=200, each=5, lean=1.5),
    "people who disagree": World(disagree=0.1),
    "numbers": World(number=0.2),
    "numbers, noisy judge": World(number=1.0),
    "numbers, 40 labels": World(number=0.2, labels=40),
}


def cases() -> Iterator[tuple[str, Callable[[np.random.Generator], dict[str, float]]]]:
    """Yield what is simulated."""
    for name, world in WORLDS.items():
        yield f"PPI++: {name}", by_labels(world)
    for name in ("good judge", "good judge, one group", "judge whose errors differ by group", "12 clusters"):
        for known in (30, 300):
            yield f"matrix: {name}, {known} known", with_matrix(WORLDS[name], known)
    for known in (30, 300):
        yield f"matrix: three labels, {known} known", with_three(known)
    yield "matrix: three labels, 12 clusters, 100 known", with_three(100, 12)
    for name in ("judge that is never wrong", "labels of nearly one class"):
        yield f"matrix: {name}, 100 known", with_matrix(WORLDS[name], 100)


def simulate(once: Callable[[np.random.Generator], dict[str, float]], repeats: int) -> dict[str, float]:
    """Return the means over repeats; those of refusals are of refusals alone."""
    found = [once(np.random.default_rng([20261123, n])) for n in range(repeats)]
    done = [one for one in found if not one["refused"]]
    means = {key: float(np.mean([one[key] for one in done])) if done else math.nan for key in KEYS[1:]}
    return {"refused": 1 - len(done) / len(found), **means}


def is_low(found: Mapping[str, float], repeats: int) -> bool:
    """Return whether the coverage is below the least by more than repeats differ by chance."""
    done = round(repeats * (1 - found["refused"]))
    every = sum(1 for _ in cases())
    return bool(done and stats.binom.cdf(round(found["covered"] * done), done, LEAST) < CHANCE / every)


def main() -> int:
    """Print the rates of each; a coverage below the least by more than chance gives exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--only", default="", help="Only the cases whose names have these words.")
    options = parser.parse_args()
    low = []
    print(f"{'':58} covered  width  raw covered  error, raw  corrected  advice right  refused")
    for name, once in cases():
        if options.only not in name:
            continue
        found = simulate(once, options.repeats)
        print(
            f"{name:58} {found['covered']:7.3f} {found['width']:6.3f} {found['raw_covered']:12.3f} "
            f"{math.sqrt(found['raw_error']):11.3f} {math.sqrt(found['error']):10.3f} {found['advice']:13.2f} "
            f"{found['refused']:8.2f}",
            flush=True,
        )
        low += [name] if is_low(found, options.repeats) else []
    print(f"below {LEAST}: {', '.join(low)}" if low else f"none below {LEAST} by more than chance")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
