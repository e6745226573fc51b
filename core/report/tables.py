"""Lay estimates out as tables: a short one first, then one section per metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ..estimates import Estimate
from .content import Published
from .grid import Cell, Column, Grid, Plot, scalar_cell, sort_key
from .text import UNDEFINED, decimals_for, defined, group_words, number, p_value

HEADLINE_ROWS = 8
"""A metric with more estimates than this at its broadest groups is listed below only: none is picked by its value."""
OPEN_ROWS = 40
"""With more estimates than this in all, the sections of the page start closed."""


class Scale(msgspec.Struct, frozen=True):
    """What the rows of one metric share: decimals, the ends of the drawn axis, and whether families differ."""

    decimals: int
    low: float
    high: float
    families: bool

    def place(self, value: float | None) -> float | None:
        """Return a position from 0 to 100; an infinite value stands at the end of the axis."""
        if value is None or math.isnan(value):
            return None
        inside = min(max(value, self.low), self.high)
        return round(100 * (inside - self.low) / (self.high - self.low), 1) if self.high > self.low else 50.0


class Section(msgspec.Struct, frozen=True):
    """All estimates of one metric."""

    name: str
    unit: str
    grid: Grid
    notes: tuple[str, ...]
    open: bool


class _Field(msgspec.Struct, frozen=True):
    label: str
    cell: Callable[[Estimate, Scale], Cell]
    present: Callable[[Estimate], bool] | None = None
    """The column is left out where this holds for no row; None keeps it always."""
    numeric: bool = True


def scale_of(estimates: Sequence[Estimate]) -> Scale:
    """Return the scale that the rows of one metric share."""
    ends = [end for e in estimates for end in (e.value, e.low, e.high, e.neutral)]
    finite = [end for end in ends if end is not None and math.isfinite(end)]
    families = {(e.family, e.correction) for e in estimates if e.p_adjusted is not None}
    return Scale(decimals_for(finite), min(finite, default=0.0), max(finite, default=0.0), len(families) > 1)


def by_metric(estimates: Iterable[Estimate]) -> dict[str, list[Estimate]]:
    """Return the estimates by metric, in their order."""
    found: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        found.setdefault(estimate.metric, []).append(estimate)
    return found


def sections(estimates: Sequence[Estimate]) -> list[Section]:
    """Return one section per metric."""
    return [_section(name, rows, len(estimates) <= OPEN_ROWS) for name, rows in by_metric(estimates).items()]


def headline(estimates: Sequence[Estimate], chosen: Sequence[Estimate] | None = None) -> Grid:
    """Return the short table: the chosen estimates, or per metric those with the broadest groups if they are few."""
    families = by_metric(estimates)
    scales = {name: scale_of(rows) for name, rows in by_metric([*estimates, *(chosen or ())]).items()}
    shown = chosen if chosen is not None else [e for rows in families.values() for e in _broadest(rows)]
    fields = [field for field in _FIELDS if _wanted(field, shown)]
    rows = tuple(
        (Cell(e.metric), Cell(group_words(e.group)), *(field.cell(e, scales[e.metric]) for field in fields))
        for e in shown
    )
    return Grid("Headline estimates", (Column("Metric"), Column("Group"), *_columns(fields)), rows)


def published_grid(values: Sequence[Published]) -> Grid:
    """Return published values beside measured ones."""
    labels = ("Published", "Measured", "Difference", "Tolerance")
    columns = (Column("Metric"), Column("Group"), *(Column(label, True) for label in labels), Column("Replicated"))
    rows = tuple((*_published_row(value), Cell(value.note)) for value in values)
    return Grid("Published values beside the measured ones", (*columns, Column("Note")), rows)


def _published_row(value: Published) -> tuple[Cell, ...]:
    apart = value.measured - value.published if value.measured is not None else None
    decimals = decimals_for([value.published, value.measured])
    numbers = (value.published, value.measured, apart, value.tolerance)
    agrees = UNDEFINED
    if defined(apart) and apart is not None and value.tolerance is not None:
        # A hair of slack: 60.48 - 60.47 is not 0.01 in binary.
        agrees = "yes" if abs(apart) <= value.tolerance + 1e-9 else "no"
    return (
        Cell(value.metric),
        Cell(group_words(value.group)),
        *(_number_cell(one, decimals) for one in numbers),
        Cell(agrees),
    )


def _broadest(estimates: Sequence[Estimate]) -> list[Estimate]:
    fewest = min(len(e.group) for e in estimates)
    found = [e for e in estimates if len(e.group) == fewest]
    return found if len(found) <= HEADLINE_ROWS else []


def _section(name: str, estimates: Sequence[Estimate], is_open: bool) -> Section:
    scale = scale_of(estimates)
    keys = list(dict.fromkeys(key for e in estimates for key in e.group))
    fields = [field for field in _FIELDS if _wanted(field, estimates)]
    rows = tuple((*_group_cells(e, keys), *(field.cell(e, scale) for field in fields)) for e in estimates)
    heads = tuple(Column(key, all(_is_number(e.group.get(key)) for e in estimates)) for key in keys)
    grid = Grid(f"Estimates of {name}", (*(heads or (Column("Group"),)), *_columns(fields)), rows)
    units = dict.fromkeys(e.unit for e in estimates if e.unit)
    return Section(name, ", ".join(units), grid, tuple(_notes(estimates)), is_open)


def _group_cells(estimate: Estimate, keys: Sequence[str]) -> tuple[Cell, ...]:
    if not keys:
        return (Cell(group_words({})),)
    return tuple(scalar_cell(estimate.group[key]) if key in estimate.group else Cell("all") for key in keys)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wanted(field: _Field, estimates: Iterable[Estimate]) -> bool:
    return field.present is None or any(map(field.present, estimates))


def _columns(fields: Iterable[_Field]) -> tuple[Column, ...]:
    return tuple(Column(field.label, field.numeric) for field in fields)


def _notes(estimates: Sequence[Estimate]) -> Iterable[str]:
    notes: dict[str, None] = {}
    for e in estimates:
        if e.low is not None or e.high is not None:
            notes[f"Interval: {100 * e.level:g} % {e.interval}".strip()] = None
        if e.p_adjusted is not None:
            notes[f"Adjusted p: {e.correction or 'corrected'} within {e.family or 'this metric'}"] = None
        if e.effect is not None and e.effect_name:
            notes[f"Effect: {e.effect_name}"] = None
    return notes


def _number_cell(value: float | None, decimals: int) -> Cell:
    return Cell(number(value, decimals), sort_key(value), repr(value) if defined(value) else "")


def _range_cell(low: float | None, high: float | None, decimals: int) -> Cell:
    if not defined(low) and not defined(high):
        return Cell(UNDEFINED, "")
    return Cell(f"{number(low, decimals)} to {number(high, decimals)}", sort_key(low), f"{low!r} to {high!r}")


def _plot_cell(e: Estimate, scale: Scale) -> Cell:
    value, low, high, neutral = (scale.place(x) for x in (e.value, e.low, e.high, e.neutral))
    if value is None:
        return Cell("", "")
    apart = e.neutral is not None and e.low is not None and e.high is not None and not e.low <= e.neutral <= e.high
    return Cell("", sort_key(e.value), plot=Plot(value, low, high, neutral, apart))


def _n_cell(e: Estimate, scale: Scale) -> Cell:
    return Cell(number(e.n), sort_key(e.n), f"{e.clusters:,} clusters" if e.clusters is not None else "")


def _missing_cell(e: Estimate, scale: Scale) -> Cell:
    total = sum(e.missing.values())
    parts = ", ".join(f"{number(count)} {status}" for status, count in e.missing.items())
    return Cell(f"{number(total)} ({parts})" if parts else "0", sort_key(total))


def _test_cell(e: Estimate, scale: Scale) -> Cell:
    if not e.test:
        return Cell(UNDEFINED)
    return Cell(f"{e.test}: {number(e.statistic)}" if defined(e.statistic) else e.test)


def _p_cell(e: Estimate, scale: Scale) -> Cell:
    return Cell(p_value(e.p), sort_key(e.p), repr(e.p) if defined(e.p) else "")


def _adjusted_cell(e: Estimate, scale: Scale) -> Cell:
    family = f" ({e.family})" if scale.families and e.family and defined(e.p_adjusted) else ""
    return Cell(p_value(e.p_adjusted) + family, sort_key(e.p_adjusted), repr(e.p_adjusted) if family else "")


def _effect_cell(e: Estimate, scale: Scale) -> Cell:
    if not defined(e.effect):
        return Cell(UNDEFINED, "")
    ends = f" ({number(e.effect_low)} to {number(e.effect_high)})" if e.effect_low is not None else ""
    return Cell(number(e.effect) + ends, sort_key(e.effect), e.effect_name)


_FIELDS = (
    _Field("Value", lambda e, s: _number_cell(e.value, s.decimals)),
    _Field("Interval", lambda e, s: _range_cell(e.low, e.high, s.decimals)),
    _Field("Neutral", lambda e, s: _number_cell(e.neutral, s.decimals), lambda e: e.neutral is not None),
    _Field("Picture", _plot_cell, lambda e: defined(e.value), numeric=False),
    _Field("n", _n_cell),
    _Field("Clusters", lambda e, s: _number_cell(e.clusters, 0), lambda e: e.clusters is not None),
    _Field("Missing", _missing_cell),
    _Field(
        "Worst case",
        lambda e, s: _range_cell(e.bound_low, e.bound_high, s.decimals),
        lambda e: e.bound_low is not None or e.bound_high is not None,
    ),
    _Field("Test", _test_cell, lambda e: bool(e.test), numeric=False),
    _Field("p", _p_cell, lambda e: e.p is not None or bool(e.test)),
    _Field("Adjusted p", _adjusted_cell, lambda e: e.p_adjusted is not None),
    _Field("Effect", _effect_cell, lambda e: e.effect is not None),
    _Field("Note", lambda e, s: Cell(e.note), lambda e: bool(e.note), numeric=False),
)
