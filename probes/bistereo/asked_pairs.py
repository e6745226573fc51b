"""The pairs that a run asks: generated or from a file, all or a sample, each with its two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import ClassVar

import msgspec

from ...core.contracts import Counting
from ...core.contracts.errors import UnknownNameError
from ...core.design import Cell, Design, DesignedStage, Rows, Worded
from ...core.design.folder import parts_of
from ...core.tables import Parsed, TableOptions
from ..shared.sentence_pairs import Pair, draw_rows
from .attributes import is_asked
from .own_pairs import own_design, read_pairs
from .pairs_design import CELL, FACTORS, Selection, pairs_design, sentence
from .pairs_texts import SIDES


class AskedPairs(msgspec.Struct, frozen=True, dict=True):
    """The pairs of a selection. A file is read only when they are asked, so that a run is scored without it."""

    selection: Selection
    data: str | None = None
    """A file or folder with pairs; None: they are generated."""
    per_cell: int | None = None
    """Maximum number of pairs per axis, gender and sentiment; None: all."""
    seed: int = 0
    table: TableOptions | None = None
    """How the file is to be understood."""

    @cached_property
    def _parsed(self) -> Parsed[Pair] | None:
        return None if self.data is None else read_pairs(self.data, self.table)

    @cached_property
    def _listed(self) -> dict[str, Pair] | None:
        return None if self._parsed is None else {pair.id: pair for pair in self._parsed.values}

    def notes(self) -> tuple[str, ...]:
        """Return what was left out of the file, in sentences."""
        return () if self._parsed is None else self._parsed.notes()

    @cached_property
    def design(self) -> Design:
        """Return the design of the selected pairs.

        Raises:
            DataError: The file cannot be used.
            UnknownNameError: An axis, gender or sentiment is unknown.
        """
        selection = _checked(self.selection, self.everything)
        return pairs_design(selection) if self._listed is None else self._own(selection)

    @cached_property
    def everything(self) -> Design:
        """Return the design of all pairs or of the file, without selection, also those that are not asked."""
        if self._listed is not None:
            return self._own(Selection())
        everything = Selection(attributes="paper")
        parts = {name: getattr(self.selection, name) for name in ("position", "beautiful", "texts")}
        return pairs_design(msgspec.structs.replace(everything, **parts))

    def _own(self, selection: Selection) -> Design:
        return own_design((self._listed or {}).values(), selection, parts_of(self.data))

    def asked(self, cell: Cell) -> bool:
        """Return whether the words of a pair are asked together."""
        return self.data is not None or is_asked(cell["attribute"], cell["noun"], self.selection.attributes)

    @cached_property
    def rows(self) -> Rows | None:
        """Return the trials of the sample by place; None: all."""
        if self.per_cell is None:
            return None
        if self._listed is None:
            return _drawn_generated(_checked(self.selection, self.everything), self.per_cell, self.seed)
        return draw_rows(self.design, CELL, self.per_cell, self.seed)

    def sentence(self, cell: Cell) -> Worded:
        """Return the sentence of a cell, with the places of the words in which its pair differs."""
        if self._listed is None:
            return sentence(cell, self.selection.position)
        pair, side = self._listed[str(cell["pair"])], SIDES.index(str(cell["side"]))
        return Worded(pair.texts[side], (pair.spans or ((), ()))[side])


@lru_cache(maxsize=4)
def _drawn_generated(selection: Selection, per_cell: int, seed: int) -> Rows:
    """Sample the generated pairs. Cached, because a run counts, asks and scores them."""
    evenly = "attribute" if selection.texts == "wide" else ""
    return draw_rows(pairs_design(selection), CELL, per_cell, seed, evenly)


def _checked(selection: Selection, design: Design) -> Selection:
    """Return a selection in the order of the design, whose names it knows."""
    asked = {"axes": "axis", "genders": "gender", "sentiments": "sentiment"}
    names = {field: _known(name, getattr(selection, field), design.levels(name)) for field, name in asked.items()}
    return msgspec.structs.replace(selection, **names)


def _known(kind: str, asked: Sequence[str], levels: Sequence[object]) -> tuple[str, ...]:
    known = [str(level) for level in levels]
    for name in asked:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return tuple(name for name in known if name in asked)


class AskedStage(DesignedStage):
    """Base of the stages of pairs, the desirable sentence of each first."""

    factors: ClassVar[tuple[str, ...]] = FACTORS
    counting: ClassVar[Counting] = Counting(by=CELL, unit="pair", trials=2)

    def __init__(self, pairs: AskedPairs) -> None:
        self._pairs = pairs

    @property
    def design(self) -> Design:
        """Return the design of the pairs."""
        return self._pairs.design

    def notes(self) -> Sequence[str]:
        """Return what was left out of the file."""
        return self._pairs.notes()

    @property
    def rows(self) -> Rows | None:
        """Return the drawn sample."""
        return self._pairs.rows
