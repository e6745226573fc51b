"""A random sample of answers to be labelled: by cell and by verdict, with the chance of each to be drawn."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from ..statistics.clusters import Array, Codes, Way, ways_of
from .design import Stratum

MOST_VERDICTS = 20
MOST_STRATA = 400
MOST_ITEMS = 5_000
LEAST = 2
"""Answers of every stratum that are drawn, if it has as many."""


class Levels(NamedTuple):
    """A column of the answers that a sample is drawn from."""

    name: str
    words: tuple[str, ...]
    """By code."""
    codes: Codes
    """Shape (answers,)."""
    numbers: Array | None = None
    """Shape (answers,), where the levels are numbers; NaN is missing."""


class Population(NamedTuple):
    """The answers that a sample is drawn from."""

    verdict: Levels
    cells: tuple[Levels, ...] = ()
    clusters: Mapping[str, Codes] = {}
    """Shape (answers,) each, the cluster of every answer, by column."""


class Chosen(NamedTuple):
    """A drawn answer, by its place in the population."""

    place: int
    stratum: int
    probability: float


class Draw(NamedTuple):
    """The strata, the drawn answers in a random order, and the clusters of the population."""

    strata: tuple[Stratum, ...]
    chosen: tuple[Chosen, ...]
    ways: tuple[Way, ...]


def draw(population: Population, n: int, seed: int) -> Draw:
    """Return a sample of about `n` answers.

    Raises:
        UsageError: nothing can be drawn, or too much; the verdict has too many levels, or there are too many strata.
    """
    answers = len(population.verdict.codes)
    if not answers or not 0 < n <= MOST_ITEMS:
        raise UsageError(
            f"{n:,} of {answers:,} answers cannot be drawn. Draw 1 to {MOST_ITEMS:,} of those that fit.",
            code="annotation.size",
        )
    strata, codes = _strata_of(population)
    random = np.random.default_rng(seed)
    chosen: list[Chosen] = []
    counts = allocated([stratum.size for stratum in strata], n)
    for number, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
        indices = random.choice(np.flatnonzero(codes == number), count, replace=False)
        chosen += [Chosen(int(index), number, count / stratum.size) for index in indices]
    return Draw(
        tuple(msgspec.structs.replace(one, drawn=count) for one, count in zip(strata, counts, strict=True)),
        tuple(chosen[place] for place in random.permutation(len(chosen))),
        ways_of(population.clusters, codes),
    )


def _strata_of(population: Population) -> tuple[list[Stratum], Codes]:
    """Return the strata, none drawn yet, and the stratum of each answer."""
    verdict, columns = population.verdict, (*population.cells, population.verdict)
    if len(verdict.words) > MOST_VERDICTS:
        raise UsageError(
            f"{verdict.name!r} has {len(verdict.words):,} levels; a verdict that is labelled has at most "
            f"{MOST_VERDICTS}. Choose another column.",
            code="annotation.verdict",
        )
    combined = np.zeros(len(verdict.codes), dtype=np.int64)
    for column in columns:
        _, combined = np.unique(
            combined * max(len(column.words), 1) + column.codes.astype(np.int64), return_inverse=True
        )
    _, first, sizes = np.unique(combined, return_index=True, return_counts=True)
    if len(sizes) > MOST_STRATA:
        raise UsageError(
            f"{len(sizes):,} strata are too many ({MOST_STRATA} at most). Choose fewer cells.", code="annotation.strata"
        )
    strata = []
    for number, (index, size) in enumerate(zip(first, sizes, strict=True)):
        *cell, word = (column.words[column.codes[index]] for column in columns)
        names = (column.name for column in population.cells)
        mean = None
        if verdict.numbers is not None and np.isfinite(values := verdict.numbers[combined == number]).all():
            mean = float(values.mean())
        strata.append(Stratum(dict(zip(names, cell, strict=True)), word, int(size), 0, mean))
    return strata, combined


def allocated(sizes: Sequence[int], n: int) -> list[int]:
    """Return how many are drawn of each stratum: by the root of its size, so that rare verdicts are seen too.

    They are `n` together, or all answers; more only where `LEAST` of each stratum is more.
    """
    limits, roots = np.asarray(sizes, dtype=np.int64), np.sqrt(np.asarray(sizes, dtype=np.float64))
    counts = np.minimum(limits, LEAST)
    for _ in range(min(n, int(limits.sum())) - int(counts.sum())):
        ratios = np.where(counts < limits, (counts + 1) / np.maximum(roots, 1.0), np.inf)
        counts[int(np.argmin(ratios))] += 1
    return [int(count) for count in counts]


def new_sample() -> str:
    """Return the name of a new sample."""
    return f"{time.strftime('%Y%m%d', time.gmtime())}-{secrets.token_hex(3)}"
