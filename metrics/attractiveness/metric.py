"""Attractiveness: does a beauty filter change a model's judgements, and does this depend on gender, age and race?

The measures of Gulati et al. (2025), sections 3.4 and 4: the order-invariant score and its Kruskal-Wallis tests; and,
since the same faces are compared, the paired tests that use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import polars as pl

from ...core.contracts import HEADLINE, Options
from ...core.contracts.estimates import MISSING, Caveat, Chart, Estimate, Example, Measure
from ...core.contracts.records import Scalar
from ...core.statistics.declaration import Declaration
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.estimates import Correction, correct
from ...core.statistics.facets import OVER, population
from ...core.statistics.observations import missing_estimates, missing_groups, unreadable_kinds
from ...core.statistics.templates import rendered
from ...probes.attractiveness.terms import BETWEEN
from .changes import CHANGE as CHANGES
from .changes import by_change, each, pairs_of, together
from .charts import draw
from .measures import (
    CHECK,
    FILTER,
    GAP,
    HALO,
    HALO_SHARE,
    JUDGED,
    KRUSKAL,
    MEASURES,
    PAIR,
    PAPER,
    POSITIVE,
    ROBUST,
    SHARE,
    STEREOTYPE,
    STRONGER,
    STRONGEST,
    WILCOXON,
    AttractivenessMetricOptions,
    designs_of,
)
from .people import check_estimate, human_estimates
from .scores import NEEDS, Scenario, Scores, gather
from .shares import scenario_estimates

__all__ = ["Attractiveness", "AttractivenessMetricOptions"]

WIDEST = 10
"""Scenarios that are named, those that change most."""


def _placed(estimate: Estimate, scenarios: Mapping[str, Scenario], genders: set[str]) -> Estimate:
    """Return the estimate with what tables need to know of its scenario."""
    scenario, by = scenarios.get(str(estimate.group.get("scenario"))), estimate.group.get("by")
    facts: dict[str, Scalar] = {}
    if scenario is None:
        return estimate
    if estimate.metric in (GAP, WILCOXON) and scenario.positive:
        first, _, second = scenario.id.partition(BETWEEN)
        facts[POSITIVE] = second if scenario.positive == "second" else first
    elif estimate.metric == KRUSKAL and [*estimate.group] == ["scenario", "by"]:
        if by == FILTER:
            facts |= {"category": scenario.category, "kind": scenario.kind}
        elif by == PAIR or (by == "gender" and set((scenario.stereotype or "").split(BETWEEN)) <= genders):
            facts[STEREOTYPE] = scenario.stereotype
    return estimate.replace(facts=estimate.facts | facts) if facts else estimate


def _missing(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of missing answers by category and variant, and of each kind of unreadable answer."""
    groups = missing_groups(observations, ("category", "variant"))
    return [*missing_estimates(groups, options.level), *unreadable_kinds(observations, options.level)]


def _scope(estimates: Sequence[Estimate]) -> str:
    """Return what the tests of these estimates hold for."""
    over = {e.facts.get(OVER) for e in estimates}
    alone = {"face": ", in these scenarios only", "scenario": ", with these faces only"}
    return population(estimates) + alone.get(str(over.pop()), "") if over else ""


def _undone(halo: Estimate) -> bool:
    low, high = halo.bound_low, halo.bound_high
    possible = low is not None and high is not None and low <= 0 <= high
    return halo.shown and possible and halo.missing.total > 0


def _gaps(estimates: Sequence[Estimate]) -> list[Estimate]:
    return [e for e in estimates if e.metric == GAP and set(e.group) == {"scenario"}]


