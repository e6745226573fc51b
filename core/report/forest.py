"""The figure of a finding: a row for each number, on one axis with the value of an unbiased model and the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from ..answer import Reply, Row
from ..answer.corrected import HEAD, corrected_cell, is_corrected
from ..answer.records import EQUAL
from ..contracts.sizes import SHARE
from ..contracts.words import MARGIN, UNDEFINED, exact, percent
from .grid import Plot

WIDTH, MARGINS = 300.0, 12.0
"""Units of the drawing that the axis covers, and on either side of it."""
STEPS = (1, 2, 2.5, 5, 10)
MOST_TICKS = 5


class Line(msgspec.Struct, frozen=True):
    """A row of the figure."""

    about: str
    value: str
    interval: str
    corrected: str
    n: str
    verdict: str
    state: str
    plot: Plot | None
    section: str


class Forest(msgspec.Struct, frozen=True):
    """Rows on one axis."""

    label: str
    """What was measured."""
    meaning: str
    unit: str
    level: str
    """Level of the intervals, such as `95 %`."""
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    neutral: float | None
    reference: str
    band: tuple[float, float] | None
    """Ends of what is within the limit, around the neutral value."""
    corrected: str
    """Heading of the corrected values; empty: there are none."""
    counted: bool
    """Whether the answers behind the numbers are known."""
    bare: bool
    """Whether a number has no interval."""


def forest_of(reply: Reply) -> Forest | None:
    """Return the figure of a reply; None where nothing is measured on a scale."""
    rows = [row for row in reply.rows if row.number.value is not None and math.isfinite(row.number.value)]
    if not rows or all(row.number.low is None and row.number.neutral is None for row in rows):
        return None
    first = rows[0]
    limit, neutral = _limit(first), first.number.neutral
    band = (neutral - limit, neutral + limit) if limit is not None and neutral is not None else None
    ends = [end for row in rows for end in (row.number.value, row.number.low, row.number.high)]
    low, high = _ends([end for end in (*ends, neutral, *(band or ())) if end is not None and math.isfinite(end)])

    def place(value: float | None) -> float | None:
        if value is None or math.isnan(value):
            return None
        return round(MARGINS + WIDTH * (min(max(value, low), high) - low) / (high - low), 1)

    corrected = is_corrected([row.estimate for row in rows])
    signed = neutral == 0
    return Forest(
        first.label,
        first.meaning,
        first.number.unit,
        percent(first.number.level),
        tuple(_line(row, place, corrected) for row in rows),
        tuple((place(tick) or 0.0, f"{'+' if signed and tick > 0 else ''}{exact(tick)}") for tick in _ticks(low, high)),
        place(neutral),
        first.number.reference,
        (place(band[0]) or 0.0, place(band[1]) or 0.0) if band else None,
        HEAD if corrected else "",
        any(row.number.n for row in rows),
        any(row.number.low is None for row in rows),
    )


def _line(row: Row, place: Callable[[float | None], float | None], corrected: bool) -> Line:
    number = row.number
    value, low, high, neutral = map(place, (number.value, number.low, number.high, number.neutral))
    return Line(
        f"{row.about[:1].upper()}{row.about[1:]}" or "All",
        number.signed,
        number.spread,
        corrected_cell(row.estimate) if corrected else "",
        f"{number.n:,}" if number.n else UNDEFINED,
        row.verdict,
        row.state.value,
        Plot(value, low, high, neutral, row.estimate.shown) if value is not None else None,
        row.section,
    )


def _limit(row: Row) -> float | None:
    limit = row.estimate.facts.get(MARGIN)
    if not isinstance(limit, int | float) or row.number.reference == EQUAL:
        return None
    return float(limit) * (100.0 if row.estimate.unit == SHARE else 1.0)


def _ends(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    wide = (high - low) or abs(high) or 1.0
    return low - 0.03 * wide, high + 0.03 * wide


def _ticks(low: float, high: float) -> Iterator[float]:
    """Yield round numbers within the axis, `MOST_TICKS` at most."""
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in STEPS if power * size >= rough)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield round(number * step, 10)
