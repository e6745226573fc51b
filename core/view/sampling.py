"""A random sample of a run's answers to be labelled: by cell and by verdict, with the chance of each to be drawn."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..contracts.errors import UsageError
from ..statistics.clusters import Way
from .columns import Column, Rows
from .shelf import Index

MOST_VERDICTS = 20
MOST_STRATA = 400
MOST_ITEMS = 5_000
LEAST = 2
"""Answers of every stratum that are drawn, if it has as many."""


class Stratum(msgspec.Struct, frozen=True):
    """The answers of one cell with one verdict."""

    cell: dict[str, str]
    """Levels by column."""
    verdict: str
    size: int
    drawn: int
    mean: float | None = None
    """Of the verdicts, where they are numbers."""


class Drawn(msgspec.Struct, frozen=True):
    """A drawn answer."""

    item: str
    """Random: it says nothing of what it names."""
    row: int
    trial: str
    key: str
    stratum: int
    probability: float
    value: float | None = None
    """The verdict, where it is a number."""
    factors: dict[str, Any] = {}


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """How a sample was drawn. Who labels does not see it."""

    sample: str
    run: str
    head: str
    query: str
    """The filters of the answers that it was drawn from."""
    verdict: str
    """The column whose levels are judged by the labels."""
    cells: tuple[str, ...]
    seed: int
    drawn: float
    population: int
    strata: tuple[Stratum, ...]
    items: tuple[Drawn, ...]
    ways: tuple[Way, ...] = ()
    """Clusters of the answers; none: intervals are for the answers of the run."""


class Item(msgspec.Struct, frozen=True):
    """What is shown of an answer to those who label."""

    item: str
    asked: tuple[tuple[str, str], ...]
    said: str | None
    """None: the answer is not shown, since it is the verdict itself."""
    images: tuple[str, ...] = ()
    """sha256 of each."""


class Sheet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What those who label see: no model, no run, no verdict."""

    sample: str
    question: str
    labels: tuple[str, ...]
    seed: int
    """Of the order in which each person sees the items."""
    items: tuple[Item, ...]
    column: str = ""
    """Of a sheet: the column that people fill in."""


def strata_of(index: Index, rows: Rows, verdict: str, cells: Sequence[str]) -> tuple[list[Stratum], np.ndarray]:
    """Return the strata, none drawn yet, and the stratum of each row.

    Raises:
        UsageError: a column has no levels that can be listed, or there are too many strata.
    """
    columns = [_listed(index, name) for name in (*cells, verdict)]
    if len(columns[-1].levels) > MOST_VERDICTS:
        raise UsageError(
            f"{verdict!r} has {len(columns[-1].levels):,} levels; a verdict that is labelled has at most "
            f"{MOST_VERDICTS}. Choose another column.",
            code="annotation.verdict",
        )
    combined = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        assert column.codes is not None
        _, combined = np.unique(
            combined * max(len(column.levels), 1) + column.codes[rows].astype(np.int64), return_inverse=True
        )
    _, first, sizes = np.unique(combined, return_index=True, return_counts=True)
    if len(sizes) > MOST_STRATA:
        raise UsageError(
            f"{len(sizes):,} strata are too many ({MOST_STRATA} at most). Choose fewer cells.", code="annotation.strata"
        )
    found = []
    for place, size in zip(first, sizes, strict=True):
        words = [column.word(int(rows[place])) or "" for column in columns]
        found.append(Stratum(dict(zip(cells, words, strict=False)), words[-1], int(size), 0))
    if (numbers := numbers_of(columns[-1])) is not None:
        own = [numbers[rows[combined == place]] for place in range(len(found))]
        means = [float(values.mean()) if np.isfinite(values).all() else None for values in own]
        found = [msgspec.structs.replace(one, mean=mean) for one, mean in zip(found, means, strict=True)]
    return found, combined


def numbers_of(column: Column) -> np.ndarray | None:
    """Return the number of each row, NaN where it is missing; None if the levels are no numbers."""
    if column.values is not None:
        return column.values
    try:
        known = np.array([float(word) if word else np.nan for word in column.levels])
    except ValueError:
        return None
    return known[column.codes] if len(known) and np.isfinite(known).any() else None


def _listed(index: Index, name: str) -> Column:
    if name not in index.columns or index.columns[name].codes is None:
        raise UsageError(f"{name!r} has no levels that can be listed. Choose another.", code="annotation.column")
    return index.columns[name]


def allocated(sizes: Sequence[int], n: int) -> list[int]:
    """Return how many are drawn of each stratum: by the root of its size, so that rare verdicts are seen too."""
    roots = np.sqrt(np.asarray(sizes, dtype=np.float64))
    wanted = np.rint(n * roots / roots.sum()) if len(sizes) else roots
    return [int(min(size, max(LEAST, own))) for size, own in zip(sizes, wanted, strict=True)]


def draw(
    index: Index, rows: Rows, verdict: str, cells: Sequence[str], n: int, seed: int
) -> tuple[list[Stratum], list[tuple[int, int, float]]]:
    """Return the strata, and (row, stratum, probability) of each drawn answer in a random order.

    Raises:
        UsageError: nothing can be drawn, or too much.
    """
    if not len(rows) or not 0 < n <= MOST_ITEMS:
        raise UsageError(
            f"{n:,} of {len(rows):,} answers cannot be drawn. Draw 1 to {MOST_ITEMS:,} of those that fit.",
            code="annotation.size",
        )
    strata, codes = strata_of(index, rows, verdict, cells)
    random = np.random.default_rng(seed)
    drawn: list[tuple[int, int, float]] = []
    made = []
    for number, (stratum, own) in enumerate(zip(strata, allocated([s.size for s in strata], n), strict=True)):
        chosen = random.choice(rows[codes == number], own, replace=False)
        drawn += [(int(row), number, own / stratum.size) for row in chosen]
        made.append(msgspec.structs.replace(stratum, drawn=own))
    order = random.permutation(len(drawn))
    return made, [drawn[place] for place in order]


def new_sample() -> str:
    """Return the name of a new sample."""
    return f"{time.strftime('%Y%m%d', time.gmtime())}-{secrets.token_hex(3)}"
