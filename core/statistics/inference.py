"""From the sums of a declared measure to its estimate: interval, test, effect size, bounds and caveats.

One way of clustering is drawn, flipped or swapped whole; two ways that cross take the pigeonhole bootstrap or its
jackknife. Where a permutation is valid one way it gives p; else p is that of the jackknife's variance with Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..contracts.estimates import Estimate
from .crossed import crossed_bootstrap, crossed_jackknife
from .declared_rows import Chosen, Design, Part, choose, table
from .estimates import (
    Margin,
    TestingOptions,
    equivalence_facts,
    interval_caveats,
    merge,
    number,
    tested,
    undefined,
)
from .intervals import LEAST_P, Array, Bounds, binomial_test, exact_interval, t_ends, t_sf
from .measures import DeclaredMeasure, Derived, Share
from .recipes import EffectSize, Range, Recipe, called
from .resampling import bootstrap, flip_test, jackknife, swap_test

EXACT, BINOMIAL = "exact (Clopper-Pearson)", "exact binomial"


class Joint(NamedTuple):
    """The sums of the measures that one rests on, side by side, and how its value follows from them."""

    sums: Array
    """Shape (*clusters, 1, sides, columns)."""
    value: Callable[[Array], Array]
    range: Range
    effect: EffectSize | None
    recipe: Recipe | None
    """Of a measure with sums of its own."""

    @property
    def crossed(self) -> bool:
        """Return whether two ways of clustering cross."""
        return self.sums.ndim > 4

    @property
    def clusters(self) -> tuple[int, int]:
        """Return the count of clusters, and that of the side with the fewest; two ways count as the smaller."""
        counts = self.sums[..., 0, :, 0]
        ways = [counts.sum(axis=1), counts.sum(axis=0)] if self.crossed else [counts]
        every = [int((way.sum(axis=-1) > 0).sum()) for way in ways]
        sides = [int((way[:, side] > 0).sum()) for way in ways for side in range(counts.shape[-1])]
        return min(every), min(sides)

    def statistics(self, totals: Array) -> Array:
        """Return value and effect size, shape (..., statistics)."""
        value = self.value(totals)
        if self.effect is None:
            return value[..., None]
        return np.stack([value, self.effect.of(value if self.effect.of_value else totals)], axis=-1)


def join(measure: DeclaredMeasure, design: Design, tables: Sequence[Array]) -> Joint:
    """Put the sums of the measures side by side that `measure` rests on."""
    if not isinstance(measure, Derived):
        recipe = design.bases(measure)[0].recipe()
        return Joint(tables[0], recipe.value, recipe.range, recipe.effect, recipe)
    # Measures of one side and of two meet in one: a cluster then brings all that it has.
    alike = len({own.shape[-2] for own in tables}) == 1
    flat = [own if alike else own.reshape(*own.shape[:-2], 1, own.shape[-2] * own.shape[-1]) for own in tables]
    counts = [own[..., :1] if alike else own[..., :1].sum(axis=-2, keepdims=True) for own in tables]
    shapes = [own.shape[-2:] for own in tables]
    ends = np.cumsum([1, *(own.shape[-1] for own in flat)])

    def value(totals: Array) -> Array:
        pieces = [totals[..., low:high] for low, high in zip(ends[:-1], ends[1:], strict=True)]
        if not alike:
            pieces = [own.reshape(*own.shape[:-2], *shape) for own, shape in zip(pieces, shapes, strict=True)]
        bases = zip(design.bases(measure), pieces, strict=True)
        return _derived(measure, design, {base.name: base.recipe().value(piece) for base, piece in bases})

    sums = np.concatenate([np.sum(counts, axis=0), *flat], axis=-1)
    return Joint(sums, value, measure.limits, None, None)


def _derived(measure: DeclaredMeasure, design: Design, values: dict[str, Array]) -> Array:
    if not isinstance(measure, Derived):
        return values[measure.name]
    named = design.named
    return measure.scale * called(measure.by, [_derived(named[name], design, values) for name in measure.of])


class Found(NamedTuple):
    """What the sums say."""

    value: Array
    """Value and effect size, or the value alone."""
    ends: Callable[[float], Array]
    """The ends of intervals at a level, shape (2, statistics)."""
    method: str
    test: dict[str, Any]
    clusters: tuple[int, int] | None
    """How many, and those of the side with the fewest; None where every row is by itself."""


def estimate(measure: DeclaredMeasure, part: Part, design: Design, options: TestingOptions) -> Estimate:
    """Return the estimate of a measure in a group, before any correction."""
    chosen = [choose(base, part) for base in design.bases(measure)]
    n, missing = _counted(chosen)
    joint = join(measure, design, [table(b, part, c) for b, c in zip(design.bases(measure), chosen, strict=True)])
    if isinstance(measure, Share) and design.independent:
        found = exact(measure, joint, design, options)
    else:
        found = resampled(measure, joint, design, options)
    value = number(found.value[0])
    low, high = (number(end) for end in found.ends(options.level)[:, 0])
    return Estimate.from_flat(
        metric=measure.name,
        group=dict(part.group),
        value=value,
        neutral=measure.neutral,
        unit=measure.unit,
        low=low,
        high=high,
        level=options.level,
        interval=found.method if low is not None else "",
        n=n,
        clusters=None if found.clusters is None else found.clusters[0],
        missing=missing,
        **_effect(joint, found, options),
        **_bounds(joint, chosen, value, missing),
        **merge(_caveats(found, value, low), found.test, _near(measure, found, options)),
    )


def concerned(measure: DeclaredMeasure, part: Part, design: Design) -> bool:
    """Return whether a group has rows that the measure is about, on every side, readable or not.

    A group of one side has no difference between the sides: it is no missing answer, and nothing to state.
    """
    for base in design.bases(measure):
        sides = set(choose(base, part).sample.sides.tolist())
        if len(sides) < (1 if base.recipe().sides is None else 2):
            return False
    return True


def _counted(chosen: Sequence[Chosen]) -> tuple[int, dict[str, int]]:
    """Return how many rows are readable, and why the others are not; a row counts once."""
    statuses: dict[int, str] = {}
    for own in chosen:
        for row, status in zip(own.rows.tolist(), own.statuses, strict=True):
            statuses[row] = status if statuses.get(row, "ok") == "ok" else statuses[row]
    lost = [status for status in statuses.values() if status != "ok"]
    return len(statuses) - len(lost), {status: lost.count(status) for status in sorted(set(lost))}


def resampled(measure: DeclaredMeasure, joint: Joint, design: Design, options: TestingOptions) -> Found:
    """Return intervals by resampling clusters, and a test by permuting them or by the jackknife."""
    ranges = [joint.range, *([] if joint.effect is None else [joint.effect.range])]
    draw = crossed_bootstrap if joint.crossed else bootstrap

    @cache
    def ends(level: float) -> Array:
        plan = msgspec.structs.replace(options.plan, level=level)
        return np.stack(draw(joint.sums, joint.statistics, plan, ranges))[:, 0]

    value = joint.statistics(joint.sums.sum(axis=(0, 1) if joint.crossed else 0))[0]
    ways = design.clustered_by
    method = options.interval
    if joint.crossed:
        method = method.removesuffix(", BCa")  # There is none of two ways; percentiles stand in for it.
    elif design.independent:
        method = method.removeprefix("cluster ")
    test = {} if measure.neutral is None else _tested(measure.neutral, joint, ways, options)
    return Found(value, ends, f"{method} ({ways})", test, joint.clusters)


def exact(measure: Share, joint: Joint, design: Design, options: TestingOptions) -> Found:
    """Return the exact interval and test of a share of rows that are independent."""
    n, hits = (int(total) for total in joint.sums.sum(axis=(0, 1, 2)))
    value = joint.statistics(joint.sums.sum(axis=0))[0]

    def ends(level: float) -> Array:
        if not n:
            return np.full((2, len(value)), np.nan)
        found = measure.scale * np.array(exact_interval(hits, n, level))
        return np.stack([found, measure.turned(found)][: len(value)], axis=-1)

    test: dict[str, Any] = {}
    if n and measure.neutral is not None and 0 < measure.neutral < measure.scale:
        p = max(binomial_test(hits, n, measure.neutral / measure.scale), LEAST_P)
        test = {"test": f"{BINOMIAL}, {design.row}s", "statistic": float(hits), "p": p}
    return Found(value, ends, f"{EXACT}, {design.row}s", test, None)


def _tested(neutral: float, joint: Joint, ways: str, options: TestingOptions) -> dict[str, Any]:
    recipe, sums = joint.recipe, joint.sums
    if recipe is not None and not joint.crossed and recipe.deviations is not None:
        about = np.stack([sums[..., 0], recipe.deviations(sums)], axis=-1)
        p = flip_test(about, options.plan)[0, 0]
        return tested(f"sign-flip permutation ({ways})", p, joint.clusters[0], options)
    if recipe is not None and not joint.crossed and recipe.swaps:
        p = swap_test(sums, lambda totals: joint.value(totals)[..., None], options.plan)[0, 0]
        return tested(f"permutation of the two sides ({ways})", p, joint.clusters[0], options)
    return _studentised(neutral, joint, ways)


def _studentised(neutral: float, joint: Joint, ways: str) -> dict[str, Any]:
    """Return a t test from the jackknife: it is the test whose interval the jackknife gives."""

    def alone(totals: Array) -> Array:
        return joint.value(totals)[..., None]

    variance, freedom = (crossed_jackknife if joint.crossed else jackknife)(joint.sums, alone)
    value = alone(joint.sums.sum(axis=(0, 1) if joint.crossed else 0))
    low, _ = t_ends(value, variance, 0.95, freedom)
    if not math.isfinite(low[0, 0]):
        return {}
    t = float((value[0, 0] - neutral) / np.sqrt(variance[0, 0]))
    p = max(2 * float(t_sf(abs(t), freedom[0, 0])), LEAST_P)
    return {"test": f"t test, jackknife ({ways})", "statistic": t, "p": min(p, 1.0)}


def _near(measure: DeclaredMeasure, found: Found, options: TestingOptions) -> dict[str, Any]:
    """Return whether the value is shown to be near neutral, as facts; a margin is in per cent, as such measures are."""
    size = getattr(options, "margin", None)
    if size is None or measure.neutral is None or measure.unit != "%" or not np.isfinite(found.value[0]):
        return {}
    ends = np.stack([found.ends(level)[:, 0] for level in (1 - 2 * options.alpha, 1 - options.alpha)])
    return equivalence_facts(ends, Margin(size, options.alpha, measure.neutral))


def _effect(joint: Joint, found: Found, options: TestingOptions) -> dict[str, Any]:
    if joint.effect is None or number(found.value[1]) is None:
        return {}
    value = float(found.value[1])
    low, high = (number(end) for end in found.ends(options.level)[:, 1])
    return {"effect": value, "effect_name": joint.effect.name, "effect_low": low, "effect_high": high}


def _bounds(joint: Joint, chosen: Sequence[Chosen], value: float | None, missing: dict[str, int]) -> dict[str, Any]:
    found: Bounds = (None, None) if missing or value is None else (value, value)
    if joint.recipe is not None and missing:
        found = joint.recipe.bounds(chosen[0].sample)
    return {"bound_low": found[0], "bound_high": found[1]}


def _caveats(found: Found, value: float | None, low: float | None) -> dict[str, Any]:
    if value is None:
        return undefined("no readable row, or the statistic is undefined for them")
    if found.clusters is None:
        return {}
    clusters, fewest = found.clusters
    return {"caveats": interval_caveats(clusters if low is not None else fewest, low)}
