"""Measures to declare: each names expressions of the observations, whose sums its value is computed from.

Any statistic that is a function of sums over rows can be declared. `Share`, `Mean`, `Matched`, `Difference`, `Ratio`,
`Ranks`, `Groups` and `Correlation` are made; `Statistic` takes a function of sums, and `Derived` one of other measures'
values. Intervals and tests follow from the sums of whole clusters, so a measure does not declare them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Literal

import msgspec
import numpy as np

from ..contracts.estimates import Measure
from ..contracts.records import Scalar
from .effects import (
    TURN,
    arcsine,
    standardised,
    variance_of,
)
from .intervals import CONTRAST, FREE, Array, Bounds, Codes, Limits, ratio
from .ranks import levels_of, rank_biserial, signed_places
from .recipes import (
    Column,
    EffectSize,
    Recipe,
    Sample,
    Test,
    called,
    mean_range,
    ratio_range,
    roots,
    symmetric,
)
from .resampling import Method


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
    tested: bool = True
    """Whether it is tested against `neutral`, with an effect size; else neutral is only stated."""
    direction: str = ""
    """What greater values mean, such as `more stereotyping`."""
    margin: float | None = None
    """Distance from neutral, in `unit`, below which a difference has no consequence; the metric's option goes before.
    Answers that are computed rather than drawn can differ significantly by next to nothing."""
    scale: float = 1.0
    """What the statistic is multiplied by: 100 for per cent. `neutral` and `limits` are in the unit, after that."""
    limits: Limits = None
    """The least and the greatest that a row can give: they bound what is missing, and intervals end there."""
    where: Column | None = None
    """Rows that the measure is about, known before anybody answers; all of them by default."""
    out: Column | None = None
    """Rows that their answer takes out, such as a tie: they are neither counted nor missing."""
    status: str = "status"
    """Column that says whether a row is `ok`, or why it is missing for this measure."""
    strata: Column | None = None
    """Rows for which it is true are drawn apart from the others, so that either keep their count of clusters."""
    average: str = ""
    """Column whose levels weigh alike and are drawn apart: the value of several is the mean of theirs, and undefined
    where one has none. A `Derived` measure with it is derived level by level."""
    independent: bool = False
    """Whether its rows are independent, whatever the clusters of other measures; a share then has exact intervals.
    Samples of one prompt are one cluster all the same."""
    groups: tuple[tuple[str, ...], ...] | None = None
    """Those of the metric's groupings that it is given by; all by default."""
    apart: tuple[str, ...] = ()
    """Factors of whose levels each is a family of tests of its own."""
    family: str | Callable[[tuple[str, ...]], str] = ""
    """What its tests are corrected with, besides those of the same grouping, by default all measures without one; a
    function of the grouping names the whole family."""
    report: bool = True
    """Whether there are estimates of it; a part of a `Derived` measure may have none."""
    main: bool = True
    """Whether headline and conclusion name it."""
    group: dict[str, Scalar] = {}
    """What its estimates' groups say besides, such as `{"threshold": 0.5}`: measures that differ in it share a name."""
    facts: dict[str, Scalar] = {}
    note: str = ""
    topic: str = ""
    """`facts`, `note` and `topic` of its estimates."""

    @property
    def key(self) -> str:
        """Return what tells it from every other measure."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.group.items())])

    @property
    def words(self) -> Measure:
        """Return what its estimates are called and mean."""
        label = self.label or self.name.replace("_", " ").capitalize()
        return Measure(label, self.meaning, self.unit, self.direction)


class SummedMeasure(DeclaredMeasure, frozen=True, eq=False, kw_only=True):
    """A measure that is computed from the sums of its own rows: `recipe` says how."""

    is_mean: ClassVar[bool] = False
    """Whether it is a mean of rows, or the difference of two means: then runs are compared row by row."""
    test: Test | None = None
    """A test of a paper's own."""
    repeats: str = ""
    """A measure before it of the same rows and sums, whose value, interval and effect it has, with another test."""
    intervals: Method | None = None
    """How its intervals are made, whatever the option says; `jackknife` tests too, or permutes where nothing varies."""
    resamples_of_effect: int | None = None
    """Resamples of an interval of its own for the effect size, 0 for none; one facet. By default that of the value."""

    @property
    def reach(self) -> Limits:
        """Return the least and the greatest that a row can add to a mean."""
        return self.limits

    def recipe(self) -> Recipe:
        """Return what is summed, and the statistics of the sums."""
        raise NotImplementedError

    @property
    def needs(self) -> frozenset[str]:
        """Return the columns that the measure reads, but for those that a function reads."""
        recipe = self.recipe()
        factor = () if recipe.levels is None else recipe.levels[:1]
        columns = (*recipe.inputs, *(recipe.sides or ()), *factor, self.where, self.out, self.strata)
        return roots(columns) | {self.status, *filter(None, [self.average])}


