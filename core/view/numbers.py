"""The estimates of a run, measured from the store."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from ..contracts.estimates import COLUMNS
from ..engine.manifest import in_words, remeasured_in
from ..scoring.estimates_frame import estimates_frame
from ..scoring.score import score
from ..store import RunRow
from .room import Room


class Row(msgspec.Struct, frozen=True):
    """An estimate."""

    metric: str
    group: dict[str, Any]
    value: float | None
    neutral: float | None
    low: float | None
    high: float | None
    unit: str
    n: int | None
    p: float | None
    verdict: str
    note: str


def numbers_of(room: Room, run: RunRow) -> tuple[list[Row], str]:
    """Return the estimates in the order of the report, and where they are from.

    They are measured from the store: files in the folder of a run are not evidence. The options of the last scoring
    are read there, as those are shown.

    Raises:
        PrejudgeError: the run cannot be scored, or is not as it was stored.
    """
    folder = room.folder(run)
    options = {} if folder is None else remeasured_in(folder)
    kept, asked = room.kept.setdefault("numbers", {}), (run.name, run.head, repr(options))
    if asked not in kept:
        scores = score(room.catalogue, room.store, run.name, options)
        kept[asked] = rows_of(estimates_frame([e for own in scores.estimates.values() for e in own]))
    return kept[asked], "the store, measured now" + (f" with {in_words(options)}" if options else "")


def rows_of(frame: pl.DataFrame) -> list[Row]:
    """Return the rows of a frame of estimates; the columns before `value`, but the metric, are factors."""
    known = {*COLUMNS, "label", "meaning", "explained"}
    factors = [name for name in frame.columns if name not in known and not name.startswith("missing_")]
    return [_row(one, factors) for one in frame.iter_rows(named=True)]


def _row(one: dict[str, Any], factors: list[str]) -> Row:
    group = {name: one[name] for name in factors if one[name] is not None}
    texts: dict[str, Any] = {name: str(one.get(name) or "") for name in ("unit", "verdict", "note")}
    numbers: dict[str, Any] = {name: one.get(name) for name in ("value", "neutral", "low", "high", "n")}
    p = one.get("p_adjusted") if one.get("p_adjusted") is not None else one.get("p")
    return Row(metric=str(one["metric"]), group=group, p=p, **texts, **numbers)
