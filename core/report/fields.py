"""The columns of a table of estimates: their cells, and when they are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ..contracts.corrected import correction_of
from ..contracts.estimates import Estimate
from ..contracts.words import UNDEFINED, counted, decimals_for, defined, exact, explained, interval, number, p_value
from .grid import Cell, Plot, sort_key


class Scale(msgspec.Struct, frozen=True):
    """Common format of the rows of one metric: decimals, ends of the plot's axis, whether families differ."""

    decimals: int
    low: float
    high: float
    families: bool

    def place(self, value: float | None) -> float | None:
        """Return a position from 0 to 100; an infinite value is at the end of the axis."""
        if value is None or math.isnan(value):
            return None
        inside = min(max(value, self.low), self.high)
        return round(100 * (inside - self.low) / (self.high - self.low), 1) if self.high > self.low else 50.0


class Field(msgspec.Struct, frozen=True):
    """A column: its heading, and the cell of an estimate."""

    label: str
    cell: Callable[[Estimate, Scale], Cell]
    present: Callable[[Estimate], bool] | None = None
    """The column is left out if this is false for every row; None: it is always shown."""
    numeric: bool = True


def scale_of(estimates: Sequence[Estimate]) -> Scale:
    """Return the scale of the rows of one metric."""
    ends = [end for e in estimates for end in (e.value, e.low, e.high, e.neutral)]
    finite = [end for end in ends if end is not None and math.isfinite(end)]
    families = {(e.test.family, e.test.correction) for e in estimates if e.p_adjusted is not None}
    bounds = [end for e in estimates for end in (e.bound_low, e.bound_high) if end is not None and math.isfinite(end)]
    counts = all(float(end).is_integer() for end in (*finite, *bounds)) and all(e.low is None for e in estimates)
    measured = any(defined(e.value) or defined(e.low) for e in estimates)
    # Without any value, the worst case has the only numbers with decimals.
    decimals = 0 if counts else decimals_for(finite if measured else bounds)
    return Scale(decimals, min(finite, default=0.0), max(finite, default=0.0), len(families) > 1)


def fields_for(estimates: Iterable[Estimate]) -> list[Field]:
    """Return the columns with content for these estimates."""
    shown = list(estimates)
    return [field for field in _FIELDS if field.present is None or any(map(field.present, shown))]


def number_cell(value: float | None, decimals: int) -> Cell:
    """Return the cell of a number, with its full value for sorting and as the title."""
    return Cell(number(value, decimals), sort_key(value), repr(value) if defined(value) else "")


def _range_cell(low: float | None, high: float | None, decimals: int) -> Cell:
    if not defined(low) and not defined(high):
        return Cell(UNDEFINED, "")
    return Cell(interval(low, high, decimals), sort_key(low), f"{low!r} to {high!r}")


def _corrected_cell(e: Estimate, scale: Scale) -> Cell:
    found = correction_of(e)
    if found is None:
        return Cell(UNDEFINED, "")
    if found.value is None:
        return Cell(UNDEFINED, "", detail=found.why)
    text = f"{number(found.value, scale.decimals)} ({interval(found.low, found.high, scale.decimals)})"
    return Cell(text, sort_key(found.value), repr(found.value), found.method)


def _neutral_cell(e: Estimate, scale: Scale) -> Cell:
    return Cell(exact(e.neutral), sort_key(e.neutral))


def _plot_cell(e: Estimate, scale: Scale) -> Cell:
    value, low, high, neutral = (scale.place(x) for x in (e.value, e.low, e.high, e.neutral))
    if value is None:
        return Cell("", "")
    holds = e.neutral is not None and e.low is not None and e.high is not None and e.low <= e.neutral <= e.high
    apart = low is not None and high is not None and not holds
    return Cell("", sort_key(e.value), plot=Plot(value, low, high, neutral, apart))


def _n_cell(e: Estimate, scale: Scale) -> Cell:
    return Cell(number(e.n), sort_key(e.n), counted(e.clusters, "cluster") if e.clusters is not None else "")


def _missing_cell(e: Estimate, scale: Scale) -> Cell:
    total, counts = e.missing.total, e.missing.counts
    parts = ", ".join(f"{number(count)} {status}" for status, count in counts.items())
    if len(counts) == 1:
        parts = next(iter(counts)) if total else ""
    return Cell(number(total), sort_key(total), detail=parts)


def _test_cell(e: Estimate, scale: Scale) -> Cell:
    test = e.test
    if not test.name:
        return Cell(UNDEFINED)
    return Cell(test.name, detail=f"statistic {number(test.statistic)}" if defined(test.statistic) else "")


def _p_cell(e: Estimate, scale: Scale) -> Cell:
    return Cell(p_value(e.p), sort_key(e.p), repr(e.p) if defined(e.p) else "")


def _adjusted_cell(e: Estimate, scale: Scale) -> Cell:
    if not defined(e.p_adjusted):
        return Cell(UNDEFINED, "")
    return Cell(
        p_value(e.p_adjusted), sort_key(e.p_adjusted), repr(e.p_adjusted), e.test.family if scale.families else ""
    )


def _effect_cell(e: Estimate, scale: Scale) -> Cell:
    effect = e.effect
    if not defined(effect.value):
        return Cell(UNDEFINED, "")
    ends = interval(effect.low, effect.high) if effect.low is not None else ""
    return Cell(number(effect.value), sort_key(effect.value), effect.name, ends)


_FIELDS = (
    Field("Value", lambda e, s: number_cell(e.value, s.decimals)),
    Field("Interval", lambda e, s: _range_cell(e.low, e.high, s.decimals)),
    Field("Corrected", _corrected_cell, lambda e: correction_of(e) is not None),
    Field("Neutral", _neutral_cell, lambda e: e.neutral is not None),
    Field("Plot", _plot_cell, lambda e: defined(e.value), numeric=False),
    Field("p", _p_cell, lambda e: e.p is not None or bool(e.test.name)),
    Field("Adjusted p", _adjusted_cell, lambda e: e.test.adjusted),
    Field("Effect", _effect_cell, lambda e: e.effect.value is not None),
    Field("n", _n_cell),
    Field("Clusters", lambda e, s: number_cell(e.clusters, 0), lambda e: e.clusters is not None),
    Field("Missing", _missing_cell),
    Field(
        "Worst case",
        lambda e, s: _range_cell(e.bound_low, e.bound_high, s.decimals),
        lambda e: e.bound_low is not None or e.bound_high is not None,
    ),
    Field("Test", _test_cell, lambda e: bool(e.test.name), numeric=False),
    Field("Note", lambda e, s: Cell(explained(e)), lambda e: bool(explained(e)), numeric=False),
)
