"""What a declared measure computes: what is summed per row, and statistics of the sums.

Totals have the shape (..., sides, columns), and column 0 counts the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from .facets import Permutation
from .intervals import Array, Bounds, Codes, Flags, Limits
from .resampling import Resampling

Column = str | pl.Expr | Callable[[pl.DataFrame], pl.Series]
"""The name of a column, an expression, or a function of the frame."""
Range = tuple[float, float] | None
Function = Callable[[Array], Array]
"""From totals (..., sides, columns) to a statistic (...); NaN where it is undefined."""


class Sample(NamedTuple):
    """Rows of one measure in one group."""

    values: Array
    """Shape (rows, inputs); NaN is missing."""
    sides: Codes
    """0 for the first side, 1 for the second."""
    units: Codes
    """Rows of one unit count as one, where units count alike; else 0."""

    @property
    def there(self) -> Flags:
        """Return which rows are readable."""
        return np.asarray(~np.isnan(self.values).any(axis=1), dtype=np.bool_)

    def of_side(self, side: int) -> tuple[Array, Codes]:
        """Return the first input and the units of the rows on a side."""
        own = self.sides == side
        return self.values[own, 0], self.units[own]


class EffectSize(NamedTuple):
    """An effect size beside the value."""

    name: str
    of: Function
    """From totals; or from the value, if `of_value`: then nothing is computed twice."""
    range: Range = None
    of_value: bool = False
    resamples: int | None = None
    """Behind an interval of its own, the percentile bootstrap's; 0 for none. By default it has that of the value."""


class Test(NamedTuple):
    """A test of a paper's own, in place of that by permutation or by the jackknife."""

    name: str
    of: Callable[[Array], tuple[float | None, float | None]]
    """From totals (sides, columns) to the statistic and p; None is undefined."""
    of_rows: bool = False
    """From the readable rows (rows, inputs) instead."""
    planned: str = ""
    """Its name in `Metric.designs`, where it is planned for."""


class Recipe(NamedTuple):
    """How a measure is computed."""

    inputs: tuple[Column, ...]
    """What gives the numbers of a row."""
    columns: Callable[[Array], Iterable[Array]]
    """What is summed, from values (rows, inputs); the first is 1."""
    value: Function
    """The value in the measure's unit."""
    range: Range = None
    """What the value can be at all; None where that is not known, and an interval ends at the outmost replicate."""
    effect: EffectSize | None = None
    sides: tuple[Column, Column | None] | None = None
    """Which rows are on the first and on the second side; without the latter, all that are not on the first."""
    deviations: Function | None = None
    """Sums (..., sides) that are as likely with the other sign where the value is neutral, where there are such."""
    swaps: bool = False
    """Whether the two sides are exchangeable where the value is neutral."""
    bounds: Callable[[Sample], Bounds] = lambda sample: (None, None)
    """The worst-case (Manski) range of the value over all answers of the missing rows."""
    wrong: Callable[[Array], str] = lambda values: ""
    """Say what is wrong with values (rows, inputs)."""
    tested: Function | None = None
    """What is compared with the measure's neutral value, in its unit, where that is not the value itself."""
    neutral: Function | None = None
    """The neutral value of `value`, where it depends on the data."""
    levels: tuple[Column, Sequence[str]] | None = None
    """The factor whose levels are the sides, where these may be more than two, and the levels that count."""
    partial: bool = False
    """Whether a row that is missing may still have some of its inputs, which narrow its bounds."""
    tabulated: Callable[[Array, Codes, int], Array] | None = None
    """The sums by place (places, columns), where `columns` would be too many."""
    reads: int | None = None
    """How many of the columns value and test read, where an effect size with an interval of its own reads more."""
    permuted: Callable[[Resampling], Permutation] | None = None
    """A test of its own by permutation of one way."""
    point: bool = False
    """Whether the value has no interval and no test but a paper's own."""
    ranged: bool = False
    """Whether `bounds` differ from the value though no row is missing."""
    told: Callable[[Array], dict[str, Any]] = lambda totals: {}
    """Flat fields that the estimate says otherwise, by totals (sides, columns), such as a unit."""

    def table(self, values: Array, place: Codes, places: int) -> Array:
        """Return the sums of the rows at each place, shape (places, columns)."""
        if self.tabulated is not None:
            return self.tabulated(values, place, places)
        summed = [np.bincount(place, weights=column, minlength=places) for column in self.columns(values)]
        found: Array = np.stack(summed, axis=-1).astype(np.float64)
        return found


def called(by: Callable[..., Array], values: Sequence[Array] | Array) -> Array:
    """Return a function of arrays; NaN where it is infinite or undefined."""
    with np.errstate(all="ignore"):
        found = np.asarray(by(*values), dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def roots(columns: Iterable[Column | None]) -> frozenset[str]:
    """Return the names of the columns that are read, but for those that a function reads."""
    names: set[str] = set()
    for column in columns:
        if isinstance(column, str):
            names.add(column)
        elif isinstance(column, pl.Expr):
            names.update(column.meta.root_names())
    return frozenset(names)


def mean_range(values: Array, units: Codes, limits: Limits) -> Bounds:
    """Bound the mean of the units' means, whose missing rows (NaN) lie within `limits`; one unit is a plain mean."""
    lost = np.isnan(values)
    if not len(values) or (lost.any() and limits is None):
        return None, None
    sizes = np.bincount(units)
    filled = (np.where(lost, end, values) for end in limits or (0.0, 0.0))
    low, high = (np.bincount(units, own)[sizes > 0] / sizes[sizes > 0] for own in filled)
    return float(low.mean()), float(high.mean())


def ratio_range(sample: Sample, most: float, limits: Limits) -> Bounds:
    """Bound a ratio of sums, to whose lower sum a missing row adds up to `most`, and that lies within `limits`."""
    there, missing = sample.there, int((~sample.there).sum())
    above, below = (float(total) for total in sample.values[there].sum(axis=0))
    if (missing and limits is None) or below + missing * most <= 0:
        return None, None
    ends = [(above + missing * most * end) / (below + missing * most) for end in limits or (0.0, 0.0)]
    # A missing row may also add nothing, and leave the ratio as it is.
    every = [*ends, above / below] if below > 0 else ends
    return min(every), max(every)


def rank_range(sample: Sample, limits: Limits) -> Bounds:
    """Bound Cliff's delta: missing rows of one side lie below, and of the other above, as far as `limits` let them."""
    least, greatest = limits or (-math.inf, math.inf)
    found = []
    for ends in ((least, greatest), (greatest, least)):
        first, second = (
            np.where(np.isnan(own), end, own)
            for own, end in zip((sample.of_side(0)[0], sample.of_side(1)[0]), ends, strict=True)
        )
        if not len(first) or not len(second):
            return None, None
        places = [np.searchsorted(np.sort(second), first, side).sum() for side in ("left", "right")]
        found.append(float(sum(places) / (len(first) * len(second)) - 1))
    return found[0], found[1]


def symmetric(limits: Limits, neutral: float | None) -> bool:
    """Return whether values may lie as far above neutral as below it: else their signs cannot be flipped."""
    return neutral is not None and (limits is None or math.isclose(sum(limits), 2 * neutral, abs_tol=1e-12))
