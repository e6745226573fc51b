"""How many more templates, words or faces would decide, with the run as its own pilot.

The arithmetic is that of `prejudge plan --pilot`: the metric `smallest-effect`, from the units that are tested.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from ..contracts.estimates import Estimate
from ..contracts.options import build_options
from ..contracts.words import NEEDED, TIMES, number
from ..scoring.planned_units import PILOT, PLANNED
from ..scoring.score import ALPHA, SMALLEST, Scores
from ..statistics.facets import WORDS
from .records import POINTS, SHARE

LOG = logging.getLogger(__name__)
CLUSTERS = "clusters"
NAMES = {**WORDS, "people": "groups of people", CLUSTERS: "independent units"}
"""What the levels of a facet are called; else the facet's own name with an s."""
MOST = 1_000_000
"""More levels than anybody would write."""


class Need(msgspec.Struct, frozen=True):
    """What a test found little enough to be undecided about, and how many levels decide it."""

    detectable: float | None
    """Smallest true difference that this run finds with 80 % power."""
    facets: tuple[tuple[str, int, int], ...]
    """By facet: its name, its levels now, and how many find the target with the others as they are (0: none do)."""
    times: float
    """How many times as many levels of every facet find it; 0: none do."""


def need_of(scores: Scores, estimates: Sequence[Estimate], target: float) -> Need | None:
    """Return what the least well known of some estimates of one measure needs to find a difference of `target`.

    None where the metric states no units, or nothing is known of their spread.
    """
    try:
        found = list(_needs(scores, estimates, target))
    except Exception as error:  # a third party's `units`: no fault of theirs stands before a verdict
        LOG.debug("no power of %s: %s", estimates[0].metric, error)
        return None
    return max(found, key=lambda need: (need.detectable is None, need.detectable or 0.0), default=None)


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
    ways = [f"about {needed:,} {named(f)} (now {now:,})" for f, now, needed in need.facets if now < needed <= MOST]
    told = [_finds(need, of)]
    aim = f"To find {distance(of, target)}{', the size that counts as small' if small else ', as much as was found'}, "
    if ways:
        rest = " with the others as they are" if len(need.facets) > 1 else ""
        told.append(f"{aim}it takes {' or '.join(ways)}{rest}.")
    elif need.times > 1:
        every = " and ".join(f"{named(facet)} (now {now:,})" for facet, now, _ in need.facets)
        times = f"{need.times:,.0f}" if need.times >= 10 else f"{need.times:.1f}"
        told.append(f"{aim}it takes about {times} times as many {every}.")
    return " ".join(filter(None, told))


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
