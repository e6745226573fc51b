"""Measures to declare: each names expressions of the observations, whose sums its value is computed from.

Any statistic that is a function of sums over rows can be declared. `Share`, `Mean`, `Difference`, `Ratio`, `Ranks` and
`Correlation` are made; `Statistic` takes a function of sums, and `Derived` one of other measures' values. Intervals and
tests follow from the sums of whole clusters, so a measure says nothing of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec
import numpy as np

from ..contracts.estimates import Measure
from .effects import ODDS_RATIO, TURN, arcsine, cohens_h, contrast_statistics, odds_ratio, standardised, variance_of
from .intervals import CONTRAST, FREE, Array, Codes, Limits, difference_bounds, ratio, scaled
from .ranks import cliffs_delta, levels_of
from .recipes import (
    Column,
    EffectSize,
    Recipe,
    Sample,
    called,
    mean_range,
    rank_range,
    ratio_range,
    roots,
    symmetric,
)


class _Named(msgspec.Struct, frozen=True, eq=False):
    name: str


class DeclaredMeasure(_Named, frozen=True, eq=False, kw_only=True):
    """A measure with its words. The subclasses say what is summed."""

    label: str = ""
    """Such as `Stereotype score`; by default the name in words."""
    meaning: str = ""
    """One sentence: what the number is, of which rows."""
    unit: str = ""
    neutral: float | None = None
    """What an unbiased model would give; None where no single value is neutral, and nothing is tested."""
    direction: str = ""
    """What greater values mean, such as `more stereotyping`."""
    scale: float = 1.0
    """What the statistic is multiplied by: 100 for per cent. `neutral` and `limits` are in the unit, after that."""
    limits: Limits = None
    """The least and the greatest that a row can give: they bound what is missing, and intervals end there."""
    where: Column | None = None
    """Rows that the measure is about, known before anybody answers; all of them by default."""
    family: str = ""
    """What its tests are corrected with, besides those of the same grouping; by default all measures without one."""
    report: bool = True
    """Whether there are estimates of it; a part of a `Derived` measure may have none."""

    @property
    def words(self) -> Measure:
        """Return what its estimates are called and mean."""
        label = self.label or self.name.replace("_", " ").capitalize()
        return Measure(label, self.meaning, self.unit, self.direction)


class SummedMeasure(DeclaredMeasure, frozen=True, eq=False, kw_only=True):
    """A measure that is computed from the sums of its own rows: `recipe` says how."""

    is_mean: ClassVar[bool] = False
    """Whether it is a mean of rows, or the difference of two means: then runs are compared row by row."""

    def recipe(self) -> Recipe:
        """Return what is summed, and the statistics of the sums."""
        raise NotImplementedError

    @property
    def needs(self) -> frozenset[str]:
        """Return the columns that the measure reads, but for those that a function reads."""
        recipe = self.recipe()
        return roots((*recipe.inputs, *(recipe.sides or ()), self.where))


class Mean(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The mean of a number. Effect size: the mean less neutral, in standard deviations."""

    value: Column
    is_mean: ClassVar[bool] = True

    def recipe(self) -> Recipe:
        """Return the count, the sum and the sum of squares, and their mean."""
        neutral, scale = self.neutral or 0.0, self.scale

        def mean(totals: Array) -> Array:
            return scale * ratio(totals[..., 0, 1], totals[..., 0, 0])

        def size(totals: Array) -> Array:
            return standardised(mean(totals) / scale - neutral / scale, variance_of(totals[..., 0, :]))

        return Recipe(
            inputs=(self.value,),
            columns=lambda values: (np.ones(len(values)), values[:, 0], values[:, 0] ** 2),
            value=mean,
            range=self.limits or FREE,
            effect=None if self.neutral is None else EffectSize("standardised mean difference", size, FREE),
            deviations=_deviations(neutral / scale) if symmetric(self.limits, self.neutral) else None,
            bounds=lambda sample: mean_range(scale * sample.values[:, 0], sample.units, self.limits),
        )


