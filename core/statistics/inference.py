"""From the sums of a declared measure to its estimate: interval, test, effect size, bounds and caveats.

One way of clustering is drawn, flipped, swapped or relabelled whole; several ways take the jackknife over all
(`facets.infer_over`), but for those that have a single level. Where a permutation is valid it gives
p; else p is that of the jackknife's variance with Student's t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..contracts.estimates import Caveat, Estimate
from ..contracts.words import MARGIN
from .declaration import Declaration
from .declared_rows import Chosen, Part
from .estimates import (
    POINTS,
    TestingOptions,
    interval_caveats,
    merge,
    number,
    undefined,
)
from .estimates import tested as tested_by
from .facets import OVER, FacetOptions, Inference, Permutation, infer_over, without
from .intervals import LEAST_P, Array, Bounds, Flags, binomial_test, exact_interval, t_ends, t_test
from .joint import Joint, joint_of
from .measures import DeclaredMeasure, Share, SummedMeasure
from .moderation import Spread, moderated, with_spread
from .multiway import multiway_jackknife
from .recipes import Sample, Test
from .resampling import Resampling, bootstrap, flip_test, jackknife, label_test, swap_test
from .summing import Summed, counted_rows, together

EXACT, BINOMIAL = "exact (Clopper-Pearson)", "exact binomial"


class Found(NamedTuple):
    """What the sums say."""

    value: Array
    """Shape (statistics,), as of `Joint.statistics`."""
    ends: Callable[[float], Array]
    """The ends of intervals at a level, shape (2, statistics)."""
    method: str
    test: dict[str, Any]
    clusters: int | None
    """None where every row is independent."""
    caveats: tuple[Caveat, ...]
    over: str
    """What the inference generalises over."""


def estimate(measure: DeclaredMeasure, whole: Part, design: Declaration, options: TestingOptions) -> Estimate:
    """Return the estimate of a measure in a group, before any correction."""
    return estimates_of(measure, [whole], design, options, {})[0]


Known = dict[str, "list[tuple[list[int], list[Summed], Joint, list[Found]]]"]
"""What was found of a measure, for those that repeat it: places of groups, their rows, their sums, what these say."""


def estimates_of(
    measure: DeclaredMeasure, wholes: Sequence[Part], design: Declaration, options: TestingOptions, known: Known
) -> list[Estimate]:
    """Return the estimates of a measure by group. Groups with clusters of one pattern are resampled together."""
    if measure.neutral is not None and not measure.tested:
        silent = msgspec.structs.replace(measure, neutral=None)
        return [one.replace(neutral=measure.neutral) for one in estimates_of(silent, wholes, design, options, known)]
    again = known.get(measure.repeats) if isinstance(measure, SummedMeasure) else None
    known[measure.key] = again or [*_found(measure, wholes, design, options)]
    made = {
        place: _estimate(measure, group, joint, unit, found[unit], design, options)
        for places, groups, joint, found in known[measure.key]
        for unit, (place, group) in enumerate(zip(places, groups, strict=True))
    }
    return [made[place] for place in sorted(made)]


def _found(
    measure: DeclaredMeasure, wholes: Sequence[Part], design: Declaration, options: TestingOptions
) -> Iterator[tuple[list[int], list[Summed], Joint, list[Found]]]:
    bases = design.bases(measure)
    every = [Summed.of(bases, whole.of(measure, design)) for whole in wholes]
    bundles = [(places, [every[place] for place in places]) for places in together(every)]
    joints = [joint_of(measure, groups, design) for _, groups in bundles]
    spreads = _moderated(measure, [groups for _, groups in bundles], joints, options)
    for (places, groups), joint, spread in zip(bundles, joints, spreads, strict=True):
        if isinstance(measure, Share) and not joint.ways and not measure.average:
            found = [exact(measure, joint, unit, design, options) for unit in range(len(groups))]
        elif groups[0].part.unknown and not joint.ways:
            found = _alone(joint)
        else:
            found = resampled(measure, joint, design, options, spread)
        yield places, groups, joint, found


def _moderated(
    measure: DeclaredMeasure, bundles: Sequence[Sequence[Summed]], joints: Sequence[Joint], options: TestingOptions
) -> list[Spread | None]:
    """Return the moderated variances of a measure's groups, where these are asked for; each family has its own."""
    asked = isinstance(options, FacetOptions) and options.moderated and measure.neutral is not None
    if not asked or not all(len(joint.ways) > 1 for joint in joints):
        return [None] * len(joints)
    spreads = [multiway_jackknife(joint.read, partial(joint.statistics, drawn=True)) for joint in joints]
    families = [[tuple(group.part.group.get(name) for name in measure.apart) for group in groups] for groups in bundles]
    return [*moderated(spreads, families)]