BISERIAL: Final = "matched-pairs rank-biserial"


class Mean(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The mean of a number. Effect size: the mean less neutral, in standard deviations or as it is, or signed ranks."""

    value: Column
    ends: tuple[Column, Column] | None = None
    """The least and the greatest that each row can be, where something is known of rows that are missing."""
    size: Literal["standardised mean difference", "risk difference", "matched-pairs rank-biserial"] = (
        "standardised mean difference"
    )
    is_mean: ClassVar[bool] = True

    def recipe(self) -> Recipe:
        """Return the count, the sum and the sum of squares, or what the signed ranks need; and the mean."""
        neutral, scale = self.neutral or 0.0, self.scale

        def mean(totals: Array) -> Array:
            return scale * ratio(totals[..., 0, 1], totals[..., 0, 0])

        def size(totals: Array) -> Array:
            return standardised(mean(totals) / scale - neutral / scale, variance_of(totals[..., 0, :]))

        def bounds(sample: Sample) -> Bounds:
            if self.ends is None:
                return mean_range(scale * sample.values[:, 0], sample.units, self.limits)
            ends = scale * sample.values[:, 1:]
            known = np.where(np.isnan(ends), self.limits or np.nan, ends)
            if not len(known) or np.isnan(known).any():
                return None, None
            return float(known[:, 0].mean()), float(known[:, 1].mean())

        ranked = self.size == BISERIAL
        effect = {
            "standardised mean difference": EffectSize(self.size, size, FREE),
            "risk difference": EffectSize(self.size, lambda value: (value - neutral) / scale, CONTRAST, of_value=True),
            BISERIAL: EffectSize(BISERIAL, lambda totals: rank_biserial(_signed(totals[..., 0, 2:]))),
        }[self.size]
        return Recipe(
            inputs=(self.value, *(self.ends or ())),
            columns=lambda values: (np.ones(len(values)), values[:, 0], values[:, 0] ** 2),
            value=mean,
            range=self.limits or FREE,
            effect=None if self.neutral is None else effect,
            deviations=deviations_of(neutral / scale) if symmetric(self.limits, self.neutral) else None,
            bounds=bounds,
            partial=self.ends is not None,
            ranged=self.ends is not None,
            tabulated=_by_sign if ranked else None,
            reads=2 if ranked or self.neutral is None else None,
        )


class Share(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The share of rows with a hit, in per cent. Effect size: Cohen's h against neutral, or g: the distance itself.

    Where its rows are independent its interval is exact (Clopper-Pearson), and its test the exact binomial one.
    """

    hit: Column
    """True or false, or 1 or 0; null is missing."""
    tie: Column | None = None
    """Rows that are neither a hit nor a miss: they lower the neutral value, and test and effect leave them out."""
    size: Literal["Cohen's h", "Cohen's g", "risk difference"] = "Cohen's h"
    unit: str = "%"
    scale: float = 100.0
    is_mean: ClassVar[bool] = True

    @property
    def reach(self) -> Limits:
        """Return the least and the greatest share."""
        return 0.0, self.scale

    def sized(self, share: Array) -> Array:
        """Return the effect size of shares in the unit against neutral."""
        neutral = self.neutral or 0.0
        if self.size != "Cohen's h":
            return share / self.scale - neutral / self.scale
        turn: Array = arcsine(share / self.scale) - arcsine(np.full_like(share, neutral) / self.scale)
        return turn

    def recipe(self) -> Recipe:
        """Return the count, the hits, and the rows that are no tie; and the share of hits."""
        neutral = self.neutral or 0.0
        decided = 0 if self.tie is None else 2

        def tested(totals: Array) -> Array:
            return self.scale * ratio(totals[..., 0, 1], totals[..., 0, decided])

        reach = TURN if self.size == "Cohen's h" else (-neutral / self.scale, 1 - neutral / self.scale)
        size = EffectSize(self.size, self.sized, reach, of_value=True)
        if decided:
            size = EffectSize(self.size, lambda totals: self.sized(tested(totals)), reach)
        return Recipe(
            inputs=(self.hit,) if self.tie is None else (self.hit, self.tie),
            columns=lambda values: (np.ones(len(values)), values[:, 0], *(1 - values[:, 1:]).T),
            value=lambda totals: self.scale * ratio(totals[..., 0, 1], totals[..., 0, 0]),
            range=self.reach,
            effect=None if self.neutral is None else size,
            deviations=deviations_of(neutral / self.scale, decided) if symmetric(self.reach, self.neutral) else None,
            bounds=lambda sample: mean_range(self.scale * sample.values[:, 0], sample.units, self.reach),
            wrong=lambda values: "" if yes_no(values) else "a hit is true or false, or 1 or 0",
            tested=tested if decided else None,
            neutral=(lambda totals: neutral * ratio(totals[..., 0, 2], totals[..., 0, 0])) if decided else None,
        )


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
            deviations=deviations_of(neutral, base=2) if symmetric(self.limits, self.neutral) else None,
            bounds=lambda sample: ratio_range(
                sample._replace(values=sample.values * (self.scale, 1.0)), self.most, self.limits
            ),
            wrong=lambda values: "`below` is under 0" if (values[:, 1] < 0).any() else "",
        )


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
    """Any function of sums: `by` gets the total of each of `sums`, as arrays of one shape, and gives one of it.

    Of two groups of rows, `first` and `second`, `by` gets arrays whose last axis are the groups, and gives one without.
    """

    sums: tuple[Column, ...]
    by: Callable[..., Array]
    first: Column | None = None
    second: Column | None = None
    """By default the rows that are known not to be in the first group."""
    size: str = ""
    """What it is called as an effect size, if it is its own effect size."""

    def recipe(self) -> Recipe:
        """Return the sums, and the function of them; undefined without a row."""

        def value(totals: Array) -> Array:
            own = totals[..., 0, :] if self.first is None else totals
            found = called(self.by, np.moveaxis(own[..., 1:], -1, 0))
            return self.scale * np.where((totals[..., 0] > 0).all(axis=-1), found, np.nan)

        reach = None if self.limits is None else (self.limits[0] / self.scale, self.limits[1] / self.scale)
        return Recipe(
            inputs=self.sums,
            columns=lambda values: (np.ones(len(values)), *values.T),
            value=value,
            range=self.limits,
            sides=None if self.first is None else (self.first, self.second),
            swaps=self.first is not None and self.neutral == 0,
            effect=EffectSize(self.size, lambda found: found / self.scale, reach, of_value=True) if self.size else None,
        )


