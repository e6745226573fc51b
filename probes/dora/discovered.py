"""The associations of a run, from its observations: no model, no backend, no metric. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from ...core.contracts.errors import DataError, UnknownNameError
from .associations import Counts, count, measure_cells, ranked, with_answers
from .salience import METHODS, Reading
from .terms import STAGES

ALL = "all"


class Discovered(msgspec.Struct, frozen=True):
    """The associations of one run."""

    run: str
    model: str
    """The name of the model that was asked."""
    pairs: Any
    """A polars frame: the columns of `salience.measure` and `with_answers` for every association."""
    counts: Counts

    def kept(self, method: str, descriptors: Sequence[str] = (), setting: str | None = None) -> pl.DataFrame:
        """Return the associations that a method (or `all`) keeps, strongest first.

        Raises:
            UnknownNameError: no such method, descriptor or setting.
        """
        frame: pl.DataFrame = self.pairs
        if method not in (*METHODS, ALL):
            raise UnknownNameError("method", method, [*METHODS, ALL])
        if descriptors:
            frame = frame.filter(pl.col("descriptor").is_in(_known(frame, "descriptor", descriptors)))
        if setting is not None:
            frame = frame.filter(pl.col("setting").is_in(_known(frame, "setting", [setting])))
        kept = frame if method == ALL else frame.filter(f"salient_{METHODS[method]}")  # type: ignore[index]
        return ranked(kept, method)


def discover(
    run: str, model: str, observations: pl.DataFrame, level: float = 0.05, reading: Reading | None = None
) -> Discovered:
    """Measure the associations in the observations of a run, all stages stacked.

    Raises:
        DataError: the run has no stage with answers in words, or no readable answer.
    """
    if not observations["stage"].is_in(STAGES).any():
        raise DataError(f"run {run} is not of a study dora-*. Name a run of one.", code="run.other-study")
    counts = count(observations)
    if counts.pairs.is_empty():
        raise DataError(f"run {run} has no readable word.", code="run.no-answers")
    return Discovered(run, model, with_answers(measure_cells(counts, level, reading), observations), counts)


def _known(frame: pl.DataFrame, column: str, names: Sequence[str]) -> list[str]:
    """Return the levels of a column with this name, in any case."""
    levels = [str(level) for level in frame[column].unique().sort()]
    found = [level for name in names for level in levels if level.casefold() == name.strip().casefold()]
    for name in names:
        if not any(level.casefold() == name.strip().casefold() for level in levels):
            raise UnknownNameError(column, name, levels)
    return found
