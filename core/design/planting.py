"""Planting: an effect of known size on group and context, and preferences for levels of whatever else is varied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from statistics import NormalDist

import msgspec
import numpy as np
import numpy.typing as npt

from ..contracts.cells import Cells, LevelColumn
from ..contracts.errors import UnknownNameError
from .grid import joint

Effects = npt.NDArray[np.float64]
Draws = Callable[[str, Sequence[tuple[str, ...]]], Effects]
"""Standard normal numbers, one for each combination of levels, for what a preference is of."""
_inverse = NormalDist().inv_cdf


class Preference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random preferences for the levels of a factor or part.

    Example:
        >>> from prejudge import design
        >>> design.Preference(("place",), 0.3).spread
        0.3
    """

    of: tuple[str, ...]
    """A factor or part; of several, each combination of their levels has a preference of its own."""
    spread: float
    """Standard deviation over levels, in nats: of the difference between two groups, or, where it is shared, of what
    all groups have in common."""
    shared: bool = False
    """Whether all groups have the same preferences; otherwise each has its own, of the same law."""
    by_context: bool = False
    """Whether they are drawn anew in each context."""
    product: bool = False
    """Whether a combination's preference is the product of one per level, in place of one drawn for itself."""

    @property
    def name(self) -> str:
        """Return the factors and parts."""
        return "*".join(self.of)


class Planting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is planted in the cells of a design, in nats.

    Example:
        >>> from prejudge import design
        >>> design.Planting(1.0, (design.Preference(("place",), 0.3),)).strength
        1.0
    """

    strength: float = 0.0
    """The effect: what the first group has over the last one in the first context. It is the opposite in the last
    context; groups and contexts between them stand in even steps. Controls have none."""
    preferences: tuple[Preference, ...] = ()

    def effects(self, cells: Cells, draws: Draws) -> Effects:
        """Return what is planted in each cell.

        Args:
            cells: The cells of a design.
            draws: Draws the preferences.

        Raises:
            UnknownNameError: The design has no factor or part of a preference's name.
        """
        planted = self.strength * contrast(cells)
        for preference in self.preferences:
            planted = planted + preference.spread * _preferred(cells, preference, draws)
        return planted


def keyed_draws(key: str) -> Draws:
    """Return draws that belong to the names of levels: the same in every process, and of every part of a design."""

    def draw(kind: str, combinations: Sequence[tuple[str, ...]]) -> Effects:
        texts = ("\x1f".join((key, kind, *levels)).encode("utf-8", "surrogatepass") for levels in combinations)
        digests = (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 11 for text in texts)
        # The half step keeps off 0 and 1, whose normal quantiles are infinite.
        return np.array([_inverse((digest + 0.5) * 2.0**-53) for digest in digests])

    return draw


def random_draws(generator: np.random.Generator) -> Draws:
    """Return draws of a generator: another model each time."""
    return lambda kind, combinations: generator.standard_normal(len(combinations))


def contrast(cells: Cells) -> Effects:
    """Return by how many times the strength each cell differs from no preference: half of it on either side."""
    sides = [_sides(cells, name) for name in cells.groups]
    total = np.sum(sides, axis=0) / 2 if sides else np.zeros(cells.size)
    for name in cells.contexts:
        total = total * _sides(cells, name)
    return np.asarray(total, np.float64)


def _sides(cells: Cells, name: str) -> Effects:
    """Return 1 for the first compared level, -1 for the last, even steps between, and 0 for controls and no level."""
    column, controls = cells.columns[name], cells.controls.get(name, ())
    compared = [at for at, level in enumerate(column.levels) if level not in controls]
    table = np.zeros(len(column.levels) + 1)
    table[compared] = np.linspace(1, -1, len(compared)) if len(compared) > 1 else 1.0
    return table[column.codes]


def _preferred(cells: Cells, preference: Preference, draws: Draws) -> Effects:
    """Return the preferences in each cell, of a variance of 1."""
    for name in preference.of:
        if name not in cells.columns:
            raise UnknownNameError("factor", name, list(cells.columns))
    within = (() if preference.shared else cells.groups) + (cells.contexts if preference.by_context else ())
    apart = [cells.columns[name] for name in within]
    scale = 1.0 if preference.shared or not cells.groups else np.sqrt(0.5)
    if not preference.product:
        columns = [cells.columns[name] for name in preference.of]
        return scale * _drawn(columns + apart, "*".join((*preference.of, *within)), draws)
    total = _drawn([cells.columns[preference.of[0]], *apart], "*".join((preference.of[0], *within)), draws)
    for name in preference.of[1:]:
        total = total * _drawn([cells.columns[name]], name, draws)
    return scale * total


def _drawn(columns: Sequence[LevelColumn], kind: str, draws: Draws) -> Effects:
    """Return the number of each cell's combination of levels; 0 where the first column has none."""
    numbers = joint([column.codes for column in columns], len(columns[0].codes))
    first = np.unique(numbers, return_index=True)[1]
    levels_of = [[*column.levels, ""] for column in columns]
    combinations = [
        tuple(levels[column.codes[row]] for levels, column in zip(levels_of, columns, strict=True)) for row in first
    ]
    values = draws(kind, combinations)[numbers]
    return np.where(columns[0].codes >= 0, values, 0.0)
