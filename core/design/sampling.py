"""Samples whose prefixes are samples: units in an order that stays balanced wherever it is cut."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .vocabulary import Codes

Units = Sequence[int]
MOST_PAIRED = 8
"""Levels of the largest facet with which later ones are balanced pair by pair; a larger one has few units a level."""


class _Branch:
    """The units that share the levels chosen so far, split by their level of the next facet when first visited."""

    __slots__ = ("branches", "counts", "remaining", "units")

    def __init__(self, units: Units) -> None:
        self.units, self.remaining = units, len(units)
        self.branches: dict[int, _Branch] | None = None
        self.counts: Counter[int] = Counter()

    def split(self, codes: Sequence[int]) -> dict[int, _Branch]:
        """Return the branches by level, made once."""
        if self.branches is None:
            members: dict[int, list[int]] = {}
            for unit in self.units:
                members.setdefault(codes[unit], []).append(unit)
            self.branches = {level: _Branch(units) for level, units in members.items()}
        return self.branches


class _Side:
    """How often one side of the contrast used each level, and each with the levels of earlier facets."""

    def __init__(self) -> None:
        self.used: Counter[tuple[int, int]] = Counter()
        self.paired: Counter[tuple[int, int, int, int]] = Counter()

    def count(self, taken: Sequence[int], paired: Sequence[int]) -> None:
        """Count the levels of a unit."""
        for depth, level in enumerate(taken):
            self.used[depth, level] += 1
            for earlier in paired:
                if earlier < depth:
                    self.paired[earlier, taken[earlier], depth, level] += 1


class Sampler:
    """An order of units.

    Facet by facet, the level used least so far among the units with the same earlier levels is next; then, the one used
    least, on this side of the contrast, with each of the earlier levels; then, the one used least on this side; then,
    by digest, so that both sides use the levels that they share in one order.
    """

    def __init__(
        self, codes: Mapping[str, Codes], levels: Mapping[str, Sequence[object]], contexts: int, cells: int
    ) -> None:
        """Remember the facets.

        Args:
            codes: Level index per unit, by facet, in the order in which they are balanced.
            levels: Levels by facet.
            contexts: How many of the first facets are contexts.
            cells: How many of the first facets define a cell.
        """
        self._names, self._codes = list(codes), [column.tolist() for column in codes.values()]
        self._levels, self._contexts, self._cells = levels, contexts, cells
        self._size = len(self._codes[0]) if self._codes else 1
        self._paired = [at for at, name in enumerate(codes) if at >= contexts and len(levels[name]) <= MOST_PAIRED]

    def order(self, seed: int = 0, per_cell: int | None = None) -> Iterator[int]:
        """Yield units, each once: all, or at most `per_cell` of each cell."""
        ranks = [self._ranks(name, seed) for name in self._names]
        sides: dict[tuple[int, ...], _Side] = {}
        root = _Branch(range(self._size))
        while root.remaining:
            path, taken = [root], list[int]()
            for depth, codes in enumerate(self._codes):
                branches = path[-1].split(codes)
                side = sides.setdefault(tuple(taken[: self._contexts]), _Side())
                level = next(iter(branches))
                if len(branches) > 1:
                    level = self._least(path[-1], side, taken, ranks[depth])
                path[-1].counts[level] += 1
                taken.append(level)
                path.append(branches[level])
            for length in range(min(self._contexts, len(taken)) + 1):
                sides.setdefault(tuple(taken[:length]), _Side()).count(taken, self._paired)
            yield self._take(path, per_cell)

    def _least(self, branch: _Branch, side: _Side, taken: Sequence[int], ranks: Sequence[int]) -> int:
        """Return the level that was used least."""
        depth, counts, used, paired = len(taken), branch.counts, side.used, side.paired
        earlier = [(at, taken[at], depth) for at in self._paired if at < depth]

        def uses(level: int) -> tuple[int, int, int, int]:
            return counts[level], sum(paired[*pair, level] for pair in earlier), used[depth, level], ranks[level]

        return min((level for level, child in (branch.branches or {}).items() if child.remaining), key=uses)

    def _take(self, path: Sequence[_Branch], per_cell: int | None) -> int:
        """Take a unit from the last branch, and close its cell when that has enough."""
        leaf, cell = path[-1], path[self._cells]
        unit = leaf.units[len(leaf.units) - leaf.remaining]
        for branch in path:
            branch.remaining -= 1
        if per_cell is not None and len(cell.units) - cell.remaining >= per_cell:
            for branch in path[: self._cells]:
                branch.remaining -= cell.remaining
            cell.remaining = 0
        return unit

    def _ranks(self, name: str, seed: int) -> list[int]:
        """Return the place of each level in an order by digest; that of no level is last."""
        digests = [
            hashlib.sha256(f"{seed}|{name}|{level}".encode("utf-8", "surrogatepass")).digest()
            for level in self._levels[name]
        ]
        ranks = [0] * (len(digests) + 1)
        for place, level in enumerate(sorted(range(len(digests)), key=digests.__getitem__)):
            ranks[level] = place
        ranks[-1] = len(digests)
        return ranks
