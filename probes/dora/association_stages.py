"""The associations in the answers of one stage, counted once for all stages that assess them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from .associations import count_pairs, measure_cells, mentions
from .options import DoraOptions
from .salience import METHODS, Reading
from .terms import PAIR


class Associations:
    """The words of one stage's answers, by descriptor."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._counted: tuple[pl.DataFrame, pl.DataFrame] | None = None
        self._kept: tuple[pl.DataFrame, DoraOptions, pl.DataFrame] | None = None

    def counted(self, earlier: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return `PAIR`, `count` (occurrences) and `documents` (answers it occurs in), in plan order."""
        frame = earlier[self._stage] if self._stage in earlier else pl.DataFrame()
        if self._counted is None or self._counted[0] is not frame:
            self._counted = frame, _count(frame)
        return self._counted[1]

    def salient(self, earlier: Mapping[str, pl.DataFrame], options: DoraOptions) -> pl.DataFrame:
        """Return the rows of `counted` that the method keeps, each setting for itself."""
        counted = self.counted(earlier)
        if self._kept is None or self._kept[0] is not counted or self._kept[1] != options:
            self._kept = counted, options, _salient(counted, options)
        return self._kept[2]


def _count(frame: pl.DataFrame) -> pl.DataFrame:
    counts = ("count", "documents")
    if frame.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(PAIR, pl.String) | dict.fromkeys(counts, pl.Int64))
    return count_pairs(mentions(frame)).select(*PAIR, pl.col(counts).cast(pl.Int64))


def _salient(counted: pl.DataFrame, options: DoraOptions) -> pl.DataFrame:
    if counted.is_empty():
        return counted
    measured = measure_cells(counted, options.salience_level, Reading(keep=options.salience_keep))
    return measured.filter(f"salient_{METHODS[options.salience]}").select(counted.columns)
