"""Results over the scenarios: significant shares, the halo, the strongest bias, the effect of the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.contracts.estimates import Estimate, Verdict
from ...core.contracts.records import Scalar
from ...core.contracts.words import HITS, OF
from ...core.statistics.effects import defined, p_of
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import CONTRAST, share
from ...core.statistics.resampling import bootstrap, flip_test
from ...probes.attractiveness.terms import TRAITS, VARIANTS
from .filter import FILTER, GAP, KRUSKAL
from .groups import BY_FACE, CHANGE
from .options import AttractivenessMetricOptions
from .scores import Scenario, Scores, column_sums, mean

PAPER = "Kruskal-Wallis, p as in the paper"
ADJUSTED = "Kruskal-Wallis, adjusted p"
ROBUST = "paired or by face, adjusted p"
EXACT = "exact (Clopper-Pearson), scenarios"
JUDGED = "judged by"
SHARE, STRONGEST, STRONGER, HALO, HALO_SHARE = (
    "share_significant",
    "strongest_group",
    "stronger_bias",
    "halo",
    "halo_scenarios",
)
NO_IMPACT, NONE = "no impact", "none"
Key = tuple[tuple[str, Scalar], ...]
Significant = Callable[[Estimate], bool]


class Index:
    """Estimates by metric and group."""

    def __init__(self, estimates: Sequence[Estimate]) -> None:
        self._by = {(e.metric, _key(e.group)): e for e in estimates}

    def of(self, metric: str, **group: Scalar) -> Estimate | None:
        """Return an estimate, or None."""
        return self._by.get((metric, _key(group)))


def _key(group: dict[str, Scalar]) -> Key:
    return tuple(sorted(group.items()))


def share_estimates(
    scores: Scores, estimates: Sequence[Estimate], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield the shares of scenarios with a bias: in all, per category, and per kind."""
    index = Index(estimates)
    parts: list[tuple[dict[str, Scalar], list[Scenario]]] = [({}, scores.scenarios)]
    for category in dict.fromkeys(s.category for s in scores.scenarios):
        own = [s for s in scores.scenarios if s.category == category]
        parts.append(({"category": category}, own))
        kinds = dict.fromkeys(s.kind for s in own)
        parts += [({"category": category, "kind": kind}, [s for s in own if s.kind == kind]) for kind in kinds]
    for by in (FILTER, *(name for name in TRAITS if len(scores.levels(name)) > 1)):
        for group, own in parts:
            yield from _shares(index, by, group, own, options)
    yield _halo_share(index, [s for s in scores.scenarios if s.positive], options)


