"""How many more templates, words or faces would decide, the run being its own pilot: the rule of reports and gates.

The arithmetic is that of `prejudge plan --pilot`, from the units that are tested. Of a
metric that states no units, the width of the interval stands for them. Either way a true difference is found with 80 %
power. A run of a part of its study says what the whole study is expected to find, as a range, if its units can tell;
only a run of all of it can say that the study cannot decide.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..contracts import FACET, factors_of, last_facet
from ..contracts.estimates import Caveat, Estimate
from ..contracts.sizes import POINTS, SHARE
from ..contracts.words import NEEDED, TIMES, counted, listed, number
from ..scoring.planned_units import compared_units
from ..scoring.score import Scores
from ..scoring.whole_study import WholeStudy
from ..scoring.worded import ALPHA
from ..statistics.facets import OVER, WORDS
from ..statistics.smallest_effect import PILOT, PLANNED, SmallestEffectOptions, smallest_effects_of

LOG = logging.getLogger(__name__)
CLUSTERS, ANSWERS = "clusters", "answer"
NAMES = {**WORDS, "people": "groups of people", CLUSTERS: "independent groups of answers"}
"""What the levels of a facet are called; else the facet's own name with an s."""
UNNAMED = (CLUSTERS, ANSWERS)
"""Facets that no factor names: how many of them a study has is not known."""
MOST = 1_000_000
"""More levels than anybody would write."""
POWER = 0.8
"""That of `smallest_effects_of`."""
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


class Forecast(NamedTuple):
    """Smallest true difference that the whole study is expected to find with 80 % power, from a run of a part of it."""

    questions: int
    """Of the whole study."""
    answers: int
    """Of the part."""
    low: float | None = None
    high: float | None = None
    """None: the part does not tell."""


class Need(msgspec.Struct, frozen=True):
    """What a test found little enough to be undecided about, and how many levels decide it."""

    detectable: float | None
    """Smallest true difference that this run finds with 80 % power."""
    facets: tuple[Facet, ...]
    times: float
    """How many times as many levels of every facet find it; 0: none do."""
    part: bool = False
    """Whether the run asked a part of its study."""
    forecast: Forecast | None = None
    """What the whole study is expected to find; None where the run is of all of it, or its size is not known."""


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
    effects: list[Estimate] = []
    found: list[Need] = []
    try:
        if scores is not None and not paired:
            found, effects = _needs(scores, estimates, target)
    except Exception as error:  # a third party's `units`: no fault of theirs stands before a verdict
        LOG.debug("no power of %s: %s", estimates[0].metric, error)
    need, wide = _most(found), _most(_by_intervals(scores, estimates, target))
    # The power of a difference of half an interval is about one half. Units that promise more than that have missed
    # something that the interval knows, such as one level of a facet in which all differ.
    reach = max((e.high - e.low for e in estimates if e.low is not None and e.high is not None), default=0.0) / 2
    promises = need is not None and need.detectable is not None and need.detectable < reach
    chosen = wide if need is None or (promises and wide is not None) else need
    whole = scores.whole if scores is not None else None
    if chosen is None or whole is None or not whole.questions:
        return chosen
    return msgspec.structs.replace(chosen, forecast=_forecast(whole, effects))


def _most(needs: Iterable[Need]) -> Need | None:
    """Return the need that is the least well known, or the greatest."""
    return max(needs, key=lambda need: (need.detectable is None, need.detectable or 0.0), default=None)


def _by_intervals(scores: Scores | None, estimates: Sequence[Estimate], target: float) -> list[Need]:
    part = scores is not None and scores.whole is not None
    needs = (by_interval(e, target) for e in estimates)
    return [msgspec.structs.replace(need, part=part) for need in needs if need is not None]


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