def _estimate(
    measure: DeclaredMeasure,
    group: Summed,
    joint: Joint,
    unit: int,
    found: Found,
    design: Declaration,
    options: TestingOptions,
) -> Estimate:
    part = group.part
    n, missing = counted_rows(group.chosen)
    value = number(found.value[0])
    low, high = (number(end) for end in found.ends(options.level)[:, 0])
    own = measure.test if isinstance(measure, SummedMeasure) else None
    test = found.test if own is None else _own_test(own, joint.totals[unit], group.chosen[0].sample, found.test)
    told = {} if joint.recipe is None else joint.recipe.told(joint.totals[unit])
    neutral = measure.neutral
    if joint.recipe is not None and joint.recipe.neutral is not None:
        neutral = number(joint.recipe.neutral(joint.totals[[unit]])[0])
    over = {OVER: found.over} if low is not None or test else {}
    unknown = {f"{design.called}s_without_{name}": count for name, count in part.unknown.items()}
    row = {
        "metric": measure.name,
        "group": {**part.group, **measure.group},
        "value": value,
        "neutral": measure.neutral if neutral is None else neutral,
        "unit": measure.unit,
        "low": low,
        "high": high,
        "level": options.level,
        "interval": found.method if low is not None else "",
        "n": n,
        "clusters": found.clusters,
        "missing": missing,
        "topic": measure.topic,
        **_effect(joint, found, options),
        **_bounds(joint, group.chosen, value, missing),
    }
    notes = (
        {"facts": {**measure.facts, **unknown}, "note": measure.note},
        _caveats(measure, found, value, low, test),
        test,
        _margin(measure, found, options),
        {"facts": over},
        told,
    )
    return Estimate.from_flat(**row | merge(*notes))


def resampled(
    measure: DeclaredMeasure, joint: Joint, design: Declaration, options: TestingOptions, spread: Spread | None = None
) -> list[Found]:
    """Return intervals and tests over clusters: resampled and permuted one way, or by the jackknife over several."""
    ways, recipe, cells = joint.ways or (f"{design.called}s",), joint.recipe, joint.read
    value, neutral = joint.statistics(joint.totals), measure.neutral or 0.0
    stated = measure.intervals if isinstance(measure, SummedMeasure) else None
    # A jackknife that was asked for tests, too; a permutation then stands in where nothing varies.
    test = None if measure.neutral is None else _permutation(joint, options)
    drawn = partial(joint.statistics, drawn=True)
    point = recipe is not None and recipe.point

    @cache
    def inferred(level: float) -> Inference:
        # The p of a permutation has no level.
        permutation = test if level == options.level and stated != "jackknife" else None
        at = msgspec.structs.replace(options.plan, method=stated or options.intervals, level=level)
        if point:
            return without(ways, cells, drawn, at)
        plain = infer_over(ways, cells, drawn, joint.ranges, at, neutral, permutation)
        return plain if spread is None else with_spread(plain, drawn(cells.totals), spread, neutral, joint.ranges)

    @cache
    def ends(level: float) -> Array:
        limits = np.stack([inferred(level).low, inferred(level).high])
        if recipe is not None and recipe.levels is not None:
            limits = _holding(value[:, : limits.shape[-1]], limits)
        if joint.aside:
            limits = np.insert(limits, 1, _holding(value[:, 1], _effect_ends(joint, options, level)), axis=-1)
        return limits

    @cache
    def studentised() -> list[dict[str, Any]]:
        return _studentised(neutral, joint, ways[0])

    def tested(unit: int) -> dict[str, Any]:
        if measure.neutral is None or point:
            return {}
        found = _tested(joint, unit, whole, options)
        if not found and len(ways) == 1:
            found = studentised()[unit]
        if not found and stated == "jackknife" and test is not None and len(ways) == 1:
            p = float(test.p(joint.sums[:, [unit]])[0, 0])
            found = tested_by(f"{test.name} ({ways[0]})", p, whole.counted(unit), options)
        return found

    def found(unit: int) -> Found:
        method = whole.method(unit) if joint.ways else whole.method(unit).removeprefix("cluster ")
        none = () if point else interval_caveats(int(whole.levels[unit].max(initial=0)), None)
        return Found(
            value=value[unit],
            ends=lambda level: ends(level)[:, unit],
            method=method,
            test=tested(unit),
            clusters=whole.counted(unit),
            caveats=whole.caveats(unit) if np.isfinite(whole.low[unit, 0]) else none,
            over=" x ".join(whole.over(unit)) if joint.ways else design.called,
        )

    whole = inferred(options.level)
    return [found(unit) for unit in range(len(value))]


