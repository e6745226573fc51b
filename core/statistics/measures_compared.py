"""Measures that compare groups of rows, or two numbers of one row: differences, matched differences, ranks."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import special

from ..contracts.estimates import Caveat
from .effects import (
    ODDS_RATIO,
    TURN,
    cohens_h,
    contrast_statistics,
    matched_difference,
    matched_odds_ratio,
    odds_ratio,
    risk_difference,
    standardised,
    variance_of,
)
from .intervals import CONTRAST, FREE, Array, Codes, Flags, Limits, difference_bounds, paired_bounds, ratio, scaled
from .matched import mcnemar_p
from .measures import SummedMeasure, deviations_of, yes_no
from .ranks import cliffs_delta, epsilon_squared, kruskal_h, levels_of
from .recipes import Column, EffectSize, Recipe, Sample, Test, mean_range, rank_range


class Difference(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The mean of a first group of rows less that of a second. A yes-no value gives a risk difference."""

    value: Column
    first: Column
    second: Column | None = None
    """By default the rows that are known not to be in the first group; a row in neither is left out."""
    neutral: float | None = 0.0
    size: Literal["Cohen's d", "Cohen's h", "odds ratio", "risk difference"] = "Cohen's d"
    """Effect size; all but the first are of yes-no values."""
    is_mean: ClassVar[bool] = True

    def recipe(self) -> Recipe:
        """Return the count, the sum and the sum of squares of either group, and the difference of their means."""
        effect = {
            "Cohen's d": EffectSize("Cohen's d", lambda totals: contrast_statistics(totals)[..., 1], FREE),
            "Cohen's h": EffectSize("Cohen's h", cohens_h, TURN),
            "odds ratio": EffectSize(ODDS_RATIO, odds_ratio, (0.0, math.inf)),
            "risk difference": EffectSize("risk difference", risk_difference, CONTRAST),
        }[self.size]
        told = "" if self.size == "Cohen's d" else f"{self.size} is of true and false, or 1 and 0"
        return Recipe(
            inputs=(self.value,),
            columns=lambda values: (np.ones(len(values)), values[:, 0], values[:, 0] ** 2),
            value=lambda totals: self.scale * contrast_statistics(totals)[..., 0],
            range=FREE if self.limits is None else (self.limits[0] - self.limits[1], self.limits[1] - self.limits[0]),
            effect=effect,
            sides=(self.first, self.second),
            swaps=self.neutral == 0,
            bounds=lambda sample: difference_bounds(*(self._bounds(sample, side) for side in (0, 1))),
            wrong=lambda values: "" if yes_no(values) else told,
        )

    def _bounds(self, sample: Sample, side: int) -> tuple[float | None, float | None]:
        values, units = sample.of_side(side)
        return mean_range(self.scale * values, units, self.limits)