def _needs(scores: Scores, estimates: Sequence[Estimate], target: float) -> tuple[list[Need], list[Estimate]]:
    """Return what the tests of each group need, by the units that they compare, and what the whole study finds."""
    measure, wanted = estimates[0].metric, [e.group for e in estimates]
    name = next((n for n, every in scores.estimates.items() if any(e.metric == measure for e in every)), "")
    if name not in scores.metrics:
        return [], []
    _, options = scores.metrics[name]
    units = _among(_once(scores, name, _units_of), measure, wanted)
    if units is None or units.is_empty() or not _distinguish(units, wanted, scores.asked.columns):
        return [], []
    alpha = float(getattr(options, "alpha", ALPHA))

    def finds(planned: pl.DataFrame, effects: Mapping[str, float] | None = None) -> list[Estimate]:
        roles = [planned.with_columns(role=pl.lit(PLANNED)), units.with_columns(role=pl.lit(PILOT))]
        options = SmallestEffectOptions(alpha=alpha, effects=dict(effects or {}))
        return smallest_effects_of(pl.concat(roles, how="diagonal_relaxed"), options)

    # What was not answered is no part of a run of this size.
    answered = units.filter(pl.col("value").is_not_null())
    effects = finds(units if answered.is_empty() else answered, {measure: target})
    needs = [
        _need(e, _within_group(answered, e.group), scores)
        for e in effects
        if any(f.startswith(NEEDED) for f in e.facts)
    ]
    known = scores.whole is not None and scores.whole.questions
    planned = _among(_once(scores, name, _planned_of), measure, wanted) if known else None
    larger = [] if planned is None or planned.is_empty() else finds(planned)
    # The first test of a group is that of its claim; a second one of crossed facets takes the rows for all there are.
    first = {_key(e): e for e in reversed(larger)}.values()
    return [_renamed(need, estimates) for need in needs], list(first)


def _once(scores: Scores, name: str, make: Callable[[Scores, str], pl.DataFrame | None]) -> pl.DataFrame | None:
    """Return the units of a metric, made at their first use."""
    if (make, name) not in scores.kept:
        scores.kept[make, name] = make(scores, name)
    units: pl.DataFrame | None = scores.kept[make, name]
    return units


def _among(units: pl.DataFrame | None, measure: str, groups: Sequence[Mapping[str, Any]]) -> pl.DataFrame | None:
    """Return the units of a measure in some groups: a factor that their estimates do not have is null."""
    if units is None:
        return None
    factors = factors_of(units)
    return units.filter(pl.col("metric") == measure, pl.any_horizontal(_within(factors, group) for group in groups))


def _distinguish(units: pl.DataFrame, groups: Sequence[Mapping[str, Any]], factors: Sequence[str]) -> bool:
    """Say whether the units differ by each factor of the trials that a group names; else they are those of more."""
    restricting = {name for group in groups for name in group if name in factors}
    return all(name in units.columns and units[name].null_count() < units.height for name in restricting)


def _within_group(units: pl.DataFrame, group: Mapping[str, Any]) -> pl.DataFrame:
    return units.filter(*(pl.col(name) == level for name, level in group.items()))


def _key(e: Estimate) -> tuple[Any, ...]:
    return e.metric, tuple(sorted(e.group.items()))


def _planned_of(scores: Scores, name: str) -> pl.DataFrame | None:
    """Return the units of the whole study; None where they follow from answers, or are asked more than in the part."""
    assert scores.whole is not None
    if scores.whole.thinned:
        return None
    found = compared_units(*scores.metrics[name], scores.whole.design)
    if found is None or not found.counted:
        return None
    return found.units.filter(pl.col("role") == PLANNED).drop("role")


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


def _need(effect: Estimate, units: pl.DataFrame, scores: Scores) -> Need:
    needed = {f.removeprefix(NEEDED): int(str(n)) for f, n in effect.facts.items() if f.startswith(NEEDED)}
    facets = []
    for name, count in needed.items():
        column = f"{FACET}{name}" if f"{FACET}{name}" in units.columns else last_facet(units)
        # The design counts those of the smaller side; what two sides do not share, each needs.
        now, side = units[column].n_unique(), min(part.n_unique() for part in _sides(units, column))
        facets.append(Facet(name, now, math.ceil(count * now / side)))
    times: Any = effect.facts.get(TIMES, 0)
    return Need(effect.value, tuple(facets), float(times), scores.whole is not None)


def _forecast(whole: WholeStudy, effects: Sequence[Estimate]) -> Forecast:
    """Return what the whole study is expected to find in the group of which it is expected to find the least."""
    forecast = Forecast(whole.questions, whole.part.recorded(whole.part.stages[0].name))
    ends = [(e.high, e.low) for e in effects if e.low is not None and e.high is not None]
    if not ends or len(ends) < len(effects):
        return forecast
    high, low = max(ends)
    return forecast._replace(low=low, high=high)