def _shares(
    index: Index, by: str, group: dict[str, Scalar], own: list[Scenario], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    def tested(scenario: str) -> Estimate | None:
        return index.of(KRUSKAL, scenario=scenario, by=by)

    def robust(scenario: str) -> Estimate | None:
        return index.of(GAP, scenario=scenario) if by == FILTER else index.of(BY_FACE, scenario=scenario, by=by)

    for test, find, adjusted in ((PAPER, tested, False), (ADJUSTED, tested, True), (ROBUST, robust, True)):
        found = [find(scenario.id) for scenario in own]
        yield _share({"by": by, JUDGED: test, **group}, [_p(e, adjusted) for e in found], options)


def _p(estimate: Estimate | None, adjusted: bool) -> float | None:
    if estimate is None:
        return None
    return estimate.p_adjusted if adjusted else estimate.p


def _share(group: dict[str, Scalar], p: Sequence[float | None], options: AttractivenessMetricOptions) -> Estimate:
    judged = [value for value in p if value is not None]
    return _counted(SHARE, group, sum(value <= options.alpha for value in judged), (len(judged), len(p)), options)


def _counted(
    metric: str, group: dict[str, Scalar], hits: int, sizes: tuple[int, int], options: AttractivenessMetricOptions
) -> Estimate:
    judged, total = sizes
    part = share(hits, judged, options.level)
    defined_ = part.value is not None
    return Estimate.from_flat(
        metric=metric,
        group=group,
        value=None if part.value is None else 100 * part.value,
        unit="% of scenarios",
        low=None if part.low is None else 100 * part.low,
        high=None if part.high is None else 100 * part.high,
        level=options.level,
        interval=EXACT if defined_ else "",
        n=judged,
        missing={"untested": total - judged} if judged < total else {},
        facts={HITS: hits, OF: judged} if defined_ else {},
        **({} if defined_ else undefined("no scenario could be tested")),
    )


def _halo_share(index: Index, own: list[Scenario], options: AttractivenessMetricOptions) -> Estimate:
    gaps = [index.of(GAP, scenario=scenario.id) for scenario in own]
    judged = [e for e in gaps if e is not None and e.p_adjusted is not None]
    return _counted(HALO_SHARE, {}, sum(e.verdict is Verdict.ABOVE for e in judged), (len(judged), len(own)), options)


def halo_estimate(scores: Scores, options: AttractivenessMetricOptions) -> Estimate:
    """Return the mean gap over the scenarios with a positive option, each face being one unit."""
    directed = np.array([s.positive is not None for s in scores.scenarios], dtype=np.bool_)
    change = scores.change[directed]
    # A face that lacks a scenario would be compared on other scenarios than the rest.
    average = change.mean(axis=0) if len(change) else np.full(len(scores.faces), np.nan)
    values, count = average[None], len(scores.faces)
    sums = column_sums(values)
    low, high = bootstrap(sums, mean, options.plan, (CONTRAST,))
    p = p_of(flip_test(sums, options.plan)[0, 0])
    n, end = int((~np.isnan(average)).sum()), defined(low[0, 0])
    least, greatest = scores.least[directed], scores.greatest[directed]
    return Estimate.from_flat(
        metric=HALO,
        group={},
        value=float(np.nanmean(values)) if n else None,
        neutral=0.0,
        unit="share",
        low=end,
        high=defined(high[0, 0]),
        level=options.level,
        interval=f"{options.interval} (face)" if end is not None else "",
        n=n,
        clusters=n,
        missing={"incomplete": count - n} if n < count else {},
        bound_low=float((least[..., 1] - greatest[..., 0]).mean()) if len(change) else None,
        bound_high=float((greatest[..., 1] - least[..., 0]).mean()) if len(change) else None,
        test="sign flip of faces, permutation" if p is not None else "",
        statistic=float(np.nanmean(values)) if p is not None else None,
        p=p,
        family=HALO,
        **({} if n else undefined("no face has all scores of the scenarios with a positive option")),
    )


def strongest_estimates(
    scores: Scores, estimates: Sequence[Estimate], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield in how many scenarios the filter's H is largest for each group (the paper's Figures 5 and 6)."""
    index = Index(estimates)
    for by in TRAITS:
        levels = scores.levels(by)
        if len(levels) < 2:
            continue
        for judged, alpha in (("any", None), ("significant", options.alpha)):
            won = [_strongest(index, s.id, by, levels, alpha) for s in scores.scenarios]
            for level in (*levels, NONE):
                yield _count(STRONGEST, {"by": by, "strongest in": level, "judged": judged}, level, won)


def _strongest(index: Index, scenario: str, by: str, levels: list[str], alpha: float | None) -> str | None:
    """Return the group with the largest H, `none` where no H is significant, or None where nothing could be tested."""
    every = {level: index.of(KRUSKAL, scenario=scenario, by=FILTER, **{by: level}) for level in levels}
    tested = {level: e for level, e in every.items() if e is not None and e.value is not None}
    if not tested:
        return None
    able = {level: e.value for level, e in tested.items() if alpha is None or (e.p is not None and e.p < alpha)}
    return max(able, key=lambda level: able[level] or 0.0) if able else NONE


def stronger_estimates(
    scores: Scores, estimates: Sequence[Estimate], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield in how many scenarios a societal bias is stronger with or without the filter (the paper's Table 1).

    The paper does not say what `no impact` means. By `H` it is a bias that is significant in neither variant, and the
    larger H decides; by `tested change` it is a change that is not significant after correction.
    """
    index = Index(estimates)
    for by in TRAITS:
        if len(scores.levels(by)) < 2:
            continue
        for judged, decide in (("H", _by_h), ("tested change", _by_change)):
            found = [decide(index, s.id, by, options.alpha) for s in scores.scenarios]
            for where in (*VARIANTS, NO_IMPACT):
                yield _count(STRONGER, {"by": by, "stronger in": where, JUDGED: judged}, where, found)


def _by_h(index: Index, scenario: str, by: str, alpha: float) -> str | None:
    found = [index.of(KRUSKAL, scenario=scenario, by=by, variant=variant) for variant in VARIANTS]
    values: list[Any] = [e.value if e is not None else None for e in found]
    if None in values:
        return None
    if values[0] == values[1] or not any(e is not None and e.p is not None and e.p < alpha for e in found):
        return NO_IMPACT
    return VARIANTS[int(values[1] > values[0])]


def _by_change(index: Index, scenario: str, by: str, alpha: float) -> str | None:
    change = index.of(CHANGE, scenario=scenario, by=by)
    if change is None or change.value is None:
        return None
    if change.p_adjusted is None or change.p_adjusted > alpha or not change.value:
        return NO_IMPACT
    return VARIANTS[int(change.value > 0)]


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
        **({} if n else undefined("no scenario could be tested")),
    )