def _holding(value: Array, ends: Array) -> Array:
    """Return ends (2, ...) of intervals that hold the estimate: replicates of what cannot be below 0 lie above it."""
    return np.where([ends[0] > value, ends[1] < value], value, ends)


def _effect_ends(joint: Joint, options: TestingOptions, level: float) -> Array:
    """Return the ends (2, units) of the effect size's own interval, from the percentile bootstrap."""
    effect = joint.effect
    assert effect is not None and effect.resamples is not None
    if not effect.resamples or joint.cells.facets > 1:  # an interval over one facet would be too narrow for several
        return np.full((2, joint.sums.shape[-3]), np.nan)
    plan = Resampling(effect.resamples, options.seed, level)
    low, high = bootstrap(joint.sums, lambda totals: effect.of(totals)[..., None], plan)
    return np.stack([low[:, 0], high[:, 0]])


def exact(measure: Share, joint: Joint, unit: int, design: Declaration, options: TestingOptions) -> Found:
    """Return the exact interval and test of a share of rows that are independent."""
    total = joint.totals[unit].sum(axis=0)
    n, hits = int(total[0]), int(total[1])
    decided = n if measure.tie is None else int(total[2])
    value = joint.statistics(joint.totals)[unit]

    def ends(level: float) -> Array:
        if not n:
            return np.full((2, len(value)), np.nan)
        found = measure.scale * np.array(exact_interval(hits, n, level))
        judged = found if measure.tie is None else np.full(2, np.nan)
        if measure.tie is not None and decided:
            judged = measure.scale * np.array(exact_interval(hits, decided, level))
        effect = [] if joint.effect is None else [measure.sized(judged)]
        return np.stack([found, *effect, judged][: len(value)], axis=-1)

    test: dict[str, Any] = {}
    if decided and measure.neutral is not None and 0 < measure.neutral < measure.scale:
        p = max(binomial_test(hits, decided, measure.neutral / measure.scale), LEAST_P)
        of = f"{'decided ' if measure.tie is not None else ''}{design.called}s"
        test = {"test": f"{BINOMIAL}, {of}", "statistic": float(hits), "p": p}
        if decided < n:
            test["facts"] = {"ties": n - decided}
    return Found(value, ends, f"{EXACT}, {design.called}s", test, None, (), design.called)


def _alone(joint: Joint) -> list[Found]:
    """Return the values without interval and test, where no cluster is known."""
    values = joint.statistics(joint.totals)
    none = np.full((2, joint.width), np.nan)
    return [Found(value, lambda level: none, "", {}, None, (), "") for value in values]


def _own_test(test: Test, totals: Array, sample: Sample, other: dict[str, Any]) -> dict[str, Any]:
    """Return a paper's own test; what few clusters keep from being significant, by the `other`, stays."""
    statistic, p = test.of(sample.values[sample.there] if test.of_rows else totals)
    if p is None or not np.isfinite(p):
        return {}
    return {**other, "test": test.name, "statistic": statistic, "p": max(float(p), LEAST_P)}


def _tested(joint: Joint, unit: int, found: Inference, options: TestingOptions) -> dict[str, Any]:
    if not (whole := found.tested(unit, _column(joint), options)):
        return {}
    if found.t is None or found.permuted[unit, _column(joint)]:
        return {**whole, "statistic": number(joint.value(joint.totals[[unit]])[0])}
    return {**whole, "statistic": float(found.t[unit, 0])}


