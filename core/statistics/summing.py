"""The rows of each group and their sums, and the groups that are resampled together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .declaration import Declaration
from .declared_rows import Chosen, Part, choose, table
from .intervals import Codes
from .measures import DeclaredMeasure, SummedMeasure
from .multiway import Cells
from .resampling import WIDE


class Summed(NamedTuple):
    """The rows of a group that the bases of a measure are about, and their sums."""

    part: Part
    chosen: Sequence[Chosen]
    tables: Sequence[Cells]

    @classmethod
    def of(cls, bases: Sequence[SummedMeasure], part: Part) -> Summed:
        """Return the rows of a group that measures are about."""
        chosen = [choose(base, part) for base in bases]
        return cls(part, chosen, [table(base, part, own) for base, own in zip(bases, chosen, strict=True)])

    @property
    def pattern(self) -> tuple[Any, ...]:
        """Return what is alike in groups that are resampled together: of one way, which clusters have which side."""
        alone = len(self.part.clusters) == 1
        there = tuple(np.packbits(own.sums[..., 0] > 0).tobytes() for own in self.tables) if alone else ()
        sides = tuple(own.sums.shape[-2] for own in self.tables)
        shape = tuple(int(own.max(initial=-1)) + 1 for own in self.part.clusters)
        return shape, self.part.ways, bool(self.part.unknown), sides, there


def together(groups: Sequence[Summed]) -> Iterator[list[int]]:
    """Yield the places of groups with one pattern, as many as fit into memory."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, group in enumerate(groups):
        alike.setdefault(group.pattern, []).append(place)
    for places in alike.values():
        largest = max(sum(own.sums.size for own in groups[place].tables) for place in places)
        size = max(1, WIDE // max(1, largest))
        yield from (places[start : start + size] for start in range(0, len(places), size))


def stacked(tables: Sequence[Cells]) -> Cells:
    """Put the sums of groups side by side as units; cells that only some of them have are empty in the others."""
    codes = tables[0].codes
    if any(not np.array_equal(group.codes, codes) for group in tables):
        codes = _distinct(np.concatenate([group.codes for group in tables]))
    sides, columns = tables[0].sums.shape[-2], max(group.sums.shape[-1] for group in tables)
    sums = np.zeros((len(codes), len(tables), sides, columns))
    for unit, group in enumerate(tables):
        place = slice(None) if len(group.codes) == len(codes) else _places(codes, group.codes)
        sums[place, unit, :, : group.sums.shape[-1]] = group.sums[:, 0]
    return Cells(codes, sums)


def _distinct(codes: Codes) -> Codes:
    """Return the distinct rows, sorted; rows are compared as numbers, which is ten times as fast as by columns."""
    numbers = np.unique(np.ravel_multi_index(tuple(codes.T), codes.max(axis=0) + 1), return_index=True)
    rows: Codes = codes[numbers[1]]
    return rows


def _places(codes: Codes, some: Codes) -> Codes:
    """Return where rows stand among sorted ones."""
    shape = codes.max(axis=0) + 1
    every, wanted = (np.ravel_multi_index(tuple(rows.T), shape) for rows in (codes, some))
    places: Codes = np.searchsorted(every, wanted)
    return places


def concerned(measure: DeclaredMeasure, part: Part, design: Declaration) -> bool:
    """Return whether a group has rows that the measure is about, on every side, readable or not.

    A group of one side has no difference between the sides: it is no missing answer, and nothing to state.
    """
    for base in design.bases(measure):
        inside = part.table[f"{base.key}.in"][part.rows]
        several = base.recipe().sides is not None or base.recipe().levels is not None
        if not inside.any():
            return False
        if several and np.ptp(part.table[f"{base.key}.side"][part.rows][inside]) == 0:
            return False
    return True


def counted_rows(chosen: Sequence[Chosen]) -> tuple[int, dict[str, int]]:
    """Return how many rows are readable, and why the others are not; a row counts once."""
    lost: dict[int, str] = {}
    for own in reversed(chosen):
        if len(gone := np.flatnonzero(own.lost)):
            lost.update(zip(own.rows[gone].tolist(), own.statuses(gone), strict=True))
    rows = len(chosen[0].rows) if len(chosen) == 1 else len(np.unique(np.concatenate([own.rows for own in chosen])))
    return rows - len(lost), dict(sorted(Counter(lost.values()).items()))
