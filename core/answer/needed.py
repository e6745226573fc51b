"""How many more templates, words or faces would decide, the run being its own pilot: the rule of reports and gates.

The arithmetic is that of `prejudge plan --pilot`: the metric `smallest-effect`, from the units that are tested. Of a
metric that states no units, the width of the interval stands for them. Either way a true difference is found with 80 %
power. No more is advised than the study holds; where that is too little, it is said that this study cannot decide.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..contracts import DESIGN_COLUMNS, UNIT_COLUMNS
from ..contracts.estimates import Caveat, Estimate
from ..contracts.options import build_options
from ..contracts.sizes import POINTS, SHARE
from ..contracts.words import NEEDED, TIMES, number
from ..scoring.held import grown, levels_held
from ..scoring.planned_units import PILOT, PLANNED
from ..scoring.score import ALPHA, SMALLEST, Scores
from ..statistics.facets import OVER, WORDS

LOG = logging.getLogger(__name__)
CLUSTERS, ANSWERS = "clusters", "answer"
NAMES = {**WORDS, "people": "groups of people", CLUSTERS: "independent groups of answers"}
"""What the levels of a facet are called; else the facet's own name with an s."""
KNOWN = {*UNIT_COLUMNS, *DESIGN_COLUMNS}
"""Columns of units that are no factors."""
MOST = 1_000_000
"""More levels than anybody would write."""
POWER = 0.8
"""That of the metric `smallest-effect`."""
NORMAL = NormalDist()
UNKNOWN_SPREAD = frozenset({Caveat.NO_VARIATION, Caveat.ONE_CLUSTER})
"""Caveats of estimates whose units tell nothing of how much more would decide."""


class Facet(NamedTuple):
    """Something that more could be asked of, such as templates."""

    name: str
    now: int
    """Levels that were asked."""
    needed: int
    """How many find the target with the other facets as they are; 0: none do."""
    held: int | None = None
    """How many the whole study has; None where that is not known."""


class Need(msgspec.Struct, frozen=True):
    """What a test found little enough to be undecided about, and how many levels decide it."""

    detectable: float | None
    """Smallest true difference that this run finds with 80 % power."""
    facets: tuple[Facet, ...]
    times: float
    """How many times as many levels of every facet find it; 0: none do."""
    whole: float | None = None
    """Smallest true difference that the whole study finds; None where that is not known."""


def need_of(
    scores: Scores | None, estimates: Sequence[Estimate], target: float, *, paired: bool = False
) -> Need | None:
    """Return what the least well known of some estimates of one measure needs to find a difference of `target`.

    None where nothing is known of the spread of its units, such as where they all agree. `paired`: the estimates are
    differences of two runs, of which `scores` is one, so that its own units are not theirs.
    """
    estimates = [e for e in estimates if not UNKNOWN_SPREAD.intersection(e.caveats)]
    if not estimates:
        return None
    try:
        found = _needs(scores, estimates, target) if scores is not None and not paired else []
    except Exception as error:  # a third party's `units`: no fault of theirs stands before a verdict
        LOG.debug("no power of %s: %s", estimates[0].metric, error)
        found = []
    need, wide = _most(found), _most(_by_intervals(scores, estimates, target))
    # The power of a difference of half an interval is about one half. Units that promise more than that have missed
    # something that the interval knows, such as one level of a facet in which all differ.
    reach = max((e.high - e.low for e in estimates if e.low is not None and e.high is not None), default=0.0) / 2
    promises = need is not None and need.detectable is not None and need.detectable < reach
    return wide if need is None or (promises and wide is not None) else need


def _most(needs: Iterable[Need]) -> Need | None:
    """Return the need that is the least well known, or the greatest."""
    return max(needs, key=lambda need: (need.detectable is None, need.detectable or 0.0), default=None)


def _by_intervals(scores: Scores | None, estimates: Sequence[Estimate], target: float) -> list[Need]:
    found = []
    for e in estimates:
        if (need := by_interval(e, target)) is not None:
            (facet,) = need.facets
            held = _column_held(scores, facet.name, e)
            found.append(msgspec.structs.replace(need, facets=(facet._replace(held=held),)))
    return found


def _column_held(scores: Scores | None, name: str, e: Estimate) -> int | None:
    """Return how many levels of factors of this name the whole study has, of crossed ones of that which has fewest."""
    if scores is None or not set(ways := name.split(" x ")) <= set((asked := scores.asked).columns):
        return None
    held = [levels_held(scores.held, asked, asked[way], e.group) for way in ways]
    return None if None in held else min(one for one in held if one is not None)