def _column(joint: Joint) -> int:
    """Return which of the statistics that are drawn together is tested."""
    return joint.width - joint.aside - 1 if joint.tested is not joint.value else 0


def _permutation(joint: Joint, options: TestingOptions) -> Permutation | None:
    """Return the permutation test of one way of clustering, where one is valid."""
    recipe, value = joint.recipe, lambda totals: joint.value(totals)[..., None]
    if recipe is None:
        return None
    if recipe.permuted is not None:
        return recipe.permuted(options.plan)
    if (deviations := recipe.deviations) is not None:

        def flipped(sums: Array) -> Array:
            # Sums of several levels that weigh alike are one; it is undefined where a level is.
            counts, gaps = sums[..., 0].sum(axis=-1, keepdims=True), deviations(sums)
            p = flip_test(np.stack([counts, gaps], axis=-1), options.plan)[:, :1]
            return np.where(np.isfinite(gaps.sum(axis=(0, 2)))[:, None], p, np.nan)

        return Permutation("sign-flip permutation", flipped, [_column(joint)])
    if recipe.swaps:
        swapped = partial(swap_test, statistics=value, plan=options.plan)
        return Permutation("permutation of the two sides", swapped, [_column(joint)], flips=False)
    if recipe.levels is not None:
        return Permutation(
            "permutation of the groups",
            lambda sums: np.stack([label_test(own, value, options.plan) for own in np.moveaxis(sums, 1, 0)]),
            [_column(joint)],
            flips=False,
        )
    return None


def _studentised(neutral: float, joint: Joint, ways: str) -> list[dict[str, Any]]:
    """Return t tests from the jackknife: it is the test whose interval the jackknife gives."""

    def alone(totals: Array) -> Array:
        return joint.tested(totals)[..., None]

    variance, freedom = jackknife(joint.sums, alone)
    value = alone(joint.totals)
    low, high = t_ends(value, variance, 0.95, freedom)
    known: Flags = np.isfinite(low[:, 0]) & np.isfinite(high[:, 0])
    t, p = t_test(value - neutral, variance, freedom)[..., 0]
    test = f"t test, jackknife ({ways})"
    return [
        {"test": test, "statistic": float(t[unit]), "p": float(p[unit])} if known[unit] else {}
        for unit in range(len(t))
    ]


def _margin(measure: DeclaredMeasure, found: Found, options: TestingOptions) -> dict[str, Any]:
    """Return the margin around neutral as a fact; that of the option is in percentage points."""
    given = getattr(options, "margin", None)
    size = measure.margin if given is None or measure.unit not in PERCENT else given * PERCENT[measure.unit]
    if size is None or measure.neutral is None or not np.isfinite(found.value[0]):
        return {}
    return {"facts": {MARGIN: size}}


PERCENT = {"%": 1.0, POINTS: 1.0, "share": 0.01}
"""Units of measures that can be near neutral, and what a percentage point is in them."""


def _effect(joint: Joint, found: Found, options: TestingOptions) -> dict[str, Any]:
    if joint.effect is None or number(found.value[1]) is None:
        return {}
    value = float(found.value[1])
    low, high = (number(end) for end in found.ends(options.level)[:, 1])
    return {"effect": value, "effect_name": joint.effect.name, "effect_low": low, "effect_high": high}


def _bounds(joint: Joint, chosen: Sequence[Chosen], value: float | None, missing: dict[str, int]) -> dict[str, Any]:
    found: Bounds = (None, None) if missing or value is None else (value, value)
    if joint.recipe is not None and (missing or joint.recipe.ranged):
        found = joint.recipe.bounds(chosen[0].sample)
    return {"bound_low": found[0], "bound_high": found[1]}


def _caveats(
    measure: DeclaredMeasure, found: Found, value: float | None, low: float | None, test: dict[str, Any]
) -> dict[str, Any]:
    if value is None:
        return undefined("no readable row, or the statistic is undefined for them")
    if low is None and not found.method:
        untested = (Caveat.UNTESTED,) if measure.neutral is not None and not test else ()
        return {"caveats": untested, "note": "there is no interval, for the clusters are not known"}
    return {"caveats": found.caveats}
