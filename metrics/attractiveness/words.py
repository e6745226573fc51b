"""The attractiveness study in words: conclusion, headline, methods, examples; and the units of its gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ...core.contracts import HEADLINE
from ...core.contracts.estimates import MISSING, Caveat, Estimate, Example
from ...core.statistics.facets import OVER, population
from ...core.statistics.templates import rendered
from ...probes.attractiveness.terms import BETWEEN
from .measures import (
    CHECK,
    FILTER,
    GAP,
    HALO,
    HALO_SHARE,
    JUDGED,
    PAPER,
    POSITIVE,
    ROBUST,
    SHARE,
    STRONGER,
    STRONGEST,
    AttractivenessMetricOptions,
)
from .scores import Scores

WIDEST = 10
"""Scenarios that are named, those that change most."""


def headline(estimates: Sequence[Estimate]) -> list[Estimate]:
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


def conclude(estimates: Sequence[Estimate]) -> str:
    """State in how many scenarios the filter changes the judgement, which change most, and whether there is a halo."""
    shares = {
        (e.group["by"], e.group[JUDGED]): e for e in estimates if e.metric == SHARE and set(e.group) == {"by", JUDGED}
    }
    robust = shares.get((FILTER, ROBUST))
    halo, check = (next((e for e in estimates if e.metric == name), None) for name in (HALO, CHECK))
    missing = next((e for e in estimates if e.metric == MISSING and not e.group), None)
    if robust is None or robust.value is None:
        robust = None
    if robust is None or halo is None or halo.value is None:
        halo = None
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
        check=check,
        missing=missing if missing is not None and missing.value else None,
        undone=halo is not None and _undone(halo),
        gaps=_bounds(estimates) if robust is None and missing is not None and missing.value else None,
    )


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


def methods(options: AttractivenessMetricOptions) -> str:
    """Describe how the estimates were computed."""
    return rendered(str(__package__), "methods.md.j2", options=options)


def examples_of(observations: pl.DataFrame, scores: Scores, options: AttractivenessMetricOptions) -> list[Example]:
    """Pick the scenarios with the widest gaps, and in each the face that changes most: all its exchanges."""
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