def by_interval(e: Estimate, target: float) -> Need | None:
    """Return what an estimate needs by the width of its interval, which falls with the root of the number of clusters.

    The standard error is that of a normal interval of this width and level; None where there is no finite width.
    """
    now = e.clusters or e.n
    if e.low is None or e.high is None or not now or not target:
        return None
    width, outside = e.high - e.low, 1 - e.interval.level
    if not (math.isfinite(width) and width > 0 and 0 < outside < 1):
        return None
    reach = NORMAL.inv_cdf(1 - outside / 2)
    detectable = width / 2 / reach * (reach + NORMAL.inv_cdf(POWER))
    times = (detectable / target) ** 2
    over = str(e.facts.get(OVER) or "")
    name = over or CLUSTERS if e.clusters else ANSWERS
    return Need(detectable, (Facet(name, now, math.ceil(min(times, MOST + 1) * now)),), times)


def _needs(scores: Scores, estimates: Sequence[Estimate], target: float) -> list[Need]:
    measure, wanted = estimates[0].metric, [e.group for e in estimates]
    name = next((n for n, every in scores.estimates.items() if any(e.metric == measure for e in every)), "")
    if scores.smallest is None or name not in scores.metrics:
        return []
    metric, options = scores.metrics[name]
    if (kept := (need_of, name)) not in scores.kept:
        scores.kept[kept] = _units_of(scores, name)
    units: pl.DataFrame | None = scores.kept[kept]
    if units is None:
        return []
    factors = [column for column in units.columns if column not in KNOWN]
    units = units.filter(pl.col("metric") == measure, pl.any_horizontal(_within(factors, group) for group in wanted))
    if units.is_empty():
        return []
    smallest = scores.smallest()()
    alpha = {"alpha": float(getattr(options, "alpha", ALPHA))}

    def finds(planned: pl.DataFrame, pilot: pl.DataFrame, **stated: object) -> list[Estimate]:
        roles = [planned.with_columns(role=pl.lit(PLANNED)), pilot.with_columns(role=pl.lit(PILOT))]
        settings = build_options(SMALLEST, type(smallest).options, alpha | stated)
        return smallest.compute(pl.concat(roles), settings)

    found = [
        _need(e, units.filter(*(pl.col(name) == level for name, level in e.group.items())), scores, finds)
        for e in finds(units, units, effects={measure: target})
        if any(f.startswith(NEEDED) for f in e.facts)
    ]
    return [_renamed(need, estimates) for need in found]


def _renamed(need: Need, estimates: Sequence[Estimate]) -> Need:
    """Return the need with the study's own name of what a plan calls clusters, where all estimates have the same."""
    over = {str(e.facts.get(OVER) or "") for e in estimates}
    if len(over) > 1 or " x " in (name := over.pop()) or not name:
        return need
    facets = (facet._replace(name=name) if facet.name == CLUSTERS else facet for facet in need.facets)
    return msgspec.structs.replace(need, facets=tuple(facets))


def _units_of(scores: Scores, name: str) -> pl.DataFrame | None:
    metric, options = scores.metrics[name]
    frame = scores.seen_by(metric)
    units = metric.designs(frame, options)
    return metric.units(frame, options) if units is None or units.is_empty() else units


def _within(factors: Sequence[str], group: Mapping[str, Any]) -> pl.Expr:
    """Say of units whether they are those of a group: a factor that its estimates do not have is null."""
    return pl.all_horizontal(
        pl.lit(True), *(pl.col(name).is_null() | pl.col(name).eq(pl.lit(group.get(name))) for name in factors)
    )


def _need(
    effect: Estimate, units: pl.DataFrame, scores: Scores, finds: Callable[[pl.DataFrame, pl.DataFrame], list[Estimate]]
) -> Need:
    needed = {f.removeprefix(NEEDED): int(str(n)) for f, n in effect.facts.items() if f.startswith(NEEDED)}
    ways = units["ways"][0].split(" x ") if "ways" in units.columns and units["ways"][0] is not None else ()
    columns = {name: dict(zip(ways, ("row", "cluster"), strict=False)).get(name, "cluster") for name in needed}
    facets, held = [], {}
    for name, count in needed.items():
        levels = units[columns[name]]
        # The design counts those of the smaller side; what two sides do not share, each needs.
        now, side = levels.n_unique(), min(part.n_unique() for part in _sides(units, columns[name]))
        there = levels_held(scores.held, scores.asked, levels, effect.group)
        facets.append(Facet(name, now, math.ceil(count * now / side), there))
        held[columns[name]] = there
    whole = None
    sizes = {column: max(count, units[column].n_unique()) for column, count in held.items() if count is not None}
    if len(sizes) == len(held) and math.prod(sizes.values()) <= MOST:
        larger = finds(grown(units, sizes), units)
        whole = next((e.value for e in larger if (e.group, e.test.name) == (effect.group, effect.test.name)), None)
    times: Any = effect.facts.get(TIMES, 0)
    return Need(effect.value, tuple(facets), float(times), whole)


