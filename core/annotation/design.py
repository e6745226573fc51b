"""The records of a sample: how it was drawn, and what those who label see of it."""

from __future__ import annotations

from typing import Any

import msgspec

from ..statistics.clusters import Way


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
    filters: dict[str, tuple[str, ...]] = {}
    """Levels by column of the answers that it was drawn from; empty: of all."""
    words: str = ""
    """What their texts contain."""
    where: str = "said"
    """Which texts were searched for these words."""
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
