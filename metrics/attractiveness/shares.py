"""Results over the scenarios: significant shares, the strongest bias, the effect of the filter on it.

A scenario that is answered alike everywhere is evidence of no effect and counts as not significant, as in the paper,
which divides by 91; only scenarios without answers are not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.contracts.estimates import Estimate, Verdict
from ...core.contracts.records import Scalar
from ...core.contracts.words import HITS, OF
from ...core.statistics.estimates import fewest_together, undefined
from ...core.statistics.observations import exact_share
from ...probes.attractiveness.terms import VARIANTS
from .measures import (
    ADJUSTED,
    BY_FACE,
    CHANGE,
    FILTER,
    GAP,
    HALO_SHARE,
    JUDGED,
    KRUSKAL,
    PAPER,
    ROBUST,
    SHARE,
    STRONGER,
    STRONGEST,
    AttractivenessMetricOptions,
)
from .scores import Scenario, Scores

NO_IMPACT, NONE = "no impact", "none"
Find = Callable[..., Estimate | None]
"""From a metric and a group to its estimate."""


def scenario_estimates(
    scores: Scores, estimates: Sequence[Estimate], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield the results over the scenarios, from those of each scenario."""
    index = {(e.metric, frozenset(e.group.items())): e for e in estimates}

    def find(metric: str, **group: Scalar) -> Estimate | None:
        return index.get((metric, frozenset(group.items())))

    compared = scores.compared
    for by in (FILTER, *compared):
        for group, own in _parts(scores.scenarios):
            yield from _shares(find, by, group, own, options)
    directed = [find(GAP, scenario=s.id) for s in scores.scenarios if s.positive]
    above = [None if e is None or e.p_adjusted is None else e.verdict is Verdict.ABOVE for e in directed]
    yield _share(HALO_SHARE, {}, above, options)
    for by in compared:
        yield from _strongest(find, by, scores, options)
    for by in compared:
        yield from _stronger(find, by, scores, options)


def _parts(scenarios: Sequence[Scenario]) -> Iterator[tuple[dict[str, Scalar], list[Scenario]]]:
    """Yield all scenarios, those of each category, and those of each kind in it."""
    yield {}, list(scenarios)
    for category in dict.fromkeys(s.category for s in scenarios):
        own = [s for s in scenarios if s.category == category]
        yield {"category": category}, own
        for kind in dict.fromkeys(s.kind for s in own):
            yield {"category": category, "kind": kind}, [s for s in own if s.kind == kind]


def _shares(
    find: Find, by: str, group: dict[str, Scalar], own: list[Scenario], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield the share of significant scenarios by the paper's test, by the same corrected, and by faces."""
    images = [find(KRUSKAL, scenario=s.id, by=by) for s in own]
    faces = [find(GAP, scenario=s.id) if by == FILTER else find(BY_FACE, scenario=s.id, by=by) for s in own]
    for test, found, adjusted in ((PAPER, images, False), (ADJUSTED, images, True), (ROBUST, faces, True)):
        p = [None if e is None else e.p_adjusted if adjusted else e.p for e in found]
        hits = [None if value is None else value <= options.alpha for value in p]
        one = _share(SHARE, {"by": by, JUDGED: test, **group}, hits, options)
        if test == ROBUST and by == FILTER and not group:
            one = one.replace(**_floor(one, [e for e in found if e is not None], options))
        yield one


def _floor(share: Estimate, gaps: Sequence[Estimate], options: AttractivenessMetricOptions) -> dict[str, Any]:
    """Return what so few faces keep from being significant, however much it changes."""
    floor = fewest_together(max((e.n for e in gaps), default=0), share.n, options)
    facts, caveats = dict(share.facts) | floor.get("facts", {}), (*share.caveats, *floor.get("caveats", ()))
    return {"facts": facts, "caveats": caveats}


def _share(
    metric: str, group: dict[str, Scalar], hits: Sequence[bool | None], options: AttractivenessMetricOptions
) -> Estimate:
    judged = [hit for hit in hits if hit is not None]
    n, lost = len(judged), len(hits) - len(judged)
    told = {"facts": {HITS: sum(judged), OF: n}} if n else undefined("no scenario has answers")
    missing = {"untested": lost} if lost else {}
    counts = (sum(judged), n)
    return exact_share(
        metric, group, counts, options.level, "scenarios", unit="% of scenarios", missing=missing, **told
    )


def _strongest(find: Find, by: str, scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield in how many scenarios the filter's H is largest for each group (the paper's Figures 5 and 6)."""
    levels = scores.levels(by)
    found = [
        {level: e for level in levels if (e := find(KRUSKAL, scenario=s.id, by=FILTER, **{by: level})) is not None}
        for s in scores.scenarios
    ]
    for judged, alpha in (("any", None), ("significant", options.alpha)):
        won = [_largest(own, alpha) for own in found]
        for level in (*levels, NONE):
            yield _count(STRONGEST, {"by": by, "strongest in": level, "judged": judged}, level, won)


def _largest(own: dict[str, Estimate], alpha: float | None) -> str | None:
    """Return the group with the largest H, `none` where no H counts, or None where there are no answers."""
    known = {level: e.value for level, e in own.items() if e.value is not None}
    able = {level: h for level, h in known.items() if h and (alpha is None or (own[level].p or 0.0) < alpha)}
    return (max(able, key=lambda level: able[level]) if able else NONE) if known else None


def _stronger(find: Find, by: str, scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield in how many scenarios a societal bias is stronger with or without the filter (the paper's Table 1).

    The paper does not say what `no impact` means. By `H` it is a bias that is significant in neither variant, and the
    larger H decides; by `tested change` it is a difference of epsilon squared that is not significant after correction.
    """
    sides = [[find(KRUSKAL, scenario=s.id, by=by, variant=variant) for variant in VARIANTS] for s in scores.scenarios]
    changes = [find(CHANGE, scenario=s.id, by=by) for s in scores.scenarios]
    by_h = [_by_h(*(e for e in own if e is not None), alpha=options.alpha) for own in sides]
    for judged, found in (("H", by_h), ("tested change", [_by_change(e) for e in changes])):
        for where in (*VARIANTS, NO_IMPACT):
            yield _count(STRONGER, {"by": by, "stronger in": where, JUDGED: judged}, where, found)


def _by_h(*sides: Estimate, alpha: float) -> str | None:
    values = [e.value for e in sides if e.value is not None]
    if len(values) < len(VARIANTS):
        return None
    if values[0] == values[1] or not any(e.p is not None and e.p < alpha for e in sides):
        return NO_IMPACT
    return VARIANTS[int(values[1] > values[0])]


def _by_change(change: Estimate | None) -> str | None:
    if change is None or change.value is None:
        return None
    return {Verdict.ABOVE: VARIANTS[1], Verdict.BELOW: VARIANTS[0]}.get(change.verdict or Verdict.OPEN, NO_IMPACT)


def _count(metric: str, group: dict[str, Scalar], wanted: str, found: Sequence[str | None]) -> Estimate:
    """Return how many scenarios have the wanted verdict, of those that have one."""
    n = sum(verdict is not None for verdict in found)
    return Estimate.from_flat(
        metric=metric,
        group=group,
        value=float(sum(verdict == wanted for verdict in found)) if n else None,
        unit="scenarios",
        n=n,
        missing={"untested": len(found) - n} if n < len(found) else {},
        **({} if n else undefined("no scenario has answers")),
    )
