"""How many more templates, words or faces would decide, the run being its own pilot: the rule of reports and gates.

The arithmetic is that of `prejudge plan --pilot`: the metric `smallest-effect`, from the units that are tested. Of a
metric that states no units, the width of the interval stands for them. Either way a true difference is found with 80 %
power.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any

import msgspec
import polars as pl

from ..contracts.estimates import Estimate
from ..contracts.options import build_options
from ..contracts.sizes import POINTS, SHARE
from ..contracts.words import NEEDED, TIMES, number
from ..scoring.planned_units import PILOT, PLANNED
from ..scoring.score import ALPHA, SMALLEST, Scores
from ..statistics.facets import WORDS

LOG = logging.getLogger(__name__)
CLUSTERS, ANSWERS = "clusters", "answer"
NAMES = {**WORDS, "people": "groups of people", CLUSTERS: "independent units"}
"""What the levels of a facet are called; else the facet's own name with an s."""
MOST = 1_000_000
"""More levels than anybody would write."""
POWER = 0.8
"""That of the metric `smallest-effect`."""
NORMAL = NormalDist()


class Need(msgspec.Struct, frozen=True):
    """What a test found little enough to be undecided about, and how many levels decide it."""

    detectable: float | None
    """Smallest true difference that this run finds with 80 % power."""
    facets: tuple[tuple[str, int, int], ...]
    """By facet: its name, its levels now, and how many find the target with the others as they are (0: none do)."""
    times: float
    """How many times as many levels of every facet find it; 0: none do."""


def need_of(scores: Scores | None, estimates: Sequence[Estimate], target: float) -> Need | None:
    """Return what the least well known of some estimates of one measure needs to find a difference of `target`.

    None where nothing is known of the spread of its units.
    """
    try:
        found = _needs(scores, estimates, target) if scores is not None else []
    except Exception as error:  # a third party's `units`: no fault of theirs stands before a verdict
        LOG.debug("no power of %s: %s", estimates[0].metric, error)
        found = []
    need, wide = _most(found), _most(need for e in estimates if (need := by_interval(e, target)) is not None)
    # The power of a difference of half an interval is about one half. Units that promise more than that have missed
    # something that the interval knows, such as one level of a facet in which all differ.
    reach = max((e.high - e.low for e in estimates if e.low is not None and e.high is not None), default=0.0) / 2
    promises = need is not None and need.detectable is not None and need.detectable < reach
    return wide if need is None or (promises and wide is not None) else need


def _most(needs: Iterable[Need]) -> Need | None:
    """Return the need that is the least well known, or the greatest."""
    return max(needs, key=lambda need: (need.detectable is None, need.detectable or 0.0), default=None)


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
    facet = CLUSTERS if e.clusters else ANSWERS
    return Need(detectable, ((facet, now, math.ceil(min(times, MOST + 1) * now)),), times)


def _needs(scores: Scores, estimates: Sequence[Estimate], target: float) -> list[Need]:
    measure, wanted = estimates[0].metric, [e.group for e in estimates]
    name = next((n for n, every in scores.estimates.items() if any(e.metric == measure for e in every)), "")
    if scores.smallest is None or name not in scores.metrics:
        return []
    metric, options = scores.metrics[name]
    frame = scores.seen_by(metric)
    units = metric.designs(frame, options)
    units = metric.units(frame, options) if units is None or units.is_empty() else units
    if units is None or (units := units.filter(pl.col("metric") == measure)).is_empty():
        return []
    smallest = scores.smallest()()
    roles = pl.concat([units.with_columns(role=pl.lit(role)) for role in (PLANNED, PILOT)])
    stated = {"alpha": float(getattr(options, "alpha", ALPHA)), "effects": {measure: target}}
    effects = smallest.compute(roles, build_options(SMALLEST, type(smallest).options, stated))
    return [
        _need(e, units.filter(*(pl.col(name) == level for name, level in e.group.items())))
        for e in effects
        if any(e.group.items() <= group.items() for group in wanted) and any(f.startswith(NEEDED) for f in e.facts)
    ]


def _need(effect: Estimate, units: pl.DataFrame) -> Need:
    needed = {f.removeprefix(NEEDED): int(str(n)) for f, n in effect.facts.items() if f.startswith(NEEDED)}
    ways = units["ways"][0].split(" x ") if "ways" in units.columns and units["ways"][0] is not None else ()
    columns = dict(zip(ways, ("row", "cluster"), strict=False))
    facets = [(n, units[columns.get(n, "cluster")].n_unique(), levels) for n, levels in needed.items()]
    times: Any = effect.facts.get(TIMES, 0)
    return Need(effect.value, tuple(facets), float(times))


def in_words(need: Need, of: Estimate, target: float, *, small: bool) -> str:
    """Return the need as sentences.

    `small`: the target is the size that counts as small; else it is the value that was found.
    """
    aim = f"To find {distance(of, target)}{', the size that counts as small' if small else ', as much as was found'}"
    takes = takes_of(need)
    return " ".join(filter(None, [_finds(need, of), f"{aim}, it takes {takes}." if takes else ""]))


def takes_of(need: Need) -> str:
    """Return how many levels of which facets it takes, such as `about 631 templates (now 60)`; empty: none known."""
    ways = [f"about {needed:,} {named(f)} (now {now:,})" for f, now, needed in need.facets if now < needed <= MOST]
    if ways:
        return f"{' or '.join(ways)}{' with the others as they are' if len(need.facets) > 1 else ''}"
    if not 1 < need.times <= MOST:
        return ""
    every = " and ".join(f"{named(facet)} (now {now:,})" for facet, now, _ in need.facets)
    times = f"{need.times:,.0f}" if need.times >= 10 else f"{need.times:.1f}"
    return f"about {times} times as many {every}"


def _finds(need: Need, of: Estimate) -> str:
    if need.detectable is None:
        return ""
    reach = {POINTS: 100.0, SHARE: 1.0, "%": max(of.neutral or 0.0, 100 - (of.neutral or 0.0))}.get(of.unit, math.inf)
    if need.detectable >= reach:
        return "A run of this size finds no difference with 80 % power, however large it is."
    return f"A run of this size finds a true difference of {distance(of, need.detectable)} or more with 80 % power."


def distance(of: Estimate, size: float) -> str:
    """Return a distance from neutral in words, such as `5 percentage points`."""
    scaled = 100 * size if of.unit == SHARE else size
    unit = POINTS if of.unit in (SHARE, "%") else of.unit
    return f"{number(scaled, 0 if scaled.is_integer() else 1 if unit == POINTS else None)} {unit}".rstrip()


def named(facet: str) -> str:
    """Return what the levels of a facet are called."""
    return NAMES.get(facet, f"{facet.replace('_', ' ')}s")