class Matched(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The mean of one number less another of the same row. A row with one of them alone narrows the worst case.

    Yes-no numbers may have the effect sizes and the exact test of McNemar (`test=MCNEMAR`).
    """

    first: Column
    second: Column
    neutral: float | None = 0.0
    size: Literal["standardised mean difference", "matched risk difference", "matched odds ratio"] = (
        "standardised mean difference"
    )
    is_mean: ClassVar[bool] = True

    @property
    def reach(self) -> Limits:
        """Return the least and the greatest difference."""
        return None if self.limits is None else (self.limits[0] - self.limits[1], self.limits[1] - self.limits[0])

    def recipe(self) -> Recipe:
        """Return count, sum and sum of squares of the differences, how many lie above 0 and below; and their mean."""
        neutral = (self.neutral or 0.0) / self.scale

        def mean(totals: Array) -> Array:
            return ratio(totals[..., 0, 1], totals[..., 0, 0])

        effect = {
            "standardised mean difference": EffectSize(
                self.size, lambda totals: standardised(mean(totals) - neutral, variance_of(totals[..., 0, :3])), FREE
            ),
            "matched risk difference": EffectSize(
                f"{self.size}", lambda totals: matched_difference(totals[..., DISCORDANT]), CONTRAST
            ),
            "matched odds ratio": EffectSize(
                f"matched {ODDS_RATIO}", lambda totals: matched_odds_ratio(totals[..., DISCORDANT]), (0.0, math.inf)
            ),
        }[self.size]

        def columns(values: Array) -> tuple[Array, ...]:
            gap = values[:, 0] - values[:, 1]
            return np.ones(len(gap)), gap, gap**2, (gap > 0).astype(np.float64), (gap < 0).astype(np.float64)

        return Recipe(
            inputs=(self.first, self.second),
            columns=columns,
            value=lambda totals: self.scale * mean(totals),
            range=FREE if self.reach is None else self.reach,
            effect=None if self.neutral is None else effect,
            deviations=deviations_of(neutral),
            bounds=lambda sample: paired_bounds(
                self.scale * sample.values[:, 0], self.scale * sample.values[:, 1], self.limits
            ),
            partial=True,
        )


DISCORDANT = [0, 3, 4]
"""Columns of `Matched`: the count, and the rows that differ one way and the other."""


def _mcnemar(totals: Array) -> tuple[float | None, float | None]:
    _, above, below = (int(count) for count in totals[0, DISCORDANT])
    p = mcnemar_p(above, below)
    return None if p is None else float(above), p


MCNEMAR = Test("McNemar, exact", _mcnemar)
"""Of a `Matched` measure of yes-no numbers, whose rows count as independent."""


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


class Groups(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """How far the levels of a factor differ in the ranks of a number: epsilon squared, 0 to 1, its own effect size.

    Tested by Kruskal and Wallis's H, labels of whole clusters permuted. Source: Tomczak and Tomczak (2014).
    """

    value: Column
    of: Column
    """The factor; a row without a level is left out."""
    levels: tuple[str, ...]
    neutral: float | None = 0.0

    def recipe(self) -> Recipe:
        """Return counts by level of the number, and epsilon squared."""
        return Recipe(
            inputs=(self.value,),
            columns=lambda values: (),
            value=lambda totals: self.scale * epsilon_squared(totals[..., 1:]),
            effect=EffectSize("epsilon squared", lambda value: value / self.scale, of_value=True),
            levels=(self.of, self.levels),
            tabulated=_by_level,
        )


class KruskalWallis(Groups, frozen=True, eq=False, kw_only=True):
    """Kruskal and Wallis's H of a number between the levels of a factor, tested as if every row stood for itself.

    Its effect size is epsilon squared, whose interval draws clusters; H itself has none. Rows that are all alike are
    evidence of no difference: H is 0 and p is 1.
    """

    neutral: float | None = None
    unit: str = "H"

    def recipe(self) -> Recipe:
        """Return counts by level of the number, and H."""

        def told(totals: Array) -> dict[str, Any]:
            table = totals[:, 1:]
            between = int((table.sum(axis=-1) > 0).sum()) - 1
            named = {"unit": f"{self.unit}, {between} degree{'s' * (between != 1)} of freedom"} if between > 0 else {}
            alike = {"effect": 0.0, "effect_name": "epsilon squared", "caveats": (Caveat.NO_VARIATION,)}
            return {**named, **(alike if between > 0 and _alike(table) else {})}

        def several(totals: Array, found: Array) -> Array:
            return np.where((totals[..., 0] > 0).sum(axis=-1) > 1, found, np.nan)

        def h(totals: Array) -> Array:
            table = totals[..., 1:]
            return several(totals, np.where(_alike(table), 0.0, kruskal_h(table)))

        size = EffectSize("epsilon squared", lambda totals: several(totals, epsilon_squared(totals[..., 1:])))
        return super().recipe()._replace(value=h, effect=size, point=True, told=told)


def kruskal_test(name: str, planned: str = "") -> Test:
    """Return the asymptotic test of a `KruskalWallis` measure, as `scipy.stats.kruskal` but hundredfold as fast."""

    def test(totals: Array) -> tuple[float | None, float | None]:
        table = totals[:, 1:]
        between = int((table.sum(axis=-1) > 0).sum()) - 1
        if between < 1:
            return None, None
        h = 0.0 if _alike(table) else float(kruskal_h(table))
        return h, float(special.chdtrc(between, h))

    return Test(name, test, planned=planned)


def _alike(table: Array) -> Flags:
    """Return whether all values are equal."""
    return np.asarray((table.sum(axis=-2) > 0).sum(axis=-1) < 2)


def _by_level(values: Array, place: Codes, places: int) -> Array:
    level = levels_of(values[:, 0])
    size = int(level.max(initial=-1)) + 1
    counts = np.bincount(place * size + level, minlength=places * size).reshape(places, size).astype(np.float64)
    return np.concatenate([counts.sum(axis=-1, keepdims=True), counts], axis=-1)