def _widest(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the gaps of the scenarios that change most."""
    known = [e for e in _gaps(estimates) if e.value is not None]
    return sorted(known, key=lambda e: -abs(e.value or 0.0))[:WIDEST]


def _chosen(gap: Estimate) -> tuple[str, str]:
    """Return the option that is chosen more with the filter, and the other."""
    first, second = str(gap.group["scenario"]).split(BETWEEN, 1)
    counted_first = gap.facts.get(POSITIVE, first) == first
    return (first, second) if counted_first == ((gap.value or 0.0) > 0) else (second, first)


def _bounds(estimates: Sequence[Estimate]) -> tuple[float, float] | None:
    """Return the range of possible gaps over all values of the missing answers."""
    ends = [(e.bound_low, e.bound_high) for e in _gaps(estimates)]
    lows, highs = ([x for x in side if x is not None] for side in zip(*ends, strict=True)) if ends else ([], [])
    return (min(lows), max(highs)) if lows and highs else None


def _rule(options: AttractivenessMetricOptions) -> tuple[Correction, float]:
    return options.correction, options.alpha


def _of_change(chart: Chart, change: str) -> Chart:
    if not change:
        return chart
    return msgspec.structs.replace(chart, name=f"{chart.name}-{change}", title=f"{chart.title}, {change}")


class Attractiveness(DeclaredMetric):
    """Effects of the filter, the halo, bias by gender, age and race, and the effect of the filter on it."""

    options: ClassVar[type[Options]] = AttractivenessMetricOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = NEEDS

    def rows(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame:
        """Return the images with their scores in every scenario; of several changes, of the first."""
        return gather(pairs_of(observations)[0].named(observations))

    def design_of(self, rows: pl.DataFrame, options: AttractivenessMetricOptions) -> Sequence[Declaration]:
        """Return what is measured of these scenarios and groups of faces."""
        return list(designs_of(Scores(rows), options))

    def compute(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
        """Return the estimates: over the scenarios first, then scenario by scenario.

        `observations` has a row per answer with `scenario`, `face`, `variant` (`original`, `filtered`), the order
        (`first_is`, `asked`), `score` (share of the positive or first option) and `p_a` (share of the label (a)).

        Raises:
            DataError: a column is absent, a variant has an unknown name, or a face is described in two ways.
        """
        if observations.is_empty():
            return []
        pairs = pairs_of(observations)
        named = [pair.named(observations) for pair in pairs]
        rows = [gather(answers) for answers in named]
        tested = together(
            [self._tested(*answers, options) for answers in zip(named, rows, strict=True)], *_rule(options)
        )
        estimates = []
        for pair, answers, images, (halo, *others) in zip(pairs, named, rows, tested, strict=True):
            labelled = [
                halo,
                *scenario_estimates(Scores(images), others, options),
                check_estimate(answers, options),
                *others,
            ]
            labelled = [pair.labelled(e) for e in (*labelled, *_missing(answers, options))]
            estimates += (
                labelled if len(pairs) == 1 else [e.replace(group={CHANGES: pair.changed, **e.group}) for e in labelled]
            )
        return estimates

    def _tested(
        self, observations: pl.DataFrame, rows: pl.DataFrame, options: AttractivenessMetricOptions
    ) -> list[Estimate]:
        """Return the halo and all that is tested of two images of each face."""
        scores = Scores(rows)
        by_id = {scenario.id: scenario for scenario in scores.scenarios}
        genders = set(scores.levels("gender"))
        tested = [_placed(e, by_id, genders) for e in self.measured(rows, options)]
        return [*tested, *correct([*human_estimates(observations, scores, options)], *_rule(options), "tests")]

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the halo, and the shares of scenarios in all and by category.

        For a model that never answers: the missing answers, and the halo and the gaps, which have only bounds.
        """
        return [*each(estimates, self._headline)]

    def _headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        if not any(e.value is not None for e in estimates if e.metric == SHARE):
            lost = [e for e in estimates if e.metric in ("missing", "unreadable")]
            return [*lost, *(e for e in estimates if e.metric == HALO), *_gaps(estimates)][:HEADLINE]
        shares = [e for e in estimates if e.metric == SHARE and "kind" not in e.group]
        groups = [e for e in shares if e.group["by"] != FILTER and "category" not in e.group]
        # The answer first: what changes most, the halo, bias by groups; then the other ways to count.
        chosen = [*_widest(estimates), *(e for e in estimates if e.metric == HALO)]
        chosen += [e for e in groups if e.group[JUDGED] == ROBUST]
        chosen += [e for e in estimates if e.metric in (CHECK, HALO_SHARE)]
        chosen += [e for e in shares if e.group["by"] == FILTER] + [e for e in groups if e.group[JUDGED] != ROBUST]
        return chosen + [e for e in estimates if e.metric in (STRONGER, STRONGEST) and e.group.get(JUDGED) != "H"][:9]

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State in how many scenarios the filter changes judgements, which most, and whether there is a halo."""
        changes = by_change(estimates)
        return " ".join(
            f"{name}: {self._conclude(of_change)}" if name else self._conclude(of_change)
            for name, of_change in changes.items()
        )

    def _conclude(self, estimates: Sequence[Estimate]) -> str:
        whole = [e for e in estimates if e.metric == SHARE and set(e.group) == {"by", JUDGED}]
        shares = {(e.group["by"], e.group[JUDGED]): e for e in whole}
        known = {e.metric: e for e in estimates if e.value is not None and not e.group}
        robust = shares.get((FILTER, ROBUST))
        robust = robust if robust is not None and robust.value is not None else None
        halo, missing = known.get(HALO) if robust is not None else None, known.get(MISSING)
        return rendered(
            str(__package__),
            "conclusion.md.j2",
            robust=robust,
            paper=shares.get((FILTER, PAPER)),
            scope=_scope([e for e in _gaps(estimates) if e.p is not None]),
            faces=max((e.n for e in _gaps(estimates)), default=0),
            widest=[(*_chosen(e), e) for e in _widest(estimates) if e.value] if robust is not None else [],
            halo=halo,
            halo_scope=_scope([halo] if halo is not None else []),
            few=halo is not None and any(c in halo.caveats for c in (Caveat.FEW_LEVELS, Caveat.FEW_CLUSTERS)),
            groups=[(by, e) for (by, judged), e in shares.items() if by != FILTER and judged == ROBUST and e.n],
            check=known.get(CHECK),
            missing=missing if missing is not None and missing.value else None,
            undone=halo is not None and _undone(halo),
            gaps=_bounds(estimates) if robust is None and missing is not None and missing.value else None,
        )

    def methods(self, options: AttractivenessMetricOptions) -> str:
        """Describe how the estimates were computed."""
        return rendered(str(__package__), "methods.md.j2", options=options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the paper's Figures 3 to 6, and its Tables 5 to 7."""
        changes = by_change(estimates)
        return [_of_change(chart, name) for name, of_change in changes.items() for chart in draw(of_change)]

    def examples(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Example]:
        """Pick the scenarios with the widest gaps, and in each the face that changes most: all its exchanges."""
        if observations.is_empty():
            return []
        first = pairs_of(observations)[0]
        faces = Scores(gather(first.named(observations))).faces.drop_nulls("change")
        gaps = faces.group_by("scenario", maintain_order=True).agg(gap=pl.col("change").mean())
        found = []
        for scenario, gap in (
            gaps.sort(pl.col("gap").abs(), descending=True, maintain_order=True).head(options.examples).iter_rows()
        ):
            one = faces.filter(scenario=scenario).sort(
                pl.col("change") * (1 if gap > 0 else -1), descending=True, maintain_order=True
            )
            face, change = one.select("face", "change").row(0)
            if change * gap <= 0:
                continue
            rows = observations.filter((pl.col("scenario") == scenario) & (pl.col("face") == face))
            rows = rows.filter(pl.col("key").is_not_null()).unique(["variant"], keep="first", maintain_order=True)
            found.append(
                Example(
                    title=f"{scenario}: the face whose answers the filter changes most",
                    group={"scenario": scenario},
                    keys=tuple(rows["key"]),
                    value=change,
                    caption=f"Face {face}: one answer to each image, of {rows.height} shown.",
                )
            )
        return found