class Derived(DeclaredMeasure, frozen=True, eq=False, kw_only=True):
    """A function of other measures' values: `by` gets those of `of`, in their units, as arrays of one shape."""

    of: tuple[str, ...]
    by: Callable[..., Array]


def own_family(name: str) -> Callable[[tuple[str, ...]], str]:
    """Return the name of a family of tests by grouping, as `DeclaredMeasure.family`."""
    return lambda by: f"{name}, {'by ' + ' and '.join(by) if by else 'whole study'}"


def deviations_of(neutral: float, base: int = 0) -> Callable[[Array], Array]:
    """Return the function that sums how far values lie from neutral, for flipped signs."""

    def deviations(totals: Array) -> Array:
        found: Array = totals[..., 1] - neutral * totals[..., base]
        return found

    return deviations


def _by_sign(values: Array, place: Codes, places: int) -> Array:
    """Return count, sum, and counts by level of the size above 0 and below, which alternate."""
    own, signed = values[:, 0], signed_places(values[:, 0])
    moved = signed != 0
    level = levels_of(np.abs(signed[moved]).astype(np.float64))
    code = 2 * level + (signed[moved] < 0)
    width = 2 * (int(level.max(initial=-1)) + 1)
    counts = np.bincount(place[moved] * width + code, minlength=places * width).reshape(places, width)
    sums = [np.bincount(place, minlength=places), np.bincount(place, own, places)]
    return np.concatenate([np.stack(sums, axis=-1), counts], axis=-1).astype(np.float64)


def _signed(counts: Array) -> Array:
    return np.stack([counts[..., 0::2], counts[..., 1::2]], axis=-2)


def yes_no(values: Array) -> bool:
    """Return whether every value is 0, 1 or missing."""
    return bool((np.isnan(values) | (values == 0) | (values == 1)).all())


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