def _sides(units: pl.DataFrame, column: str) -> list[pl.Series]:
    return [part[column] for part in units.partition_by("sign")]


def in_words(need: Need, of: Estimate, target: float, *, small: bool, able: bool = True) -> str:
    """Return the need as sentences.

    `small`: the target is the size that counts as small; else it is the value that was found. `able`: whether a test
    of this many can be significant at all; else what it would find is left out.
    """
    aim = f"To find {distance(of, target)}{', the size that counts as small' if small else ', as much as was found'}"
    return " ".join(filter(None, [_finds(need, of) if able else "", advice(need, of, target, aim)]))


def advice(need: Need, of: Estimate, target: float, aim: str) -> str:
    """Return as sentences that begin with an `aim` what the user can do, or that this study cannot; empty: not known.

    Such as `To find 5 percentage points, it takes about 631 templates (now 60; the study has 700).`
    """
    ways = [f for f in need.facets if f.now < f.needed <= MOST]
    if able := [f for f in ways if f.held is None or f.needed <= f.held]:
        rest = " with the others as they are" if len(need.facets) > 1 else ""
        return f"{aim}, it takes {' or '.join(_way(f) for f in able)}{rest}."
    known = all(f.held is not None for f in need.facets)
    has = " and ".join(f"{f.held:,} {named(f.name)}" for f in need.facets if f.held is not None)
    whole = known and all((f.held or 0) <= f.now for f in need.facets)
    if known and need.whole is not None and need.whole <= target and not whole:
        return f"{aim}, all of this study is enough: {has}."
    enough = known and need.times > 1 and all(need.times * f.now <= (f.held or 0) for f in need.facets)
    would = "would take" if known and not enough else "takes"
    if ways and not enough:
        takes = f"{would} about {' or '.join(f'{f.needed:,} {named(f.name)}' for f in ways)}"
    elif 1 < need.times <= MOST:
        times = f"{need.times:,.0f}" if need.times >= 10 else f"{need.times:.1f}"
        every = " and ".join(f"{named(f.name)} (now {f.now:,})" for f in need.facets)
        takes = f"{would} about {times} times as many {every}"
    elif need.times > MOST or (need.times == 0 and not any(f.needed for f in need.facets)):
        takes = f"would take far more {' and '.join(named(f.name) for f in need.facets)} than anybody could ask"
    else:
        return ""
    if not known or enough:
        return f"{aim}, it {takes}{f'; the study has {has}' if enough else ''}."
    finds = need.whole is not None and not whole and need.whole < _reach(of)
    most = f", and finds {distance(of, need.whole or 0.0)} or more" if finds else ""
    asked = ", all of which were asked" if whole else most
    return (
        f"{aim}, it {takes}. The whole study has {has}{asked}: it cannot decide this; a study with more of them could."
    )


def _way(facet: Facet) -> str:
    holds = "" if facet.held is None else f"; the study has {facet.held:,}"
    return f"about {facet.needed:,} {named(facet.name)} (now {facet.now:,}{holds})"


def _finds(need: Need, of: Estimate) -> str:
    if need.detectable is None:
        return ""
    if need.detectable >= _reach(of):
        return "A run of this size does not find a true difference with 80 % power, however large it is."
    return f"A run of this size finds a true difference of {distance(of, need.detectable)} or more with 80 % power."


def _reach(of: Estimate) -> float:
    """Return the largest distance from neutral that there can be."""
    return {POINTS: 100.0, SHARE: 1.0, "%": max(of.neutral or 0.0, 100 - (of.neutral or 0.0))}.get(of.unit, math.inf)


def distance(of: Estimate, size: float) -> str:
    """Return a distance from neutral in words, such as `5 percentage points`."""
    scaled = 100 * size if of.unit == SHARE else size
    unit = POINTS if of.unit in (SHARE, "%") else of.unit
    return f"{number(scaled, 0 if scaled.is_integer() else 1 if unit == POINTS else None)} {unit}".rstrip()


def independent(e: Estimate, joint: str = "and") -> str:
    """Return what counts as independent in an estimate, in words, such as `templates and words`."""
    facets = str(e.facts.get(OVER) or CLUSTERS).split(" x ")
    return f" {joint} ".join(dict.fromkeys(map(named, facets)))


def named(facet: str) -> str:
    """Return what the levels of a facet are called."""
    if len(ways := facet.split(" x ")) > 1:
        return f"{' and '.join(map(named, ways))} each"
    return NAMES.get(facet, f"{facet.replace('_', ' ')}s")