def _sides(units: pl.DataFrame, column: str) -> list[pl.Series]:
    return [part[column] for part in units.partition_by("sign")]


def in_words(need: Need, of: Estimate, target: float, *, limit: bool, able: bool = True) -> str:
    """Return the need as sentences.

    `limit`: the target is the limit of the question; else it is the value that was found. `able`: whether a test
    of this many can be significant at all; else what it would find is left out.
    """
    aim = f"To find {distance(of, target)}{', the limit' if limit else ', as much as was found'}"
    return " ".join(filter(None, [_finds(need, of) if able else "", advice(need, of, target, aim)]))


def advice(need: Need, of: Estimate, target: float, aim: str) -> str:
    """Return as sentences that begin with an `aim` what the user can do, or that this study cannot; empty: not known.

    Such as `To find 5 percentage points, it takes about 631 templates (now 60).` Of a part of a study it is what the
    whole study is expected to find.
    """
    if need.forecast is not None:
        return _expected(need.forecast, of, target, aim)
    takes = _takes(need)
    if not takes:
        return ""
    if need.part or not need.facets or any(f.name in UNNAMED for f in need.facets):
        return f"{aim}, it takes {takes}."
    has = listed([f"{f.now:,} {named(f.name)}" for f in need.facets])
    return (
        f"{aim}, it would take {takes}. The whole study, which was asked, has {has}: it cannot decide this; a study "
        "with more of them could."
    )


def _takes(need: Need) -> str:
    """Return how many levels it takes; empty where that is not known."""
    if ways := [f for f in need.facets if f.now < f.needed <= MOST]:
        others = " with the others as they are" if len(need.facets) > 1 else ""
        return f"about {listed([f'{f.needed:,} {named(f.name)} (now {f.now:,})' for f in ways], 'or')}{others}"
    if 1 < need.times <= MOST:
        times = f"{need.times:,.0f}" if need.times >= 10 else f"{need.times:.1f}"
        return f"about {times} times as many {listed([f'{named(f.name)} (now {f.now:,})' for f in need.facets])}"
    if need.times > MOST or (need.times == 0 and not any(f.needed for f in need.facets)):
        return f"far more {listed([named(f.name) for f in need.facets])} than anybody could ask"
    return ""


def _expected(forecast: Forecast, of: Estimate, target: float, aim: str) -> str:
    """Return what the whole study is expected to find, and whether that is enough."""
    whole = f"the whole study ({counted(forecast.questions, 'question')})"
    low, high = forecast.low, forecast.high
    if low is None or high is None:
        answers = counted(forecast.answers, "answer")
        return (
            f"{aim}, {whole} may or may not be enough: the {answers} of this part do not tell. Ask a larger part, or "
            "the whole study."
        )
    if low >= _reach(of):
        finds = "is not expected to find even the largest possible difference with 80 % power"
    elif high >= _reach(of):
        finds = f"is expected to find differences of {distance(of, low)} at best, with 80 % power"
    else:
        finds = f"is expected to find differences of {_between(of, low, high)} or more with 80 % power"
    return f"{aim}, {whole} {_enough(low, high, target)}: it {finds}."


def _enough(low: float, high: float, target: float) -> str:
    if high <= target:
        return "is expected to be enough"
    return "may be enough" if low <= target else "is expected to be too small"


def _between(of: Estimate, least: float, most: float) -> str:
    """Return the range of a forecast in words, such as `3.2 to 5.0 percentage points`."""
    low, high = (distance(of, end) for end in (least, most))
    if low == high:
        return f"about {low}"
    return f"{low.partition(' ')[0]} to {high}"


def _finds(need: Need, of: Estimate) -> str:
    if need.detectable is None:
        return ""
    if need.detectable >= _reach(of):
        return "A run of this size finds no difference with 80 % power, not even the largest possible one."
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
    return listed(list(dict.fromkeys(map(named, facets))), joint)


def named(facet: str) -> str:
    """Return what the levels of a facet are called."""
    if len(ways := facet.split(" x ")) > 1:
        return f"{listed([*map(named, ways)])} each"
    return NAMES.get(facet, f"{facet.replace('_', ' ')}s")
