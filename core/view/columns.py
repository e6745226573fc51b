"""Columns of a run's trials, memory-mapped: a filter is a mask, and a count of levels one pass over small integers.

Rows are numbered from 0 in plan order. One pass over a million one-byte codes takes a millisecond, so no index of
pairs of columns is needed, and every facet can be counted under every filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..contracts.errors import UnknownNameError

Kind = Literal["levels", "numbers", "marks"]
Role = Literal["stage", "status", "factor", "outcome", "reason", "comparison"]
Codes = NDArray[Any]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
Filters = Mapping[str, tuple[str, ...]]
"""Levels by column: a row fits if it has, in each column, one of the levels."""


class Column(msgspec.Struct, frozen=True, dict=True):
    """A factor, an outcome or a status of every trial."""

    name: str
    role: Role
    kind: Kind
    """`levels`: a code per row. `numbers`: a code for the bin, and the value. `marks`: too many levels to list, and
    a digest of each row's level."""
    levels: tuple[str, ...] = ()
    """Words of the levels, or of the bins, by code."""
    codes: Codes | None = None
    values: NDArray[np.float64] | None = None
    """Of `numbers`; NaN is missing."""
    marks: NDArray[np.uint64] | None = None

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return len(self.own)

    @property
    def own(self) -> Codes:
        """Return what tells levels apart: equal for two rows of one level. A column of numbers compares them whole."""
        found = self.values if self.values is not None else self.codes if self.codes is not None else self.marks
        assert found is not None  # every kind has one
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.levels)}

    def matching(self, words: Iterable[str]) -> Mask:
        """Return which rows have one of the levels."""
        if self.marks is not None:
            return np.isin(self.marks, marks_of(pl.Series(list(words), dtype=pl.String)))
        chosen = np.zeros(len(self.levels), dtype=np.bool_)
        chosen[[self._numbers[word] for word in words if word in self._numbers]] = True
        assert self.codes is not None
        return np.asarray(chosen[self.codes])

    def like(self, row: int) -> Mask:
        """Return which rows have the level of this row."""
        own = self.own
        if self.values is not None and np.isnan(own[row]):
            return np.isnan(own)
        return np.asarray(own == own[row])

    def word(self, row: int) -> str | None:
        """Return the word of a row's level, or of its bin; None if levels are not kept."""
        return None if self.codes is None else self.levels[self.codes[row]]

    def taken(self, rows: Rows) -> Column:
        """Return the column of these rows."""
        parts = {name: getattr(self, name) for name in ("codes", "values", "marks")}
        return msgspec.structs.replace(self, **{k: None if p is None else p[rows] for k, p in parts.items()})


class Facet(msgspec.Struct, frozen=True):
    """A column with the number of rows of each level under the filters of the other columns."""

    column: Column
    counts: tuple[tuple[str, int], ...]
    """Levels that occur or are chosen, in order."""
    chosen: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """The rows that fit, in plan order, and the facets."""

    rows: Rows
    facets: tuple[Facet, ...]
    total: int


def marks_of(words: pl.Series) -> NDArray[np.uint64]:
    """Return a digest of 64 bits per word; equal within one version of polars, which the index names."""
    return words.hash(seed=0).to_numpy()


def find(columns: Mapping[str, Column], filters: Filters, within: Mask | None = None) -> Found:
    """Return the rows that fit the filters, and every facet counted under the filters of the others.

    Args:
        columns: All columns, of one height.
        filters: Levels by column.
        within: Rows that a search found; None: all.

    Raises:
        UnknownNameError: a filter names no column.
    """
    for name in filters:
        if name not in columns:
            raise UnknownNameError("factor or outcome", name, columns)
    height = next((column.height for column in columns.values()), 0)
    missed = np.zeros(height, dtype=np.uint8) if within is None else (~within).astype(np.uint8) * np.uint8(128)
    misses = {name: ~columns[name].matching(words) for name, words in filters.items()}
    for one in misses.values():
        missed += one
    fits = missed == 0
    rows = np.flatnonzero(fits)
    facets = []
    for name, column in columns.items():
        if column.codes is None:
            facets.append(Facet(column, (), tuple(filters.get(name, ()))))
            continue
        # A row counts for a facet if it fits all the others: it misses none, or this one only.
        counted = fits | ((missed == 1) & misses[name]) if name in misses else fits
        whole = not filters and within is None
        codes = column.codes if whole else column.codes[counted]
        counts = np.bincount(codes, minlength=len(column.levels))
        chosen = tuple(filters.get(name, ()))
        shown = [(word, int(n)) for word, n in zip(column.levels, counts, strict=True) if n or word in chosen]
        facets.append(Facet(column, tuple(shown), chosen))
    return Found(rows, tuple(facets), height)


def twins_of(columns: Mapping[str, Column], row: int, varied: Iterable[str]) -> Rows:
    """Return the rows that share every factor with a row but the varied ones; the row itself is among them."""
    free = set(varied)
    alike = np.ones(next(iter(columns.values())).height, dtype=np.bool_)
    for name, column in columns.items():
        if column.role in ("factor", "stage") and name not in free:
            alike &= column.like(row)
    return np.flatnonzero(alike)


def sharing(columns: Mapping[str, Column], row: int, names: Iterable[str]) -> Rows:
    """Return the rows that share the levels of these columns, and the stage, with a row."""
    alike = np.ones(next(iter(columns.values())).height, dtype=np.bool_)
    for name in (*names, "stage"):
        if name in columns:
            alike &= columns[name].like(row)
    return np.flatnonzero(alike)
