"""The cells of a declaration as arrays of level indices: crossed, gated, assigned, and without what is not asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contracts.errors import UsageError
from ..contracts.records import Scalar
from .factors import Draw, Factor, Rotation
from .levels import agree
from .vocabulary import Codes, Vocabulary

Condition = Mapping[str, Sequence[Scalar]]
"""Allowed values by name of a factor, part or column; a cell meets it where all hold."""
MOST_KEYS = 1 << 62


def build_grid(vocabulary: Vocabulary, where: Condition, without: Sequence[Condition]) -> dict[str, Codes]:
    """Return an array of level indices per factor, with an entry per cell.

    Cells are in the order of nested loops over the factors as declared, the last one changing fastest.

    Args:
        vocabulary: The names of the declaration.
        where: What every cell meets.
        without: Conditions; a cell that meets one of them is not asked.

    Raises:
        UsageError: A factor is within one that is declared after it.
    """
    grid: dict[str, Codes] = {}
    pending = [*without]
    size = 1
    for factor in vocabulary.factors.values():
        grid = _expanded(vocabulary, grid, size, factor, _allowed(vocabulary, factor.name, where))
        ready = [one for one in pending if all(vocabulary.term(name).factor in grid for name in one)]
        pending = [one for one in pending if one not in ready]
        for condition in ready:
            asked = ~np.logical_and.reduce([_holds(vocabulary, grid, *item) for item in condition.items()])
            grid = {name: codes[asked] for name, codes in grid.items()}
        size = len(grid[factor.name])
    return grid


def codes_of(vocabulary: Vocabulary, grid: Mapping[str, Codes], name: str) -> Codes:
    """Return the level index of a factor or part in each cell; -1 where it has none."""
    return vocabulary.coded(name).codes[grid[vocabulary.term(name).factor]]


def joint(codes: Sequence[Codes], size: int) -> npt.NDArray[np.int64]:
    """Return a number per cell that is equal where all codes are equal, numbered by first appearance."""
    key, span = np.zeros(size, np.int64), 1
    for column in codes:
        width = int(column.max(initial=0)) + 2
        if span * width > MOST_KEYS:
            key, span = np.unique(key, return_inverse=True)[1], size
        key, span = key * width + (column + 1), span * width
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def _allowed(vocabulary: Vocabulary, factor: str, where: Condition) -> npt.NDArray[np.bool_]:
    allowed = np.ones(len(vocabulary.tables[factor]), bool)
    for name, values in where.items():
        term = vocabulary.term(name)
        if term.factor == factor:
            allowed &= [value is not None and agree(value, tuple(values)) for value in term.values]
    return allowed


def _holds(vocabulary: Vocabulary, grid: Mapping[str, Codes], name: str, values: Sequence[Scalar]) -> Any:
    term = vocabulary.term(name)
    return np.array([value is not None and agree(value, tuple(values)) for value in term.values])[grid[term.factor]]


def _expanded(
    vocabulary: Vocabulary, grid: Mapping[str, Codes], size: int, factor: Factor, allowed: npt.NDArray[np.bool_]
) -> dict[str, Codes]:
    """Cross the cells so far with the levels of one more factor."""
    kinds, masks = _masks(vocabulary, grid, size, factor, allowed)
    choices = [np.flatnonzero(mask).astype(np.int32) for mask in masks]
    starts = np.cumsum([0, *(len(levels) for levels in choices)])
    counts = np.diff(starts)[kinds]
    assigned = _assigned(vocabulary, grid, factor, counts)
    if assigned is not None:
        places, applies = assigned
        counts = np.where(applies, np.minimum(counts, 1), counts)
    rows = np.repeat(np.arange(size), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    if assigned is not None:
        place = np.where(applies[rows], places[rows], place)
    levels = np.concatenate([*choices, np.zeros(0, np.int32)])[starts[kinds[rows]] + place]
    return {name: codes[rows] for name, codes in grid.items()} | {factor.name: levels}


def _masks(
    vocabulary: Vocabulary, grid: Mapping[str, Codes], size: int, factor: Factor, allowed: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return a kind per cell, and which levels of the factor each kind may have."""
    gates = []
    for gate in factor.within:
        if vocabulary.term(gate).factor not in grid:
            raise UsageError(
                f"{factor.name!r} is within {gate!r}, which is declared after it. Declare {gate!r} first.",
                code="design.order",
            )
        gates.append((codes_of(vocabulary, grid, gate), vocabulary.compatible(factor.name, gate)))
    kinds = joint([codes for codes, _ in gates], size) if gates else np.zeros(size, np.int64)
    first = np.zeros(int(kinds.max(initial=-1)) + 1, np.int64)
    first[kinds[::-1]] = np.arange(size)[::-1]
    masks = np.tile(allowed, (len(first), 1))
    for codes, table in gates:
        masks &= table[codes[first]]
    return kinds, masks


def _assigned(
    vocabulary: Vocabulary, grid: Mapping[str, Codes], factor: Factor, counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
    """Return the place of each cell's level by the factor's rule, and the cells to which the rule applies."""
    rule: Rotation | Draw | None = factor.assigned
    if rule is None:
        return None
    size = len(counts)
    applies = np.ones(size, bool)
    for name, values in rule.only.items():
        applies &= _holds(vocabulary, grid, name, values)
    applies &= counts > 0
    terms = [vocabulary.term(name) for name in rule.by]
    kinds = joint([*(grid[term.factor] for term in terms), counts.astype(np.int32)], size)
    places: dict[int, int] = {}
    chosen = np.zeros(size, np.int64)
    for cell in np.flatnonzero(applies):
        kind = int(kinds[cell])
        if kind not in places:
            level = [term.values[grid[term.factor][cell]] for term in terms]
            places[kind] = rule.place(level, int(counts[cell]))
        chosen[cell] = places[kind]
    return chosen, applies
