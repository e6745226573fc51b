"""Simulate how often the intervals of labelled samples contain the truth, for verdicts that are right and wrong."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator

import numpy as np

from prejudge.core.annotation.design import Design, Drawn, Stratum
from prejudge.core.annotation.matrix import matrix_of, share_by_matrix
from prejudge.core.annotation.powered import Side, within_population
from prejudge.core.annotation.rates import Part, agreement_rate, joint_share
from prejudge.core.annotation.shares import Tally, share_rows
from prejudge.core.contracts.errors import UsageError
from prejudge.core.statistics.clusters import ways_of

LEVEL, LEAST = 0.95, 0.9
Ends = tuple[float, float, float]
"""Truth, and both ends."""


def population(random: np.random.Generator, n: int, share: float, right: float) -> tuple[np.ndarray, ...]:
    """Return labels, verdicts and cells of a population in which the verdict is right so often."""
    cells = random.integers(0, 3, n)
    labels = random.random(n) < np.clip(share * (0.5 + cells / 2), 0, 1)
    return labels, np.where(random.random(n) < right, labels, ~labels), cells


def drawn(random: np.random.Generator, labels: np.ndarray, strata: np.ndarray, each: int) -> list[Part]:
    """Return the parts of a sample with about as many from each stratum."""
    parts = []
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        seen = labels[random.choice(rows, min(each, len(rows)), replace=False)]
        parts.append(Part(len(rows), (int((~seen).sum()), int(seen.sum()))))
    return parts


def share_of(n: int, share: float, right: float, each: int) -> Callable[[np.random.Generator], Ends | None]:
    """Return a simulation of a corrected share, by cell and verdict."""

    def once(random: np.random.Generator) -> Ends | None:
        labels, verdicts, cells = population(random, n, share, right)
        rows, chances = [], []
        for stratum in range(6):
            members = np.flatnonzero(2 * cells + verdicts == stratum)
            rows.append(random.choice(members, min(each, len(members)), replace=False))
            chances.append(np.full(len(rows[-1]), len(rows[-1]) / max(len(members), 1)))
        at = np.concatenate(rows)
        values, sizes = verdicts[at].astype(float), np.bincount(verdicts.astype(int), minlength=2).astype(float)
        side = Side(
            sizes, np.array([0.0, 1.0]), verdicts[at].astype(int), values, labels[at] - values, np.concatenate(chances)
        )
        found = within_population([side], LEVEL, 1.0)
        return float(labels.mean()), max(found.low, 0.0), min(found.high, 1.0)

    return once


def sensitivity_of(n: int, share: float, right: float, each: int) -> Callable[[np.random.Generator], Ends | None]:
    """Return a simulation of a sensitivity."""

    def once(random: np.random.Generator) -> Ends | None:
        labels, verdicts, cells = population(random, n, share, right)
        halves = [drawn(random, labels[verdicts == v], cells[verdicts == v], each) for v in (True, False)]
        found = agreement_rate(halves[0], halves[1], 1, LEVEL)
        return None if found.low is None or found.high is None else (verdicts[labels].mean(), found.low, found.high)

    return once


def precision_of(n: int, share: float, right: float, each: int) -> Callable[[np.random.Generator], Ends | None]:
    """Return a simulation of how many of the answers with the verdict have the label."""

    def once(random: np.random.Generator) -> Ends | None:
        labels, verdicts, cells = population(random, n, share, right)
        found = joint_share(drawn(random, labels[verdicts], cells[verdicts], each), 1, LEVEL)
        return None if found.low is None or found.high is None else (labels[verdicts].mean(), found.low, found.high)

    return once


def known_matrix(n: int, share: float, right: float, each: int) -> Callable[[np.random.Generator], Ends | None]:
    """Return a simulation of a share corrected by an error matrix from elsewhere."""

    def once(random: np.random.Generator) -> Ends | None:
        verdicts = random.random(n) < share * right + (1 - share) * (1 - right)
        hits, passes = random.binomial(each, right), random.binomial(each, right)
        try:
            matrix = matrix_of("yes", (hits, each), (passes, each))
        except UsageError:
            return None
        found = share_by_matrix(int(verdicts.sum()), n, matrix, LEVEL)
        return share, found.low, found.high

    return once


def judged_mean(n: int, share: float, right: float, each: int) -> Callable[[np.random.Generator], Ends | None]:
    """Return a simulation of a mean of numbers whose verdicts are noisy and biased."""

    def once(random: np.random.Generator) -> Ends | None:
        strata = random.integers(0, 3, n)
        truth = random.beta(2 + strata, 2, n)
        verdicts = right * truth + (1 - right) * random.random(n) + 0.1
        rows = np.concatenate([random.choice(np.flatnonzero(strata == s), each, replace=False) for s in range(3)])
        chances = each / np.bincount(strata, minlength=3)[strata[rows]]
        side = Side(np.ones(n), verdicts, rows, verdicts[rows], truth[rows] - verdicts[rows], chances)
        found = within_population([side], LEVEL)
        return float(truth.mean()), found.low, found.high

    return once


def clustered(clusters: int, each: int, crossed: bool, wrong: float) -> Callable[[np.random.Generator], Ends]:
    """Return a simulation of a corrected share of the model, whose answers lie in clusters that lean."""
    rows, columns = np.repeat(np.arange(clusters), each), np.tile(np.arange(each), clusters)
    ways = {"row": rows, "column": columns} if crossed else {"row": rows}
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    truth = float(weights @ (1 / (1 + np.exp(0.5 - nodes * math.sqrt(len(ways))))) / weights.sum())

    def once(random: np.random.Generator) -> Ends:
        lean = sum(random.normal(size=codes.max() + 1)[codes] for codes in ways.values())
        labels = (random.random(len(rows)) < 1 / (1 + np.exp(0.5 - lean))).astype(int)
        strata = np.where(random.random(len(rows)) < wrong, 1 - labels, labels)
        items, known = [], []
        for verdict in (0, 1):
            own = np.flatnonzero(strata == verdict)
            chosen = random.choice(own, min(100, len(own)), replace=False)
            items += [Drawn(str(row), int(row), "", "", verdict, len(chosen) / len(own)) for row in chosen]
            known.append(Stratum({}, str(verdict), len(own), len(chosen)))
        design = Design(
            sample="", run="", head="", verdict="", cells=(), seed=0, drawn=0.0, population=len(rows),
            strata=tuple(known), items=tuple(items), ways=ways_of(ways, strata),
        )  # fmt: skip
        tally = Tally(design, ("0", "1"), {one.item: str(labels[one.row]) for one in items})
        share = share_rows(tally)[1].rate
        return truth, share.low, share.high

    return once


def cases() -> Iterator[tuple[str, Callable[[np.random.Generator], Ends | None]]]:
    """Yield what is simulated."""
    kinds = {"corrected share": share_of, "sensitivity": sensitivity_of, "precision": precision_of}
    for name, make in kinds.items():
        for share in (0.02, 0.3):
            for right in (0.7, 0.95, 1.0):
                for each in (5, 30):
                    yield f"{name}, share {share}, right {right}, {each} a stratum", make(3000, share, right, each)
    for share in (0.02, 0.3, 0.9):
        for right, each in ((0.8, 50), (0.95, 50), (0.95, 500)):
            case = known_matrix(2000, share, right, each)
            yield f"Rogan-Gladen, share {share}, right {right}, {each} known", case
    for clusters, each, crossed, wrong in (
        (40, 25, False, 0.1),
        (15, 60, False, 0.1),
        (30, 20, True, 0.1),
        (40, 25, False, 0.3),
    ):
        name = f"clusters, {clusters} by {each}{' crossed' if crossed else ''}, wrong {wrong}"
        yield name, clustered(clusters, each, crossed, wrong)
    for right in (0.2, 0.9):
        for each in (10, 30):
            yield f"PPI++ mean, judge {right}, {each} a stratum", judged_mean(3000, 0.3, right, each)


def main() -> int:
    """Print the coverage of each; one below the least gives exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    low = []
    for name, once in cases():
        random = np.random.default_rng(20261123)
        found = [one for _ in range(options.draws) if (one := once(random)) is not None]
        covered = float(np.mean([low - 1e-12 <= truth <= high + 1e-12 for truth, low, high in found]))
        width = float(np.mean([high - low for _, low, high in found]))
        print(f"{name:58} {covered:6.3f} covered, mean width {width:.3f}, of {len(found):,}")
        low += [name] if covered < LEAST else []
    print(f"below {LEAST}: {', '.join(low)}" if low else f"all at least {LEAST}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
