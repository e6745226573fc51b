"""Attractiveness: does a beauty filter change a model's judgements, and does this depend on gender, age and race?

The measures of Gulati et al. (2025), sections 3.4 and 4: the order-invariant score and its Kruskal-Wallis tests; and,
since the same faces are compared, the paired tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import polars as pl

from ...core.contracts import HEADLINE, Metric, Options
from ...core.contracts.estimates import MISSING, Caveat, Chart, Estimate, Example, Measure
from ...core.statistics.estimates import correct
from ...core.statistics.facets import OVER, population
from ...core.statistics.observations import missing_estimates, missing_groups, unreadable_kinds
from ...core.statistics.templates import rendered
from ...probes.attractiveness.terms import BETWEEN, TRAITS
from .charts import draw
from .gaps import halo_estimate, mean_estimates, position_estimates
from .kruskal import filter_estimates, group_estimates
from .measures import (
    BY_FACE,
    CHECK,
    FILTER,
    GAP,
    HALO,
    HALO_SHARE,
    JUDGED,
    MEASURES,
    MOVED,
    PAPER,
    POSITIVE,
    ROBUST,
    SHARE,
    STRONGER,
    STRONGEST,
    WILCOXON,
    AttractivenessMetricOptions,
)
from .people import check_estimate, human_estimates
from .scores import NEEDS, Scores, gather
from .shares import scenario_estimates

__all__ = ["Attractiveness", "AttractivenessMetricOptions"]

WIDEST = 10
"""Scenarios that are named, those that change most."""


def _units(scores: Scores) -> pl.DataFrame:
    """Return the change of each face in each scenario, whose means are the gaps."""
    change = scores.change
    lost = scores.lost.max(axis=2).ravel()
    faces = list(scores.faces) * len(change)
    return pl.DataFrame(
        {
            "metric": pl.repeat(GAP, change.size, eager=True),
            "scenario": [s.id for s in scores.scenarios for _ in scores.faces],
            "unit": faces,
            "cluster": faces,
            "sign": pl.repeat(1, change.size, dtype=pl.Int8, eager=True),
            "value": pl.Series("value", change.ravel()).fill_nan(None),
            "least": pl.repeat(-1.0, change.size, eager=True),
            "greatest": pl.repeat(1.0, change.size, eager=True),
            "status": ["ok" if code < 0 else scores.statuses[code] for code in lost],
        }
    )


def _group_units(scores: Scores, changes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the faces of known gender, age group and race: the means of their images, and their changes."""
    for by in TRAITS:
        if len(scores.levels(by)) < 2:
            continue
        known = np.tile(scores.codes(by) >= 0, len(scores.scenarios))
        labels = pl.Series("level", list(scores.labels[by]) * len(scores.scenarios), dtype=pl.String)
        rows = changes.with_columns(labels, by=pl.lit(by), test=pl.lit("kruskal-wallis")).filter(known)
        yield rows.with_columns(metric=pl.lit(MOVED))
        means = scores.score.mean(axis=-1).ravel()
        yield rows.with_columns(metric=pl.lit(BY_FACE), value=pl.Series(means[known]).fill_nan(None), least=pl.lit(0.0))


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


class Attractiveness(Metric):
    """Effects of the filter, the halo, bias by gender, age and race, and the effect of the filter on it."""

    options: ClassVar[type[Options]] = AttractivenessMetricOptions
    measures: ClassVar[Mapping[str, Measure]] = MEASURES
    needs: ClassVar[frozenset[str]] = NEEDS

    def compute(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
        """Return the estimates: over the scenarios first, then scenario by scenario.

        `observations` has a row per answer with `scenario`, `face`, `variant` (`original`, `filtered`), the order
        (`first_is`, `asked`), `score` (share of the positive or first option) and `p_a` (share of the label (a)).

        Raises:
            DataError: a column is absent, a variant has an unknown name, or a face is described in two ways.
        """
        if observations.is_empty():
            return []
        scores = gather(observations)
        everyone = np.ones(len(scores.faces), dtype=np.bool_)
        tested = [
            halo_estimate(scores, options),
            *filter_estimates(scores, options, everyone, {}),
            *group_estimates(scores, options),
            *human_estimates(observations, scores, options),
        ]
        halo, *found = correct(tested, options.correction, options.alpha, "scenarios")
        return [
            halo,
            *scenario_estimates(scores, found, options),
            check_estimate(observations, options),
            *found,
            *mean_estimates(scores, options),
            *position_estimates(observations, options),
            *_missing(observations, options),
        ]

    def units(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> pl.DataFrame:
        """Return the change of each face in each scenario, whose means are the gaps."""
        return _units(gather(observations))

    def designs(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> pl.DataFrame:
        """Return the changes of faces by scenario for all tests, and the faces of each group."""
        scores = gather(observations)
        changes = _units(scores)
        directed = changes.filter(np.repeat(scores.directed, len(scores.faces)))
        crossed = {"row": pl.col("scenario"), "ways": pl.lit("scenario x face")}
        halo = directed.with_columns(metric=pl.lit(HALO), **crossed).drop("scenario")
        ranked = changes.with_columns(metric=pl.lit(WILCOXON), test=pl.lit("wilcoxon"))
        return pl.concat([halo, changes, ranked, *_group_units(scores, changes)], how="diagonal")

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the halo, and the shares of scenarios in all and by category.

        For a model that never answers: the missing answers, and the halo and the gaps, which have only bounds.
        """
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
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Example]:
        """Pick the scenarios with the widest gaps, and in each the face that changes most: all its exchanges."""
        if observations.is_empty():
            return []
        scores = gather(observations)
        change = scores.change
        counts = (~np.isnan(change)).sum(axis=1)
        gaps = np.where(counts > 0, np.nansum(change, axis=1) / np.maximum(counts, 1), 0.0)
        found = []
        for number in np.argsort(-np.abs(gaps), kind="stable")[: options.examples]:
            own = np.nan_to_num(change[number]) * np.sign(gaps[number])
            face = int(np.argmax(own))
            if own[face] <= 0:
                continue
            scenario = scores.scenarios[number].id
            rows = observations.filter((pl.col("scenario") == scenario) & (pl.col("face") == scores.faces[face]))
            rows = rows.filter(pl.col("key").is_not_null()).unique(["variant"], keep="first", maintain_order=True)
            found.append(
                Example(
                    title=f"{scenario}: the face whose answers the filter changes most",
                    group={"scenario": scenario},
                    keys=tuple(rows["key"]),
                    value=float(change[number, face]),
                    caption=f"Face {scores.faces[face]}: one answer to each image, of {rows.height} shown.",
                )
            )
        return found