class Share(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The share of rows with a hit, in per cent. Effect size: Cohen's h against neutral.

    Where no clusters are declared its interval is exact (Clopper-Pearson), and its test the exact binomial one.
    """

    hit: Column
    """True or false, or 1 or 0; null is missing."""
    unit: str = "%"
    scale: float = 100.0
    is_mean: ClassVar[bool] = True

    @property
    def whole(self) -> tuple[float, float]:
        """Return the least and the greatest share."""
        return 0.0, self.scale

    def turned(self, share: Array) -> Array:
        """Return Cohen's h of shares in the unit against neutral."""
        neutral = np.full_like(share, self.neutral or 0.0)
        turn: Array = arcsine(share / self.scale) - arcsine(neutral / self.scale)
        return turn

    def recipe(self) -> Recipe:
        """Return the count and the hits, and their share."""
        size = EffectSize("Cohen's h", self.turned, TURN, of_value=True)
        return Recipe(
            inputs=(self.hit,),
            columns=lambda values: (np.ones(len(values)), values[:, 0]),
            value=lambda totals: self.scale * ratio(totals[..., 0, 1], totals[..., 0, 0]),
            range=self.whole,
            effect=None if self.neutral is None else size,
            deviations=(
                _deviations((self.neutral or 0.0) / self.scale) if symmetric(self.whole, self.neutral) else None
            ),
            bounds=lambda sample: mean_range(self.scale * sample.values[:, 0], sample.units, self.whole),
            wrong=lambda values: "" if _yes_no(values) else "a hit is true or false, or 1 or 0",
        )


class Difference(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The mean of a first group of rows less that of a second. A yes-no value gives a risk difference."""

    value: Column
    first: Column
    second: Column | None = None
    """By default the rows that are known not to be in the first group; a row in neither is left out."""
    neutral: float | None = 0.0
    size: Literal["Cohen's d", "Cohen's h", "odds ratio"] = "Cohen's d"
    """Effect size; the last two are of yes-no values."""
    is_mean: ClassVar[bool] = True

    def recipe(self) -> Recipe:
        """Return the count, the sum and the sum of squares of either group, and the difference of their means."""
        effect = {
            "Cohen's d": EffectSize("Cohen's d", lambda totals: contrast_statistics(totals)[..., 1], FREE),
            "Cohen's h": EffectSize("Cohen's h", cohens_h, TURN),
            "odds ratio": EffectSize(ODDS_RATIO, odds_ratio, (0.0, math.inf)),
        }[self.size]
        yes_no = "" if self.size == "Cohen's d" else f"{self.size} is of true and false, or 1 and 0"
        return Recipe(
            inputs=(self.value,),
            columns=lambda values: (np.ones(len(values)), values[:, 0], values[:, 0] ** 2),
            value=lambda totals: self.scale * contrast_statistics(totals)[..., 0],
            range=FREE if self.limits is None else (self.limits[0] - self.limits[1], self.limits[1] - self.limits[0]),
            effect=effect,
            sides=(self.first, self.second),
            swaps=self.neutral == 0,
            bounds=lambda sample: difference_bounds(*(self._bounds(sample, side) for side in (0, 1))),
            wrong=lambda values: "" if _yes_no(values) else yes_no,
        )

    def _bounds(self, sample: Sample, side: int) -> tuple[float | None, float | None]:
        values, units = sample.of_side(side)
        return mean_range(self.scale * values, units, self.limits)


class Ratio(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The sum of one number over the sum of another. Effect size: the logarithm of value over a neutral above 0."""

    above: Column
    below: Column
    """Never below 0."""
    most: float = 1.0
    """The greatest that `below` can be in a row; with `limits`, which are of the ratio, it bounds what is missing."""

    def recipe(self) -> Recipe:
        """Return the two sums, and their ratio."""
        neutral = (self.neutral or 0.0) / self.scale

        def size(value: Array) -> Array:
            return called(np.log, [value / (self.neutral or 1.0)])

        return Recipe(
            inputs=(self.above, self.below),
            columns=lambda values: (np.ones(len(values)), *values.T),
            value=lambda totals: self.scale * ratio(totals[..., 0, 1], totals[..., 0, 2]),
            range=self.limits,
            effect=EffectSize("log ratio to neutral", size, of_value=True) if neutral > 0 else None,
            deviations=_deviations(neutral, base=2) if symmetric(self.limits, self.neutral) else None,
            bounds=lambda sample: ratio_range(
                sample._replace(values=sample.values * (self.scale, 1.0)), self.most, self.limits
            ),
            wrong=lambda values: "`below` is under 0" if (values[:, 1] < 0).any() else "",
        )


class Ranks(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """How often a row of a first group lies above one of a second, less how often below: Cliff's delta, -1 to 1.

    That is the rank-biserial correlation of Mann and Whitney's U; it is its own effect size. Source: Cliff (1993).
    """

    value: Column
    first: Column
    second: Column | None = None
    neutral: float | None = 0.0

    def recipe(self) -> Recipe:
        """Return counts by level, and delta; more than 512 different values are put together."""
        return Recipe(
            inputs=(self.value,),
            columns=lambda values: (),
            value=lambda totals: self.scale * cliffs_delta(totals[..., 1:]),
            range=(-self.scale, self.scale),
            effect=EffectSize("Cliff's delta", lambda value: value / self.scale, CONTRAST, of_value=True),
            sides=(self.first, self.second),
            swaps=self.neutral == 0,
            bounds=self._bounds,
            tabulated=_by_level,
        )

    def _bounds(self, sample: Sample) -> tuple[float | None, float | None]:
        low, high = rank_range(sample, self.limits)
        return scaled(low, self.scale), scaled(high, self.scale)


class Correlation(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """Pearson's correlation of two numbers; it is its own effect size."""

    x: Column
    y: Column
    neutral: float | None = 0.0

    def recipe(self) -> Recipe:
        """Return sums, sums of squares and of products, and the correlation."""
        return Recipe(
            inputs=(self.x, self.y),
            columns=_moments,
            value=lambda totals: self.scale * _correlation(totals),
            range=(-self.scale, self.scale),
            effect=EffectSize("Pearson's r", lambda value: value / self.scale, CONTRAST, of_value=True),
        )


class Statistic(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """Any function of sums: `by` gets the total of each of `sums`, as arrays of one shape, and gives one of it."""

    sums: tuple[Column, ...]
    by: Callable[..., Array]

    def recipe(self) -> Recipe:
        """Return the sums, and the function of them; undefined without a row."""

        def value(totals: Array) -> Array:
            found = called(self.by, np.moveaxis(totals[..., 0, 1:], -1, 0))
            return self.scale * np.where(totals[..., 0, 0] > 0, found, np.nan)

        return Recipe(
            inputs=self.sums,
            columns=lambda values: (np.ones(len(values)), *values.T),
            value=value,
            range=self.limits,
        )


class Derived(DeclaredMeasure, frozen=True, eq=False, kw_only=True):
    """A function of other measures' values: `by` gets those of `of`, in their units, as arrays of one shape."""

    of: tuple[str, ...]
    by: Callable[..., Array]


def _deviations(neutral: float, base: int = 0) -> Callable[[Array], Array]:
    def deviations(totals: Array) -> Array:
        found: Array = totals[..., 1] - neutral * totals[..., base]
        return found

    return deviations


def _yes_no(values: Array) -> bool:
    return bool((np.isnan(values) | (values == 0) | (values == 1)).all())


def _by_level(values: Array, place: Codes, places: int) -> Array:
    level = levels_of(values[:, 0])
    size = int(level.max(initial=-1)) + 1
    counts = np.bincount(place * size + level, minlength=places * size).reshape(places, size).astype(np.float64)
    return np.concatenate([counts.sum(axis=-1, keepdims=True), counts], axis=-1)


def _moments(values: Array) -> tuple[Array, ...]:
    # About the means, large values of little spread keep their digits; the correlation is the same.
    x, y = (values - (values.mean(axis=0) if len(values) else 0.0)).T
    return np.ones(len(x)), x, y, x**2, y**2, x * y


def _correlation(totals: Array) -> Array:
    n, x, y, xx, yy, xy = np.moveaxis(totals[..., 0, :], -1, 0)
    # A spread that is no more than rounding is none.
    spreads = [
        np.where((spread := n * squares - total**2) > 1e-12 * n * squares, spread, 0.0)
        for squares, total in ((xx, x), (yy, y))
    ]
    found: Array = np.clip(ratio(n * xy - x * y, np.sqrt(spreads[0] * spreads[1])), -1.0, 1.0)
    return found
